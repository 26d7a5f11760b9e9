"""What to ingest: folders, globs, files and URLs become sources, each with the URI that names its filing."""

import glob
import hashlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any
from urllib.parse import unquote, urlsplit, urlunsplit
from urllib.request import url2pathname

import fsspec  # type: ignore[import-untyped]
import httpx

from app.errors import DocumentError
from ingest.formats.submission import is_submission
from ingest.resuming import Partial, TooLarge, Unusable
from ingest.sidecars import is_sidecar

_URL = re.compile(r"[a-z][a-z0-9+.-]+(::[a-z][a-z0-9+.-]+)*://", re.IGNORECASE)
_BLOCK = 1 << 20
_MOST_SECONDS = 1800.0
_SUFFIXES = (".pdf", ".htm", ".html", ".xhtml")
_HEAD = 4096
_SUFFIX = re.compile(r"\.[a-z]{1,5}", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Source:
    """One file to ingest, here or elsewhere."""

    uri: str
    """Names the logical filing: `file:///absolute/path.pdf`, percent-encoded, or the URL without credentials."""
    location: str
    """A local path, or a URL as given."""
    problem: str | None = None
    """Why it cannot be read; known without opening it."""

    @property
    def remote(self) -> bool:
        return _URL.match(self.location) is not None

    @property
    def stem(self) -> str:
        return stem_of(self.uri)

    @property
    def shown(self) -> str:
        """For people: printable, without credentials."""
        text = without_credentials(self.location) if self.remote else self.location
        text = os.fsencode(text).decode("utf-8", "replace")
        return text if text.isprintable() else text.encode("unicode_escape").decode()


@dataclass(frozen=True, slots=True)
class LocalFile:
    """A source's bytes on this machine."""

    path: Path
    sha256: str
    size: int
    """Bytes."""


def stem_of(uri: str) -> str:
    """File name without its suffix, decoded."""
    return Path(unquote(urlsplit(uri).path)).stem


def find_sources(arguments: Sequence[str]) -> Iterator[Source]:
    """The sources that paths, globs and URLs stand for: in the arguments' order, sorted within each, no URI twice.

    Folders are searched for `*.pdf`, `*.htm` and `*.html` in any case and for `*.txt` that begin like an EDGAR
    submission, hidden files left out; symbolic links are followed, loops are not.
    """
    seen: set[str] = set()
    for argument in arguments:
        for source in _expand(argument):
            if source.uri not in seen:
                seen.add(source.uri)
                yield source


def _expand(argument: str) -> Iterator[Source]:
    if _URL.match(argument):
        if not argument.lower().startswith("file://"):
            yield from _remote(argument)
            return
        try:
            argument = url2pathname(urlsplit(argument).path)
        except ValueError as error:
            yield Source(argument, argument, f"cannot be read: {error}")
            return
    argument = os.path.expanduser(argument)  # not every shell does it within NAME=~/folder
    if os.path.lexists(argument) or not glob.has_magic(argument):
        yield from _local(argument)
        return
    matches = sorted(glob.glob(argument, recursive=True))
    if not matches:
        yield Source(_file_uri(argument), argument, "nothing matches this pattern")
    for match in matches:
        if not is_sidecar(match):
            yield from _local(match)


def _local(path: str) -> Iterator[Source]:
    if not os.path.isdir(path):
        yield _file(path)
        return
    visited: set[tuple[int, int]] = set()
    unreadable: list[OSError] = []
    for folder, folders, files in os.walk(path, followlinks=True, onerror=unreadable.append):
        status = os.stat(folder)
        if (status.st_dev, status.st_ino) in visited:
            folders.clear()
            continue
        visited.add((status.st_dev, status.st_ino))
        folders.sort()
        for name in sorted(files):
            path = os.path.join(folder, name)
            if not name.startswith(".") and _is_filing(name, partial(_head, path)):
                yield _file(path)
    for error in unreadable:
        yield Source(_file_uri(str(error.filename)), str(error.filename), f"folder cannot be read: {error.strerror}")


def _is_filing(name: str, head: Callable[[], bytes]) -> bool:
    """Whether a file of a folder is to be ingested; others must be named one by one."""
    suffix = os.path.splitext(name)[1].lower()
    return suffix in _SUFFIXES or (suffix == ".txt" and is_submission(head()))


def _head(path: str) -> bytes:
    """The beginning of a regular file; nothing where there is none."""
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return b""
        with open(path, "rb") as file:
            return file.read(_HEAD)
    except OSError:
        return b""


def _file(path: str) -> Source:
    problem = None
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            problem = "is neither a file nor a folder"
    except (OSError, ValueError) as error:
        problem = f"cannot be read: {getattr(error, 'strerror', None) or error}"
    return Source(_file_uri(path), path, problem)


def _file_uri(path: str) -> str:
    return Path(os.path.abspath(path)).as_uri()


def _remote(url: str) -> Iterator[Source]:
    """One source, or those that a folder or glob on a file system stands for; HTTP has neither."""
    if url.lower().startswith(("http://", "https://")):
        yield Source(without_credentials(url), url)
        return
    try:
        system, path = fsspec.core.url_to_fs(url)
        if glob.has_magic(path):
            found = sorted(system.glob(path))
        elif system.isdir(path):
            found = sorted(name for name in system.find(path) if _is_filing(name, partial(system.head, name, _HEAD)))
        else:
            found = [path]
        urls = [url] if found == [path] else [system.unstrip_protocol(name) for name in found]
    except Exception as error:  # noqa: BLE001 - every file system raises errors of its own
        yield Source(without_credentials(url), url, f"cannot be listed: {_explained(error)}")
        return
    if not urls:
        yield Source(without_credentials(url), url, "no PDF, HTML or EDGAR text file there")
    for each in urls:
        yield Source(without_credentials(each), each)


def without_credentials(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:  # a host that is none: what is wrong is said when it is fetched
        return re.sub("(?<=://).*@", "", url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def fetch(source: Source, folder: Path, max_bytes: int) -> LocalFile:
    """The source's bytes, hashed; a remote one is copied into `folder` (the caller removes it).

    Raises DocumentError with reason unreadable, too_large or timeout.
    """
    if source.problem:
        raise DocumentError(source.problem, "unreadable")
    try:
        if not source.remote:
            path = Path(source.location)
            size = path.stat().st_size
            if size > max_bytes:
                raise DocumentError(f"{size} bytes, more than the limit of {max_bytes}", "too_large")
            return LocalFile(path, hash_file(path), size)
        return _download(source, folder, max_bytes)
    except DocumentError:
        raise
    except Exception as error:
        raise DocumentError(f"cannot be read: {_explained(error)}", "unreadable") from error


def _explained(error: Exception) -> str:
    if isinstance(error, httpx.HTTPStatusError):
        return f"HTTP {error.response.status_code} {error.response.reason_phrase}"
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def hash_file(path: Path) -> str:
    """SHA-256 in hex. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _download(source: Source, folder: Path, max_bytes: int) -> LocalFile:
    suffix = Path(unquote(urlsplit(source.uri).path)).suffix
    kept = suffix if _SUFFIX.fullmatch(suffix) else ""
    path = folder / f"{hashlib.sha256(source.uri.encode()).hexdigest()[:16]}{kept}"
    try:
        if source.location.lower().startswith(("http://", "https://")):
            _over_http(source.location, path, max_bytes)
        else:
            _from_file_system(source.location, path, max_bytes)
    except BaseException:
        path.unlink(missing_ok=True)
        raise
    return LocalFile(path, hash_file(path), path.stat().st_size)


def _over_http(url: str, path: Path, max_bytes: int) -> None:
    """Goes on where a connection broke, as long as each brings more. A server that stalls is left after 30 s."""
    part, most, deadline = Partial.beside(path), 0, time.monotonic() + _MOST_SECONDS
    try:
        while True:
            try:
                _stream(url, part, max_bytes, deadline)
                part.finish(path, max_bytes)
                return
            except (httpx.TransportError, Unusable):
                if part.size <= most:
                    raise
                most = part.size
    except TooLarge:
        raise DocumentError(f"more than the limit of {max_bytes} bytes", "too_large") from None
    finally:
        part.discard()


def _stream(url: str, part: Partial, max_bytes: int, deadline: float) -> None:
    with httpx.stream("GET", url, follow_redirects=True, timeout=30.0, headers=part.headers()) as response:
        if response.status_code != httpx.codes.REQUESTED_RANGE_NOT_SATISFIABLE:
            response.raise_for_status()
        with part.opened(response) as file:
            for block in response.iter_raw():
                if time.monotonic() > deadline:
                    raise DocumentError(f"not downloaded within {_MOST_SECONDS:.0f} s", "timeout")
                file.write(block)
                if file.tell() > max_bytes:
                    raise TooLarge


def _from_file_system(url: str, path: Path, max_bytes: int) -> None:
    size = 0
    opened: IO[bytes] | Any
    with fsspec.open(url, "rb") as opened, path.open("wb") as copy:
        while block := opened.read(_BLOCK):
            size += copy.write(block)
            if size > max_bytes:
                raise DocumentError(f"more than the limit of {max_bytes} bytes", "too_large")
