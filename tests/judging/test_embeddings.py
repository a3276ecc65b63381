"""Embeddings from a real endpoint on loopback that behaves and misbehaves."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from judgelab.errors import JudgeError, RunError
from judgelab.judging import embeddings as module
from judgelab.judging.embeddings import EmbeddingSimilarity
from judgelab.study.battery import Embeddings

KEY = "test-key-0123456789abcdef"
VECTORS = {"north": [0.0, 2.0], "east": [3.0, 0.0], "north-east": [1.0, 1.0], "south": [0.0, -1.0], "here": [0.0, 0.0]}
Result = tuple[int, Any] | tuple[int, Any, dict[str, str]]


def vector(text: str) -> list[float]:
    """Known directions, and for any other text two numbers of its own."""
    return VECTORS.get(text) or [float(byte) for byte in hashlib.sha256(repr(text).encode()).digest()[:2]]


class Endpoint:
    """What was asked, and what is answered: ``script`` first, then as it should be."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.script: list[Result | Callable[[list[str]], Result]] = []
        self.base_url = ""

    def answer(self, body: dict[str, Any]) -> Result:
        step = self.script.pop(0) if self.script else good
        return step(body["input"]) if callable(step) else step


def good(texts: list[str]) -> Result:
    data = [{"object": "embedding", "index": n, "embedding": vector(text)} for n, text in enumerate(texts)]
    return 200, {"object": "list", "data": data[::-1], "model": "m"}  # in any order: the index counts


def changed(change: Callable[[list[dict[str, Any]]], Any]) -> Callable[[list[str]], Result]:
    """A good response with its data changed."""
    return lambda texts: (200, {"data": change(good(texts)[1]["data"])})


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """A server for the length of a test; retries do not wait."""
    made = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            made.asked.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            made.headers.append({name.lower(): value for name, value in self.headers.items()})
            made.paths.append(self.path)
            status, body, *more = made.answer(made.asked[-1])
            if body is None:
                self.connection.close()  # no response at all
                return
            content = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            for name, value in {"Content-Length": str(len(content)), **(more[0] if more else {})}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: Any) -> None:
            """Nothing on the terminal."""

    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setenv("EMBEDDINGS_KEY", KEY)
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    made.base_url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    yield made
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The seconds that would have been waited."""
    waited: list[float] = []
    monkeypatch.setattr(module, "_sleep", waited.append)
    return waited


@pytest.fixture
def similarity_of(endpoint: Endpoint, waits: list[float], tmp_path: Path) -> Callable[..., EmbeddingSimilarity]:
    """Maker of similarities with one cache."""

    def make(cache: str = "embeddings.jsonl", **changes: Any) -> EmbeddingSimilarity:
        values = {"base_url": endpoint.base_url, "model": "m", "api_key_env": "EMBEDDINGS_KEY"} | changes
        return EmbeddingSimilarity(Embeddings(**values), tmp_path / cache)

    return make


def test_cosines_by_hand(endpoint: Endpoint, similarity_of: Callable[..., EmbeddingSimilarity]) -> None:
    # (0, 2) and (1, 1): 2 / (2 * sqrt 2); a vector without length and an empty text are like nothing
    found = similarity_of().between("north", ["north", "east", "north-east", "south", "here", " "])
    assert found == pytest.approx([1, 0, 2**-0.5, -1, 0, 0])
    assert endpoint.paths == ["/v1/embeddings"]
    assert endpoint.asked == [{"model": "m", "input": ["north", "east", "north-east", "south", "here"]}]
    assert endpoint.headers[0]["authorization"] == f"Bearer {KEY}"
    assert similarity_of().between("north", []).shape == (0,)
    assert similarity_of("other.jsonl").between("", [" ", ""]).tolist() == [0, 0]
    assert len(endpoint.asked) == 1


def test_batches_of_64_and_each_text_once(
    endpoint: Endpoint, similarity_of: Callable[..., EmbeddingSimilarity]
) -> None:
    texts = [f"text {number}" for number in range(130)]
    similarity = similarity_of(api_key_env=None)
    assert similarity.prepare([*texts, *texts, ""]) == 130
    assert [len(each["input"]) for each in endpoint.asked] == [64, 64, 2]
    assert "authorization" not in endpoint.headers[0]
    units = np.array([vector(text) for text in texts])
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    assert similarity.between(texts[7], texts) == pytest.approx(units @ units[7])
    assert len(endpoint.asked) == 3


def test_resumed_run_asks_nothing_and_gives_the_same(
    endpoint: Endpoint, similarity_of: Callable[..., EmbeddingSimilarity], tmp_path: Path
) -> None:
    texts = ["a", "b", "half a pair \ud800", "line\nbreak"]
    endpoint.script = [changed(lambda data: [{**each, "embedding": [0.1 + each["index"], 1 / 3]} for each in data])]
    first = similarity_of().between("a", texts)
    assert similarity_of().between("a", texts).tolist() == first.tolist()
    assert len(endpoint.asked) == 1
    cache = (tmp_path / "embeddings.jsonl").read_text()
    assert KEY not in cache
    assert json.loads(cache.splitlines()[0])["key"] == hashlib.sha256(b'["m", "a"]').hexdigest()
    similarity_of(model="n").prepare(["a"])  # another model shares the file, and no vectors
    assert endpoint.asked[1:] == [{"model": "n", "input": ["a"]}]


def test_batches_before_a_failure_are_kept(
    endpoint: Endpoint, similarity_of: Callable[..., EmbeddingSimilarity]
) -> None:
    texts = [f"text {number}" for number in range(100)]
    endpoint.script = [good, (401, {"error": {"message": "no"}})]
    with pytest.raises(JudgeError, match="does not accept the key"):
        similarity_of().prepare(texts)
    assert similarity_of().prepare(texts) == 36


def test_line_that_was_cut_is_asked_again(
    endpoint: Endpoint, similarity_of: Callable[..., EmbeddingSimilarity], tmp_path: Path
) -> None:
    similarity_of().prepare(["a", "b", "c"])
    cache = tmp_path / "embeddings.jsonl"
    cache.write_bytes(b'\xff\n[]\n{"model": "m", "key": 3, "vector": [1]}\n' + cache.read_bytes()[:-9])
    assert similarity_of().prepare(["a", "b", "c"]) == 1
    assert similarity_of().prepare(["a", "b", "c"]) == 0
    assert [each["input"] for each in endpoint.asked] == [["a", "b", "c"], ["c"]]


def test_what_may_pass_is_tried_again(
    endpoint: Endpoint, similarity_of: Callable[..., EmbeddingSimilarity], waits: list[float]
) -> None:
    endpoint.script = [(500, {"error": "oh"}), (429, {}, {"Retry-After": "7"}), (200, b"<html>"), (0, None)]
    assert similarity_of().between("north", ["north", "east"]) == pytest.approx([1, 0])
    assert waits == [1, 7, 4, 8]
    assert [each["input"] for each in endpoint.asked] == [["north", "east"]] * 5


def test_waiting_has_an_end(
    endpoint: Endpoint, similarity_of: Callable[..., EmbeddingSimilarity], waits: list[float]
) -> None:
    endpoint.script = [(503, {"error": {"message": f"key {KEY} is tired"}})] * 9
    with pytest.raises(JudgeError, match=r"m at http://127.*5 attempts failed, the last with: HTTP 503") as caught:
        similarity_of().between("north", ["east"])
    assert waits == [1, 2, 4, 8]
    assert len(endpoint.asked) == 5
    assert KEY not in str(caught.value)


def test_timeouts_are_tried_again(
    endpoint: Endpoint, similarity_of: Callable[..., EmbeddingSimilarity], monkeypatch: pytest.MonkeyPatch
) -> None:
    release = threading.Event()

    def late(texts: list[str]) -> Result:
        release.wait(5)
        return good(texts)

    monkeypatch.setattr(module, "SECONDS", 0.2)
    endpoint.script = [late]
    try:
        assert similarity_of().between("north", ["north"]) == pytest.approx([1])
    finally:
        release.set()
    assert len(endpoint.asked) == 2


def test_no_server_is_a_judge_error(similarity_of: Callable[..., EmbeddingSimilarity], waits: list[float]) -> None:
    with pytest.raises(JudgeError, match="ConnectError"):
        similarity_of(base_url="http://127.0.0.1:9").prepare(["a"])
    assert len(waits) == 4


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda data: data[1:], "1 embeddings for 2 texts"),
        (lambda data: [*data, data[0]], "3 embeddings for 2 texts"),
        (lambda data: [data[0], data[0]], "indices of the embeddings are not 0 to 1"),
        (lambda data: [{**each, "index": True} for each in data], "indices of the embeddings are not 0 to 1"),
        (lambda data: [{"embedding": each["embedding"]} for each in data], "indices of the embeddings"),
        (lambda data: [{**each, "embedding": [1.0] * (1 + each["index"])} for each in data], "different lengths"),
        (lambda data: [{**each, "embedding": [1.0, float("nan")]} for each in data], "not a list of finite numbers"),
        (lambda data: [{**each, "embedding": [1.0, "2"]} for each in data], "not a list of finite numbers"),
        (lambda data: [{**each, "embedding": [10**400]} for each in data], "not a list of finite numbers"),
        (lambda data: [{**each, "embedding": []} for each in data], "not a list of finite numbers"),
        (lambda data: [{**each, "embedding": "AACAPw=="} for each in data], "not a list of finite numbers"),
        (lambda data: ["a", "b"], "not a list of embeddings"),
        (lambda data: {"0": data}, "not a list of embeddings"),
    ],
)
def test_vectors_that_are_none_are_refused(
    endpoint: Endpoint, similarity_of: Callable[..., EmbeddingSimilarity], tmp_path: Path, change: Any, told: str
) -> None:
    endpoint.script = [changed(change)] * 5
    with pytest.raises(JudgeError, match=told):
        similarity_of().between("north", ["east"])
    assert not (tmp_path / "embeddings.jsonl").exists()


@pytest.mark.parametrize("body", [b"<html>not found</html>", b"\xff\xfe", b"null", b"[]", b'{"error": {"code": 500}}'])
def test_what_is_no_response_is_refused(
    endpoint: Endpoint, similarity_of: Callable[..., EmbeddingSimilarity], body: bytes
) -> None:
    endpoint.script = [(200, body)] * 5
    with pytest.raises(JudgeError, match="not a list of embeddings"):
        similarity_of().prepare(["a"])


@pytest.mark.parametrize(
    ("result", "told"),
    [
        ((404, {"error": "page not found"}), "has no embeddings, or not of this model; .*TF-IDF"),
        ((501, b"no"), "has no embeddings"),
        (
            (401, {"error": {"message": f"Incorrect API key provided: {KEY}"}}),
            "not accept the key; check EMBEDDINGS_KEY",
        ),
        ((401, {"error": {"message": f"Incorrect API key provided: {KEY[:8]}*****cdef"}}), "not accept the key"),
        ((400, f"x {KEY} ".encode() * 40), "refuses the request; check EMBEDDINGS_KEY, base_url and model"),
        ((429, {"error": {"code": "insufficient_quota", "message": "pay"}}), "no credit left"),
        ((307, b"", {"Location": f"https://elsewhere.example/?k={KEY}"}), r"redirects to https://elsewhere.*\[key\]"),
    ],
)
def test_what_cannot_pass_is_said_at_once_and_without_the_key(
    endpoint: Endpoint, similarity_of: Callable[..., EmbeddingSimilarity], result: Result, told: str
) -> None:
    endpoint.script = [result]
    with pytest.raises(JudgeError, match=told) as caught:
        similarity_of().between("north", ["east"])
    assert KEY[:8] not in str(caught.value)
    assert caught.value.__cause__ is None
    assert len(endpoint.asked) == 1


@pytest.mark.parametrize(("value", "told"), [("", "is not set"), ("a\nb", "holds more"), ("kéy", "holds more")])
def test_key_is_checked_before_anything_is_asked(
    endpoint: Endpoint,
    similarity_of: Callable[..., EmbeddingSimilarity],
    monkeypatch: pytest.MonkeyPatch,
    value: str,
    told: str,
) -> None:
    monkeypatch.setenv("EMBEDDINGS_KEY", value)
    with pytest.raises(JudgeError, match=f"EMBEDDINGS_KEY {told}"):
        similarity_of().prepare(["a"])
    assert endpoint.asked == []


def test_other_length_than_before_is_told(
    endpoint: Endpoint, similarity_of: Callable[..., EmbeddingSimilarity]
) -> None:
    similarity_of().prepare(["a"])
    endpoint.script = [changed(lambda data: [{**each, "embedding": [1.0, 2.0, 3.0]} for each in data])]
    with pytest.raises(JudgeError, match=r"have 3 numbers, and had 2 before; .* remove embeddings\.jsonl"):
        similarity_of().prepare(["b"])


def test_cache_that_cannot_be_used_is_a_run_error(
    similarity_of: Callable[..., EmbeddingSimilarity], tmp_path: Path
) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(RunError, match="folder: the embeddings cannot be read"):
        similarity_of("folder").prepare(["a"])
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot be written"):
        similarity_of("file/embeddings.jsonl").prepare(["a"])


def test_proxy_that_is_no_address_is_told(
    similarity_of: Callable[..., EmbeddingSimilarity], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", "nonsense://x")
    with pytest.raises(JudgeError, match="a proxy of the environment is no address"):
        similarity_of().prepare(["a"])


def test_huge_and_tiny_vectors_have_a_direction(
    endpoint: Endpoint, similarity_of: Callable[..., EmbeddingSimilarity]
) -> None:
    endpoint.script = [
        changed(lambda data: [{**each, "embedding": [(1e-300, 1e300)[each["index"]]] * 2} for each in data])
    ]
    assert similarity_of().between("a", ["b", "a"]) == pytest.approx([1, 1])
