"""A download that goes on where it was cut: its bytes as they came, and of which version of the file they are.

Range and If-Range of RFC 9110 (sections 13.1.5 and 14): a server that has another version by now, or knows no ranges,
sends all of it, and the download begins anew.
"""

import json
import os
import re
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import httpx

_BLOCK = 1 << 20
_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+|\*)")


class Unusable(Exception):
    """What is here and what the server sends do not fit; what is here is gone, and the next attempt begins anew."""


class TooLarge(Exception):
    """More bytes than allowed."""


@dataclass(frozen=True, slots=True)
class Partial:
    """What there is of a file, in a hidden file beside where it will be, or of that name alone."""

    path: Path

    @classmethod
    def beside(cls, target: Path) -> "Partial":
        return cls(target.with_name(f".{target.name}.part"))

    @property
    def _note(self) -> Path:
        return self.path.with_name(f"{self.path.name}.json")

    @property
    def size(self) -> int:
        """Bytes, as they were sent."""
        return self.path.stat().st_size if self.path.exists() else 0

    def headers(self, encoding: str = "identity") -> dict[str, str]:
        """Of the next request; `encoding` is accepted where nothing is here."""
        kept = self._kept()
        if not kept or not kept["version"] or not self.size:
            return {"Accept-Encoding": encoding}
        going_on = {"Range": f"bytes={self.size}-", "If-Range": kept["version"]}
        return {"Accept-Encoding": kept["encoding"] or "identity", **going_on}

    @contextmanager
    def opened(self, response: httpx.Response) -> Iterator[BinaryIO]:
        """To write the raw bytes of a 200 or 206 to. Raises Unusable, on a 416 too."""
        if response.status_code == httpx.codes.OK:
            self.discard()
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("wb") as file:
                self._remember(response)
                yield file
            return
        part = _RANGE.fullmatch(response.headers.get("content-range", ""))
        kept = self._kept() or {}
        fits = response.status_code == httpx.codes.PARTIAL_CONTENT and part and int(part[1]) == self.size
        if not fits or response.headers.get("content-encoding", "") != kept.get("encoding"):
            self.discard()
            raise Unusable("the rest does not fit what is here")
        with self.path.open("ab") as file:
            yield file

    def finish(self, target: Path, most: int | None = None) -> int:
        """Put it, decoded, in its place; returns its bytes. Raises TooLarge, Unusable, OSError; then nothing stays."""
        encoding = (self._kept() or {}).get("encoding", "")
        try:
            if encoding in ("gzip", "deflate"):
                self._decode(most)
            elif encoding:
                raise Unusable(f"it came as {encoding}, which nobody asked for")
            with self.path.open("rb+") as file:
                os.fsync(file.fileno())
            size = self.size
            self.path.replace(target)
            return size
        finally:
            self.discard()

    def discard(self) -> None:
        for path in (self._note, self.path):
            path.unlink(missing_ok=True)

    def _decode(self, most: int | None) -> None:
        plain, decoder, size = self.path.with_name(f"{self.path.name}.plain"), zlib.decompressobj(47), 0
        try:
            with self.path.open("rb") as coded, plain.open("wb") as file:
                while block := coded.read(_BLOCK):
                    while block:
                        size += file.write(decoder.decompress(block, _BLOCK))
                        block = decoder.unconsumed_tail
                        if most is not None and size > most:
                            raise TooLarge
            if not decoder.eof:
                raise Unusable("its end is missing")
            plain.replace(self.path)
        except zlib.error as error:
            raise Unusable(f"it cannot be decoded: {error}") from error
        finally:
            plain.unlink(missing_ok=True)

    def _remember(self, response: httpx.Response) -> None:
        """Only a strong validator says that bytes are the same."""
        tag = response.headers.get("etag", "")
        version = tag if tag and not tag.startswith("W/") else response.headers.get("last-modified", "")
        kept = {"version": version, "encoding": response.headers.get("content-encoding", "")}
        self._note.write_text(json.dumps(kept), encoding="utf-8")

    def _kept(self) -> Mapping[str, str] | None:
        """None where it is not known of which version the bytes are; `version` is "" where no server could tell."""
        with suppress(OSError, ValueError):
            kept = json.loads(self._note.read_bytes())
            if isinstance(kept, dict) and {"version", "encoding"} <= kept.keys():
                return kept
        return None
