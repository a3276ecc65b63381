"""The child process of an embedded judge: llama.cpp with its OpenAI-compatible server on loopback.

``python -m judgelab.judging.judges.embedded_server MODEL CONTEXT_TOKENS THREADS`` prints ``address http://…`` and
serves until its standard input ends, so it never outlives the process that started it.
"""

from __future__ import annotations

import sys

__all__ = ["serve"]


def serve(model: str, context_tokens: int, threads: int) -> None:
    """Serve one GGUF file until standard input ends."""
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = model
    params.n_ctx = context_tokens
    params.n_parallel = 1
    params.cpuparams.n_threads = threads
    params.cpuparams_batch.n_threads = threads
    params.n_gpu_layers = 0
    params.hostnames = ["127.0.0.1"] if isinstance(params.hostnames, list) else "127.0.0.1"
    params.port = 0
    params.warmup = False
    params.cache_ram_mib = 0
    server = xllamacpp.Server(params)
    print(f"address {server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    serve(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
