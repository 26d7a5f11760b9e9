import gzip
import hashlib
import os
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import fsspec  # type: ignore[import-untyped]
import pytest
from fsspec import AbstractFileSystem

from app.errors import DocumentError
from ingest.sources import Source, fetch, find_sources
from tests.ingest.edgar import submission


def found(*arguments: Path | str) -> list[str]:
    return [source.location for source in find_sources([str(argument) for argument in arguments])]


def problems(*arguments: Path | str) -> list[str | None]:
    return [source.problem for source in find_sources([str(argument) for argument in arguments])]


def touch(path: Path, content: bytes = b"%PDF-") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return str(path)


def test_a_folder_is_searched_in_order_for_filings_that_are_not_hidden(tmp_path: Path) -> None:
    expected = [touch(tmp_path / name) for name in ("a.PDF", "b.pdf", "c.HTM", "d.html", "deep/er/c.pdf")]
    for name in ("notes.txt", ".hidden.pdf", "._a.pdf", ".e.htm", "deep/no-suffix"):
        touch(tmp_path / name)
    assert found(tmp_path) == expected


def test_of_text_files_a_folder_gives_those_that_edgar_wrote(tmp_path: Path) -> None:
    expected = [touch(tmp_path / f"{name}.txt", submission("8-K").encode()) for name in ("a", "deep/b")]
    touch(tmp_path / "notes.txt", b"Call the auditor.")
    touch(tmp_path / "empty.txt", b"")
    (tmp_path / "dangling.txt").symlink_to(tmp_path / "nowhere")
    os.mkfifo(tmp_path / "pipe.txt")
    assert found(tmp_path) == expected


def test_a_file_is_taken_whatever_its_name(tmp_path: Path) -> None:
    path = touch(tmp_path / "filing.download")
    assert found(path) == [path]


def test_a_source_is_named_by_an_absolute_percent_encoded_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path / "Jahresabschluß 50%.pdf")
    monkeypatch.chdir(tmp_path)
    (source,) = find_sources(["Jahresabschluß 50%.pdf"])
    assert source.uri == f"file://{tmp_path}/Jahresabschlu%C3%9F%2050%25.pdf"
    assert source.stem == "Jahresabschluß 50%"
    assert [s.uri for s in find_sources([source.uri])] == [source.uri]


def test_one_file_named_three_ways_is_one_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    touch(tmp_path / "a.pdf")
    monkeypatch.chdir(tmp_path)
    assert found("a.pdf", tmp_path, f"file://{tmp_path}/a.pdf") == ["a.pdf"]


def test_globs(tmp_path: Path) -> None:
    expected = [touch(tmp_path / "x" / "a.pdf"), touch(tmp_path / "y" / "b.pdf")]
    touch(tmp_path / "y" / "b.txt")
    assert found(tmp_path / "**" / "*.pdf") == expected
    assert problems(tmp_path / "*.docx") == ["nothing matches this pattern"]


def test_a_name_with_glob_characters_is_a_name_first(tmp_path: Path) -> None:
    path = touch(tmp_path / "report[1].pdf")
    assert found(path) == [path]


def test_a_folder_named_like_a_file_is_a_folder(tmp_path: Path) -> None:
    inner = touch(tmp_path / "x.pdf" / "inner.pdf")
    assert found(tmp_path) == [inner]


def test_symbolic_links_are_followed_and_loops_are_not(tmp_path: Path) -> None:
    touch(tmp_path / "real" / "a.pdf")
    (tmp_path / "real" / "loop").symlink_to(tmp_path)
    (tmp_path / "other").symlink_to(tmp_path / "real")
    assert [Path(path).name for path in found(tmp_path)] == ["a.pdf"]


def test_what_cannot_be_read_is_said_before_it_is_opened(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pdf")
    (tmp_path / "dangling.pdf").symlink_to(tmp_path / "nowhere")
    assert problems(tmp_path) == ["cannot be read: No such file or directory", "is neither a file nor a folder"]
    assert problems(tmp_path / "missing.pdf") == ["cannot be read: No such file or directory"]


def test_a_name_that_is_no_text_can_be_shown_and_opened(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/caf\xe9.pdf"
    with open(path, "wb") as file:
        file.write(b"%PDF-")
    (source,) = find_sources([str(tmp_path)])
    assert source.uri.endswith("/caf%E9.pdf")
    source.shown.encode()
    assert fetch(source, tmp_path, 100).size == 5


def test_fetching_hashes_the_file_itself(tmp_path: Path) -> None:
    (source,) = find_sources([touch(tmp_path / "a.pdf", b"%PDF-1.7")])
    file = fetch(source, tmp_path, 8)
    assert (file.path, file.size) == (tmp_path / "a.pdf", 8)
    assert file.sha256 == hashlib.sha256(b"%PDF-1.7").hexdigest()


def test_a_vanished_or_too_large_file_is_an_error_of_its_own(tmp_path: Path) -> None:
    (source,) = find_sources([touch(tmp_path / "a.pdf", b"%PDF-1.7")])
    with pytest.raises(DocumentError, match="limit of 7") as large:
        fetch(source, tmp_path, 7)
    (tmp_path / "a.pdf").unlink()
    with pytest.raises(DocumentError, match="No such file") as gone:
        fetch(source, tmp_path, 8)
    assert (large.value.reason, gone.value.reason) == ("too_large", "unreadable")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_forbidden_file_is_an_error_of_its_own(tmp_path: Path) -> None:
    path = touch(tmp_path / "a.pdf")
    os.chmod(path, 0)
    with pytest.raises(DocumentError, match="Permission denied"):
        fetch(next(find_sources([path])), tmp_path, 8)


def test_any_file_system_that_fsspec_knows(tmp_path: Path) -> None:
    memory = fsspec.filesystem("memory")
    for name in ("/in/a.pdf", "/in/b.pdf", "/in/c.txt"):
        memory.pipe(name, b"%PDF-" + name.encode())
    memory.pipe("/in/d.txt", submission("10-K").encode())
    try:
        assert found("memory://in") == ["memory:///in/a.pdf", "memory:///in/b.pdf", "memory:///in/d.txt"]
        assert found("memory://in/b*") == ["memory:///in/b.pdf"]
        (source,) = find_sources(["memory://in/b.pdf"])
        file = fetch(source, tmp_path, 100)
        assert file.path.parent == tmp_path
        assert file.path.read_bytes() == b"%PDF-/in/b.pdf"
        assert file.sha256 == hashlib.sha256(b"%PDF-/in/b.pdf").hexdigest()
    finally:
        memory.rm("/in", recursive=True)


def test_an_unknown_scheme_is_said(tmp_path: Path) -> None:
    (problem,) = problems("nosuch://host/a.pdf")
    assert problem is not None
    assert "nosuch" in problem


class Odd(AbstractFileSystem):  # type: ignore[misc]
    """A file system whose errors derive from nothing that one could expect."""

    protocol = "odd"

    def isdir(self, path: str) -> bool:
        if "list" in path:
            raise OddError("quota exceeded")
        return False

    def _open(self, path: str, *_: object, **__: object) -> None:
        raise OddError("token expired")


class OddError(Exception):
    pass


def test_a_file_systems_own_errors_are_the_files_errors(tmp_path: Path) -> None:
    fsspec.register_implementation("odd", Odd)
    assert problems("odd://list/") == ["cannot be listed: quota exceeded"]
    (source,) = find_sources(["odd://bucket/a.pdf"])
    with pytest.raises(DocumentError, match="token expired"):
        fetch(source, tmp_path, 100)


class Server(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        status = {"/a.pdf": 200, "/big.pdf": 200}.get(self.path, 404)
        self.send_response(status)
        self.end_headers()
        if status == 200:
            self.wfile.write(b"%PDF-" + b"x" * (1_000_000 if self.path == "/big.pdf" else 3))

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Server) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


def test_http(tmp_path: Path, server: str) -> None:
    (source,) = find_sources([f"http://user:secret@{server}/a.pdf"])
    assert source.uri == f"http://{server}/a.pdf"
    assert "secret" not in source.shown
    file = fetch(source, tmp_path, 100)
    assert (file.path.read_bytes(), file.size) == (b"%PDF-xxx", 8)


@pytest.mark.parametrize(
    ("path", "message", "reason"),
    [("/none.pdf", "HTTP 404 Not Found", "unreadable"), ("/big.pdf", "limit of 1000 bytes", "too_large")],
)
def test_http_errors_leave_nothing_behind(tmp_path: Path, server: str, path: str, message: str, reason: str) -> None:
    with pytest.raises(DocumentError, match=message) as caught:
        fetch(Source(f"http://{server}{path}", f"http://{server}{path}"), tmp_path, 1000)
    assert caught.value.reason == reason
    assert list(tmp_path.iterdir()) == []


def test_an_unreachable_host_is_an_error_of_its_own(tmp_path: Path) -> None:
    with pytest.raises(DocumentError) as caught:
        fetch(Source("http://127.0.0.1:1/a.pdf", "http://127.0.0.1:1/a.pdf"), tmp_path, 1000)
    assert caught.value.reason == "unreadable"


@pytest.mark.parametrize("url", ["http://user:s3cret@[::1/a.pdf", "s3://user:s3cret@[x/a.pdf", "file://[x/a.pdf"])
def test_a_url_that_is_none_is_its_own_failure(tmp_path: Path, url: str) -> None:
    (source,) = find_sources([url])
    with pytest.raises(DocumentError, match=r"cannot be (read|listed)"):
        fetch(source, tmp_path, 1000)
    assert "s3cret" not in source.shown + source.uri
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_trickles_is_left(tmp_path: Path, server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ingest.sources._MOST_SECONDS", 0.0)
    with pytest.raises(DocumentError, match="not downloaded within") as caught:
        fetch(Source(f"http://{server}/a.pdf", f"http://{server}/a.pdf"), tmp_path, 1000)
    assert caught.value.reason == "timeout"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "shown"), [("a\nb.pdf", r"a\nb.pdf"), ("\x1b[31m.pdf", r"\x1b[31m.pdf"), ("é.pdf", "é.pdf")]
)
def test_a_name_is_shown_printable(name: str, shown: str) -> None:
    assert Source(f"file:///{name}", name).shown == shown


LONG = bytes(range(256)) * 400


class Cutting(BaseHTTPRequestHandler):
    """Sends a third of the file at most, then hangs up; `/gzip.pdf` comes encoded though nobody asked for it."""

    ranges: list[str | None] = []  # noqa: RUF012  for all requests

    def do_GET(self) -> None:
        wanted = self.headers["Range"]
        self.ranges.append(wanted)
        known = self.path != "/forgetful.pdf" and self.headers["If-Range"] == '"1"'
        start = int(wanted[len("bytes=") : -1]) if wanted and known else 0
        coded = self.path == "/gzip.pdf"
        body = gzip.compress(bytes(300_000)) if coded else LONG[start:]
        self.send_response(206 if start else 200)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(len(body)))
        if coded:
            self.send_header("Content-Encoding", "gzip")
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(LONG) - 1}/{len(LONG)}")
        self.end_headers()
        self.wfile.write(body if coded else body[: len(LONG) // 3 + 1])

    def log_message(self, *_: object) -> None:
        """Quiet."""


@pytest.fixture
def cutting() -> Iterator[str]:
    Cutting.ranges.clear()
    with HTTPServer(("127.0.0.1", 0), Cutting) as http:
        thread = threading.Thread(target=http.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{http.server_port}"
        http.shutdown()
        thread.join()


def test_a_download_goes_on_where_its_connection_broke(tmp_path: Path, cutting: str) -> None:
    file = fetch(Source(f"{cutting}/a.pdf", f"{cutting}/a.pdf"), tmp_path, 1_000_000)
    assert file.path.read_bytes() == LONG
    assert Cutting.ranges == [None, "bytes=34134-", "bytes=68268-"]
    assert list(tmp_path.iterdir()) == [file.path]


def test_where_a_server_cannot_go_on_and_always_breaks_it_is_left(tmp_path: Path, cutting: str) -> None:
    with pytest.raises(DocumentError, match="peer closed connection"):
        fetch(Source(f"{cutting}/forgetful.pdf", f"{cutting}/forgetful.pdf"), tmp_path, 1_000_000)
    assert len(Cutting.ranges) == 2
    assert list(tmp_path.iterdir()) == []


def test_what_comes_encoded_is_decoded_within_the_limit(tmp_path: Path, cutting: str) -> None:
    source = Source(f"{cutting}/gzip.pdf", f"{cutting}/gzip.pdf")
    assert fetch(source, tmp_path, 300_000).path.read_bytes() == bytes(300_000)
    with pytest.raises(DocumentError, match="more than the limit of 299999 bytes"):
        fetch(source, tmp_path, 299_999)
