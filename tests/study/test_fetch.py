"""`judgelab fetch` from a server on loopback that resumes, does not, breaks off, lies, and is silent."""

from __future__ import annotations

import csv
import fcntl
import gzip
import hashlib
import io
import json
import os
import pickle
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from typer.testing import CliRunner

from judgelab.cli import app
from judgelab.errors import DataError, JudgelabError, RunError
from judgelab.study.sources import read_position_bias, read_prometheus
from judgelab.study.sources.catalogue import CataloguedFile, DataSet, read_catalogue
from judgelab.study.sources.download import Patience
from judgelab.study.sources.fetch import fetch
from judgelab.study.sources.llmbar import read_llmbar

QUICK = Patience(attempts=3, first_wait=0.001, connect=2, read=0.3)
COMMIT = "0123456789abcdef0123456789abcdef01234567"
BODY = bytes(range(256)) * 40
SECOND = b"second file"


class Server:
    """Serves ``files`` by path. ``faults`` has, by path, what the next requests get in place of the file."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.files = files
        self.ranges = True
        self.faults: dict[str, list[dict]] = {}
        self.requests: list[tuple[str, str | None]] = []
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._http.handle_error = lambda *_: None  # a client that hangs up is part of the tests
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self.released = threading.Event()
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self.released.set()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def _handler(server):  # noqa: N805 - the handler's methods have a self of their own
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def log_message(self, *_):
                pass

            def do_GET(self):
                server.requests.append((self.path, self.headers.get("Range")))
                waiting = server.faults.get(self.path, [])
                server.answer(self, waiting.pop(0) if waiting else {})

        return Handler

    def answer(self, handler: BaseHTTPRequestHandler, fault: dict) -> None:
        if fault.get("silent"):
            self.released.wait(5)
            handler.close_connection = True
            return
        content = fault.get("body", self.files.get(handler.path))
        status = fault.get("status", 200 if content is not None else 404)
        headers = dict(fault.get("headers", {}))
        content = content if content is not None and status < 400 else b"nothing"
        begin = re.fullmatch(r"bytes=(\d+)-", handler.headers.get("Range") or "")
        if begin and self.ranges and status == 200 and not fault.get("whole"):
            start, size = int(begin.group(1)), len(content)
            if start >= size:
                status, headers["Content-Range"], content = 416, f"bytes */{size}", b""
            else:
                shifted = start + fault.get("shift", 0)
                status, headers["Content-Range"] = 206, f"bytes {shifted}-{size - 1}/{size}"
                content = content[shifted:]
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name, value)
        if not fault.get("endless"):
            handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content[: fault.get("cut", len(content))])
        if "cut" in fault or fault.get("endless"):
            handler.close_connection = True


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def catalogued(local: str, content: bytes, **changes) -> CataloguedFile:
    values = {"remote": (f"data/{local}",), "commit": COMMIT, "sha256": sha256(content), "size": len(content)}
    return CataloguedFile(local=local, **{**values, **changes})


def path_of(remote: str, commit: str = COMMIT) -> str:
    return f"/owner/repo/{commit}/{remote}"


ONE = path_of("data/one.bin")


@pytest.fixture
def server(project) -> Iterator[Server]:
    made = Server({ONE: BODY, path_of("data/deep/two%20b.txt"): SECOND})
    yield made
    made.close()


@pytest.fixture
def use(monkeypatch):
    """Make the catalogue hold one set of these files."""

    def make(*files: CataloguedFile) -> None:
        found = DataSet("small", "A small set", "owner/repo", COMMIT, "MIT (LICENSE)", "Someone (2024)", files)
        monkeypatch.setattr("judgelab.study.sources.fetch.read_catalogue", lambda: {"small": found})

    make(catalogued("one.bin", BODY), catalogued("deep/two b.txt", SECOND))
    return make


def run(server: Server, folder: Path, lines: list[str] | None = None) -> list[Path]:
    say = lines.append if lines is not None else lambda line: None
    return fetch(["small"], to=folder, base_url=server.url + "/", patience=QUICK, say=say)


def files_in(folder: Path) -> dict[str, bytes]:
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_files_are_fetched_with_licence_and_citation(server, use, tmp_path):
    lines: list[str] = []
    (folder,) = run(server, tmp_path / "to", lines)
    assert folder == tmp_path / "to" / "small"
    found = files_in(folder)
    notice = found.pop("NOTICE").decode()
    assert found == {"one.bin": BODY, "deep/two b.txt": SECOND}
    text = "\n".join(lines)
    for part in ("A small set", "MIT (LICENSE)", "Someone (2024)", f"owner/repo at {COMMIT}", "2 of 2 files fetched"):
        assert part in text
    assert f"commit: {COMMIT}" in notice
    assert "data/one.bin" in notice


def test_what_is_there_is_verified_and_not_fetched_again(server, use, tmp_path):
    run(server, tmp_path)
    asked = len(server.requests)
    lines: list[str] = []
    run(server, tmp_path, lines)
    assert len(server.requests) == asked
    assert "0 of 2 files fetched, 2 were there already" in lines[-1]
    (tmp_path / "small" / "one.bin").write_bytes(BODY[:-1] + b"x")
    run(server, tmp_path, lines)
    assert (tmp_path / "small" / "one.bin").read_bytes() == BODY
    assert server.requests[asked:] == [(ONE, None)]
    assert lines[-1].strip() == "1 of the fetched files were there with another SHA-256 and have been replaced"


def test_a_broken_body_goes_on_where_it_stopped(server, use, tmp_path):
    server.faults[ONE] = [{"cut": 1000}, {"cut": 500}]
    run(server, tmp_path)
    assert [asked for path, asked in server.requests if path == ONE] == [None, "bytes=1000-", "bytes=1500-"]
    assert (tmp_path / "small" / "one.bin").read_bytes() == BODY


def test_a_later_call_goes_on_where_an_earlier_one_gave_up(server, use, tmp_path):
    server.faults[ONE] = [{"cut": 1000}] + [{"status": 503}] * 3
    with pytest.raises(
        RunError, match=r"status 503; given up after 4 tries with 1,000 bytes; the same command goes on"
    ):
        run(server, tmp_path)
    assert not (tmp_path / "small" / "one.bin").exists()
    server.requests.clear()
    run(server, tmp_path)
    assert server.requests[0] == (ONE, "bytes=1000-")
    assert set(files_in(tmp_path / "small")) == {"NOTICE", "one.bin", "deep/two b.txt"}


@pytest.mark.parametrize("there", [BODY[:100], b"wrong beginning", BODY, b"x" * len(BODY), BODY + b"more"])
@pytest.mark.parametrize("ranges", [True, False])
def test_whatever_an_earlier_call_left_the_file_is_right(server, use, tmp_path, there, ranges):
    server.ranges = ranges
    part = tmp_path / "small" / ".one.bin.0.part"
    part.parent.mkdir()
    part.write_bytes(there)
    run(server, tmp_path)
    assert set(files_in(tmp_path / "small")) == {"NOTICE", "one.bin", "deep/two b.txt"}
    assert (tmp_path / "small" / "one.bin").read_bytes() == BODY


@pytest.mark.parametrize(
    "fault",
    [
        {"shift": 7},  # another range than the one that was asked for
        {"whole": True},  # the whole file although a part was asked for
        {"status": 416, "headers": {"Content-Range": "bytes */3"}},
        {"status": 416},
        {"status": 206, "headers": {"Content-Range": "bytes 0-9/10"}},
        {"status": 206},
        {"status": 429, "headers": {"Retry-After": "0"}},
        {"status": 503, "headers": {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}},
        {"silent": True},
        {"endless": True, "cut": 5000},
    ],
    ids=str,
)
def test_a_server_that_resumes_badly_costs_a_request_and_no_byte(server, use, tmp_path, fault):
    server.faults[ONE] = [{"cut": 1000}, fault]
    run(server, tmp_path)
    assert (tmp_path / "small" / "one.bin").read_bytes() == BODY
    assert sum(path == ONE for path, _ in server.requests) in (2, 3)


def test_a_compressed_body_is_read_as_the_file(server, use, tmp_path):
    compressed = {"body": gzip.compress(BODY), "headers": {"Content-Encoding": "gzip"}, "whole": True}
    server.faults[ONE] = [{"cut": 100}, compressed]
    run(server, tmp_path)
    assert (tmp_path / "small" / "one.bin").read_bytes() == BODY


def test_a_redirect_is_followed_and_a_circle_is_not(server, use, tmp_path):
    server.files["/elsewhere"] = BODY
    server.faults[ONE] = [{"status": 302, "headers": {"Location": "/elsewhere"}}]
    run(server, tmp_path)
    assert (tmp_path / "small" / "one.bin").read_bytes() == BODY
    server.faults[ONE] = [{"status": 302, "headers": {"Location": ONE}}] * 20
    with pytest.raises(RunError, match="redirects more than 5 times"):
        run(server, tmp_path / "again")


@pytest.mark.parametrize("content", [BODY[:-1] + b"x", BODY[:-1], b"", b"<html>sorry</html>"])
def test_a_wrong_hash_never_replaces_a_file(server, use, tmp_path, content):
    server.files[ONE] = content
    target = tmp_path / "small" / "one.bin"
    target.parent.mkdir()
    target.write_bytes(b"mine")
    with pytest.raises(DataError, match=rf"small: data/one.bin: SHA-256 {sha256(content)} .*nothing was replaced"):
        run(server, tmp_path)
    assert files_in(tmp_path / "small") == {"one.bin": b"mine"}


def test_more_bytes_than_the_file_has_are_not_taken(server, use, tmp_path):
    server.files[ONE] = BODY + b"x"
    with pytest.raises(RunError, match=r"sends more than the 10,240 bytes that the file may have; nothing is kept"):
        run(server, tmp_path)
    assert files_in(tmp_path / "small") == {}


@pytest.mark.parametrize(
    ("fault", "tries", "message"),
    [
        ({"status": 404}, 1, "the server does not have it (status 404); 0 of 2 files of small are there"),
        ({"status": 403}, 1, "answers with status 403; 200 or 206 is needed"),
        ({"status": 500}, 3, "answers with status 500; given up after 3 tries with 0 bytes"),
        ({"cut": 0}, 3, "the connection failed"),
        ({"silent": True}, 3, "silent for too long; given up after 3 tries"),
    ],
    ids=str,
)
def test_a_server_that_fails_is_asked_a_bounded_number_of_times(server, use, tmp_path, fault, tries, message):
    server.faults[ONE] = [fault] * 10
    with pytest.raises(RunError, match=re.escape(message)):
        run(server, tmp_path)
    assert len(server.requests) == tries


def test_a_server_that_sends_a_byte_a_time_is_given_up(server, use, tmp_path):
    server.faults[ONE] = [{"cut": 1}] * 100
    with pytest.raises(RunError, match="given up after 30 tries with 30 bytes"):
        run(server, tmp_path)


def test_no_server_at_all(server, use, tmp_path):
    server.close()
    with pytest.raises(RunError, match="given up after 3 tries"):
        run(server, tmp_path)


def test_an_optional_file_may_be_missing(server, use, tmp_path):
    use(catalogued("one.bin", BODY), catalogued("LICENSE", b"MIT", optional=True))
    lines: list[str] = []
    run(server, tmp_path, lines)
    assert "1 files that no reader needs are not on the server: LICENSE" in lines[-1]
    assert set(files_in(tmp_path / "small")) == {"NOTICE", "one.bin"}


def test_a_file_may_be_of_a_commit_of_its_own(server, use, tmp_path):
    server.files[path_of("README.md", "7f7ee7e")] = b"tables"
    use(catalogued("README.7f7ee7e.md", b"tables", remote=("README.md",), commit="7f7ee7e"))
    (folder,) = run(server, tmp_path)
    assert (folder / "README.7f7ee7e.md").read_bytes() == b"tables"
    assert "README.md (at 7f7ee7e)" in (folder / "NOTICE").read_text()


def test_an_original_is_reduced_and_proved_by_the_hash_of_what_is_kept(server, use, tmp_path):
    answer = {"idx": 1, "response_source": "s", "category": "math", "gpt4_score": [5]}
    kept = json.dumps([answer]).encode()
    server.files[path_of("data/x.json")] = json.dumps([{**answer, "instruction": "long"}], indent=4).encode()
    use(catalogued("x.scores.json", kept, remote=("data/x.json",), reduction="scores_only"))
    server.faults[path_of("data/x.json")] = [{"cut": 20}]
    (folder,) = run(server, tmp_path)
    assert files_in(folder).keys() == {"NOTICE", "x.scores.json"}
    assert (folder / "x.scores.json").read_bytes() == kept
    # a mirror that holds the reduced file serves as well
    server.files[path_of("data/x.json")] = kept
    assert (run(server, tmp_path / "mirror")[0] / "x.scores.json").read_bytes() == kept
    server.files[path_of("data/x.json")] = json.dumps([{**answer, "gpt4_score": [4]}]).encode()
    with pytest.raises(DataError, match=r"data/x.json reduced to x.scores.json: SHA-256"):
        run(server, tmp_path / "wrong")
    server.files[path_of("data/x.json")] = b"not JSON"
    with pytest.raises(DataError, match=r"data/x\.json: not valid JSON"):
        run(server, tmp_path / "broken")


def test_an_original_larger_than_the_limit_is_not_taken(server, use, tmp_path, monkeypatch):
    monkeypatch.setattr("judgelab.study.sources.fetch.LARGEST_ORIGINAL", 100)
    use(catalogued("x.json", b"[]", remote=("data/one.bin",), reduction="scores_only"))
    with pytest.raises(RunError, match="more than the 100 bytes"):
        run(server, tmp_path)


def test_two_processes_do_not_fetch_into_one_folder(server, use, tmp_path):
    folder = tmp_path / "small"
    folder.mkdir()
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        with pytest.raises(RunError, match="another process is fetching into it"):
            run(server, tmp_path)
    finally:
        os.close(handle)
    run(server, tmp_path)


def test_a_file_that_cannot_be_written_is_named(server, use, tmp_path):
    (tmp_path / "small" / ".one.bin.0.part").mkdir(parents=True)
    with pytest.raises(RunError, match=r"cannot write .*\.one\.bin\.0\.part"):
        run(server, tmp_path)


def test_a_folder_that_cannot_be_made_is_named(server, use, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot make the folder"):
        run(server, tmp_path / "file")


@pytest.mark.parametrize(
    "url", ["", "ftp://x", "x.org", "http://", "https://x.org/?a=b", "https://x.org/#a", "file:///x"]
)
def test_what_is_no_address_is_refused(project, url):
    with pytest.raises(DataError, match=r"an address as https://raw\.githubusercontent\.com is needed"):
        fetch(["evalica"], base_url=url)


def test_an_address_s_password_is_not_shown(server, use, tmp_path):
    server.files.clear()
    base = server.url.replace("://", "://name:secret@")
    with pytest.raises(RunError) as caught:
        fetch(["small"], to=tmp_path, base_url=base, patience=QUICK)
    assert "secret" not in str(caught.value)


# The command


def test_the_command_lists_fetches_and_refuses(server, use, project, monkeypatch):
    monkeypatch.chdir(project.root)
    runner = CliRunner()
    listed = runner.invoke(app, ["fetch"])
    assert listed.output == "small: A small set; 2 files, 0.0 MB; MIT\n"
    done = runner.invoke(app, ["fetch", "small", "--base-url", server.url])
    assert done.exit_code == 0, done.output
    assert done.output.splitlines()[-1].endswith("each with its SHA-256: outputs/fetched/small")
    assert (project.outputs / "fetched" / "small" / "one.bin").read_bytes() == BODY
    everything = runner.invoke(app, ["fetch", "all", "--base-url", server.url, "--to", "here"])
    assert everything.exit_code == 0
    assert (project.root / "here" / "small" / "one.bin").is_file()
    wrong = runner.invoke(app, ["fetch", "smal"])
    assert isinstance(wrong.exception, JudgelabError)
    assert "1 of 1 names are not in the catalogue; first 'smal'; allowed are small and all" in str(wrong.exception)


# The catalogue


def test_the_catalogue_is_whole():
    catalogue = read_catalogue()
    assert len(catalogue) == 10
    for one in catalogue.values():
        assert one.files
        assert all((one.title, one.licence, one.citation))
        assert re.fullmatch("[0-9a-f]{40}", one.commit)
        assert all(len(file.remote) == 1 or file.reduction for file in one.files)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"commit": "main"}, "1 values cannot be used; first 'main'"),
        ({"repository": "https://x/y"}, "first 'https://x/y'"),
        ({"files": [{"local": "../x", "remote": "x", "sha256": "0" * 64, "bytes": 1}]}, "first '../x'"),
        ({"files": [{"local": "/x", "remote": "x", "sha256": "0" * 64, "bytes": 1}]}, "first '/x'"),
        ({"files": [{"local": "x", "remote": "x", "sha256": "0", "bytes": 1}]}, "first '0'"),
        ({"files": [{"local": "x", "remote": "x", "bytes": 1}]}, "has no 'sha256'"),
        ({"files": [{"local": "x", "remote": "x", "sha256": "0" * 64, "bytes": 1}] * 2}, "first 'x'"),
    ],
)
def test_a_catalogue_that_could_harm_is_refused(tmp_path, change, message):
    entry = {"title": "t", "repository": "o/r", "commit": COMMIT, "licence": "l", "citation": "c"}
    files = [{"local": "x", "remote": "x", "sha256": "0" * 64, "bytes": 1}]
    path = tmp_path / "catalogue.json"
    path.write_text(json.dumps({"s": {**entry, "files": files, **change}}))
    with pytest.raises(DataError, match=re.escape(message)):
        read_catalogue(path)


@pytest.mark.data
def test_the_catalogue_is_that_of_the_notices(shared):
    """Every file of ../shared/data with its bytes, and the repository and commit of its NOTICE."""
    catalogue = read_catalogue()
    folders = {path.parent.name: path.parent for path in (shared / "data").glob("*/NOTICE")}
    assert set(catalogue) == set(folders)
    for name, folder in folders.items():
        one = catalogue[name]
        there = {local: content for local, content in files_in(folder).items() if local != "NOTICE"}
        assert {file.local: (file.sha256, file.size) for file in one.files} == {
            local: (sha256(content), len(content)) for local, content in there.items()
        }
        notice = (folder / "NOTICE").read_text(encoding="utf-8")
        assert f"source: https://github.com/{one.repository}\n" in notice
        assert f"commit: {one.commit}\n" in notice
        listed = re.findall(r"^  (\S+/\S+|\S+\.\w+)$", notice, re.MULTILINE)
        assert set(listed) <= {path for file in one.files for path in file.remote}


def originals(shared: Path) -> dict[str, bytes]:
    """What the repositories would serve: byte-identical files, and originals made up around the reduced ones."""
    served = {}
    for one in read_catalogue().values():
        for file in one.files:
            content = (shared / "data" / one.name / file.local).read_bytes()
            for path, original in zip(file.remote, as_original(file, content), strict=True):
                served[f"/{one.repository}/{file.commit}/{path}"] = original
    return served


def as_original(file: CataloguedFile, content: bytes) -> list[bytes]:
    if file.reduction is None:
        return [content]
    if file.reduction == "scores_only":
        entries = [{**entry, "instruction": "é", "gpt4_feedback": ["x"] * 3} for entry in json.loads(content)]
        return [json.dumps(entries, indent=4, ensure_ascii=False).encode()]
    if file.reduction == "without_instance":
        document = json.loads(content)
        instances = [{"id": one.pop("id"), "instance": "é\n", **one} for one in document["instances"]]
        return [json.dumps({**document, "instances": instances}, indent=4).encode()]
    rows = list(csv.DictReader(io.StringIO(content.decode(), newline="")))
    if file.reduction == "choices_of_pickle":
        replies = {row["key"]: f"Verdict: [[{row['choice']}]] not [[A]]" if row["choice"] else "" for row in rows}
        return [pickle.dumps({**replies, "1;same;same too": "EM"})]
    return [
        f"Extracted {row['extracted']} answers from the responses (extraction success rate 99.73%)\n"
        f"{row['consistent']} out of {row['of']} answers are consistent. (A vs. B <-> B vs. A) "
        f"The consistent rate is {row['rate_percent']}%\n".encode()
        for row in rows
    ]


@pytest.mark.data
def test_everything_can_be_fetched_and_lies_as_in_the_shared_data(shared, project, tmp_path):
    server = Server(originals(shared))
    try:
        folders = fetch(["all"], to=tmp_path / "sets", base_url=server.url, patience=Patience(first_wait=0.01))
    finally:
        server.close()
    for folder in folders:
        found, wanted = files_in(folder), files_in(shared / "data" / folder.name)
        assert {**found, "NOTICE": b""} == {**wanted, "NOTICE": b""}
    assert len(read_position_bias(tmp_path / "sets" / "position_bias_mtbench").verdicts) == 14400
    assert len(read_prometheus(tmp_path / "sets" / "prometheus_gpt4_repeats")) == 1920
    assert len(read_llmbar(tmp_path / "sets" / "llmbar_natural", "natural").items) == 100
