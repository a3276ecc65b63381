"""Similarity of texts by the vectors of an OpenAI-compatible endpoint, each text asked for once in a run's life."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
from numpy.typing import NDArray

from judgelab.errors import JudgeError, RunError
from judgelab.judging.judges.bodies import decoded, encoded
from judgelab.judging.judges.failures import failure_of
from judgelab.judging.judges.rates import retry_after
from judgelab.study.battery import Embeddings

__all__ = ["EmbeddingSimilarity"]

Vector = NDArray[np.float64]
BATCH = 64  # texts in a request
ATTEMPTS = 5
SECONDS, CONNECT_SECONDS = 120.0, 10.0  # for a whole response; for a connection
NO_EMBEDDINGS = {404, 405, 410, 501}
_sleep = time.sleep  # tests do not wait


class EmbeddingSimilarity:
    """Cosine similarity of embeddings, from an endpoint and a cache.

    Parameters
    ----------
    embeddings
        The endpoint and its model. The key is read from the variable ``api_key_env`` when the endpoint is asked; it
        stands in no error and not in the cache.
    cache
        A file of JSON lines, made where it is missing: model, vector, and key, which is the SHA-256 of model and text.
        Several models can share it. Lines that cannot be read (a run was killed while it wrote) count as missing.

    Notes
    -----
    Requests block, and are made by the thread that calls. ``prepare`` asks for many texts at once.
    """

    def __init__(self, embeddings: Embeddings, cache: Path) -> None:
        self._embeddings, self._cache = embeddings, cache
        self._url = f"{embeddings.base_url.rstrip('/')}/embeddings"
        self._secret = ""
        self._known: dict[str, Vector] | None = None
        self._stack: tuple[tuple[str, ...], Vector] = ((), np.zeros((0, 0)))

    def between(self, text: str, texts: Sequence[str]) -> Vector:
        """Cosine similarities of ``text`` to each of ``texts``, shape (n,), -1 to 1; 0 for an empty text.

        Raises
        ------
        JudgeError
            If the endpoint cannot be asked, or keeps failing after five attempts, or its vectors are none.
        RunError
            If the cache cannot be read or written.
        """
        self.prepare([*texts, text])
        if not texts:
            return np.zeros(0)
        if self._stack[0] != tuple(texts):
            self._stack = (tuple(texts), np.stack([self._unit(each) for each in texts]))
        return np.clip(self._stack[1] @ self._unit(text), -1.0, 1.0)

    def prepare(self, texts: Iterable[str]) -> int:
        """Ask for the vectors of all texts that the cache does not hold, 64 a request; how many that were.

        Every batch is in the cache before the next is asked. Raises what :meth:`between` raises.
        """
        known = self._read()
        missing = [text for text in dict.fromkeys(texts) if text.strip() and self._key(text) not in known]
        if not missing:
            return 0
        with self._client() as client:
            for start in range(0, len(missing), BATCH):
                batch = missing[start : start + BATCH]
                self._keep(batch, self._vectors(client, batch))
        return len(missing)

    # --- vectors

    def _key(self, text: str) -> str:
        return hashlib.sha256(json.dumps([self._embeddings.model, text]).encode()).hexdigest()

    def _unit(self, text: str) -> Vector:
        """The vector of a known text with length 1; zeros for an empty text, and where it has no length."""
        known = self._read()
        vector = known.get(self._key(text)) if text.strip() else None
        if vector is None:
            return np.zeros(_size(known, 1))
        scale = float(np.abs(vector).max())  # first, so that squares neither overflow nor vanish
        return vector / scale / np.linalg.norm(vector / scale) if scale else vector

    def _read(self) -> dict[str, Vector]:
        """The vectors of the cache, which is read once."""
        if self._known is None:
            self._known = {}
            try:
                lines = self._cache.read_bytes().splitlines() if self._cache.exists() else []
            except OSError as error:
                raise RunError(f"{self._cache.name}: the embeddings cannot be read ({error.strerror})") from None
            for line in lines:
                entry = decoded(line)
                if not isinstance(entry, dict) or entry.get("model") != self._embeddings.model:
                    continue
                vector, key = _vector(entry.get("vector")), entry.get("key")
                if vector is not None and isinstance(key, str) and vector.size == _size(self._known, vector.size):
                    self._known[key] = vector
        return self._known

    def _keep(self, texts: Sequence[str], vectors: Sequence[Vector]) -> None:
        """Write vectors to the cache, whose last line may have been cut."""
        known = self._read()
        size = vectors[0].size
        if size != _size(known, size):
            raise JudgeError(
                f"{self._who}: the embeddings have {size} numbers, and had {_size(known, size)} before; if the "
                f"endpoint has another model under this name now, remove {self._cache.name}"
            )
        keys = [self._key(text) for text in texts]
        rows = [
            json.dumps({"model": self._embeddings.model, "key": key, "vector": vector.tolist()})
            for key, vector in zip(keys, vectors, strict=True)
        ]
        try:
            self._cache.parent.mkdir(parents=True, exist_ok=True)
            with self._cache.open("a+b") as file:
                end = file.seek(0, os.SEEK_END)
                file.seek(max(end - 1, 0))
                cut = file.read(1) not in (b"", b"\n")
                file.write((("\n" if cut else "") + "\n".join(rows) + "\n").encode())
        except OSError as error:
            raise RunError(f"{self._cache.name}: the embeddings cannot be written ({error.strerror})") from None
        known.update(zip(keys, vectors, strict=True))

    # --- asking

    @property
    def _who(self) -> str:
        return f"embeddings {self._embeddings.model} at {self._embeddings.base_url}"

    def _client(self) -> httpx.Client:
        headers = {"Accept": "application/json", "Content-Type": "application/json"}
        variable = self._embeddings.api_key_env
        if variable is not None:
            self._secret = os.environ.get(variable, "").strip()
            if not self._secret:
                raise JudgeError(
                    f"{self._who}: the environment variable {variable} is not set; set it to the key of this endpoint"
                )
            if not (self._secret.isascii() and self._secret.isprintable()):
                raise JudgeError(
                    f"{self._who}: the environment variable {variable} holds more than a key "
                    "(a line break or a character outside ASCII); set it again"
                )
            headers["Authorization"] = f"Bearer {self._secret}"
        try:
            return httpx.Client(headers=headers, timeout=httpx.Timeout(SECONDS, connect=CONNECT_SECONDS))
        except ValueError as error:
            raise JudgeError(
                f"{self._who}: a proxy of the environment is no address: {self._clean(str(error))}"
            ) from None

    def _vectors(self, client: httpx.Client, texts: Sequence[str]) -> list[Vector]:
        """The vectors of one request, in the order of the texts; failures that may pass are tried again."""
        problem = ""
        for attempt in range(ATTEMPTS):
            wait: float | None = None
            try:
                status, headers, content = self._posted(client, texts)
            except (httpx.TimeoutException, TimeoutError):
                problem = "no reply in time"
            except httpx.InvalidURL as error:
                raise JudgeError(f"{self._who}: base_url is not an address: {self._clean(str(error))}") from None
            except httpx.RequestError as error:
                problem = self._clean(f"{type(error).__name__}: {error}")[:310]
            else:
                text = content.decode("utf-8", "replace")
                if 200 <= status < 300:
                    found = _vectors_in(decoded(content), len(texts))
                    if not isinstance(found, str):
                        return found
                    problem = f"{found}: {self._clean(text)[:200]}"
                else:
                    problem = self._clean(f"HTTP {status}: {text}")[:310]
                    wait = self._wait_or_raise(status, headers, content, problem)
            if attempt < ATTEMPTS - 1:
                _sleep(min(2.0**attempt, 30.0) if wait is None else wait)
        raise JudgeError(f"{self._who}: {ATTEMPTS} attempts failed, the last with: {problem}")

    def _posted(self, client: httpx.Client, texts: Sequence[str]) -> tuple[int, httpx.Headers, bytes]:
        """Status, headers and body. httpx waits for each piece of a body; one that drips must end, too."""
        end, body = time.monotonic() + SECONDS, bytearray()
        content = encoded({"model": self._embeddings.model, "input": list(texts)})
        with client.stream("POST", self._url, content=content) as response:
            for piece in response.iter_bytes():
                body += piece
                if time.monotonic() > end:
                    raise TimeoutError
            return response.status_code, response.headers, bytes(body)

    def _wait_or_raise(self, status: int, headers: httpx.Headers, content: bytes, detail: str) -> float | None:
        """How long the endpoint asks to wait, None if it does not say. Raises if waiting does not help."""
        if 300 <= status < 400:
            target = self._clean(headers.get("location", "nowhere"))
            raise JudgeError(f"{self._who}: the endpoint redirects to {target}; set base_url to its final address")
        if status in NO_EMBEDDINGS:
            raise JudgeError(
                f"{self._who}: the endpoint has no embeddings, or not of this model; check base_url and model, or "
                f"leave embeddings out to use TF-IDF ({detail})"
            )
        failure = failure_of(status, decoded(content), content.decode("utf-8", "replace"))
        if failure.kind == "transient":
            told = retry_after(headers)
            return failure.retry_after if told is None else told
        variable = self._embeddings.api_key_env
        why = "the endpoint refuses the request" if failure.kind == "refused" else failure.why
        raise JudgeError(f"{self._who}: {why}; check {variable or 'api_key_env'}, base_url and model ({detail})")

    def _clean(self, text: str) -> str:
        """A message without the key, whatever the endpoint sent back: whole, escaped, or with its end masked."""
        if self._secret:
            for form in {self._secret, json.dumps(self._secret)[1:-1], quote(self._secret, safe="")}:
                text = text.replace(form, "[key]")
            if len(self._secret) >= 12:
                text = re.sub(rf"{re.escape(self._secret[:6])}[\w.*•…-]*", "[key]", text)
        return text


def _vectors_in(body: Any, count: int) -> list[Vector] | str:
    """The vectors of a response by index, or why they are none."""
    data = body.get("data") if isinstance(body, dict) else None
    if not isinstance(data, list) or not all(isinstance(entry, dict) for entry in data):
        return "not a list of embeddings"
    if len(data) != count:
        return f"{len(data)} embeddings for {count} texts"
    by_index = {entry.get("index"): entry for entry in data if type(entry.get("index")) is int}
    if set(by_index) != set(range(count)):
        return f"the indices of the embeddings are not 0 to {count - 1}"
    vectors = [_vector(by_index[place].get("embedding")) for place in range(count)]
    found = [vector for vector in vectors if vector is not None]
    if len(found) < count:
        return "an embedding is not a list of finite numbers"
    if len({vector.size for vector in found}) > 1:
        return "the embeddings have different lengths"
    return found


def _vector(value: Any) -> Vector | None:
    """A list of finite numbers as a vector; None for anything else."""
    if not isinstance(value, list) or not value:
        return None
    try:
        numbers = [float(each) for each in value if type(each) in (int, float)]
    except OverflowError:
        return None
    return np.array(numbers) if len(numbers) == len(value) and all(map(math.isfinite, numbers)) else None


def _size(known: dict[str, Vector], otherwise: int) -> int:
    """How many numbers the known vectors have."""
    return next(iter(known.values())).size if known else otherwise
