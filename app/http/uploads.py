"""An uploaded file as it comes in: the body itself, or the part `file` of a form, in pieces either way."""

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from email.message import Message

from fastapi import Request
from python_multipart import MultipartParser
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import parse_options_header
from starlette.requests import ClientDisconnect

from app.errors import Cancelled, InvalidInput, InvalidRequest, UnsupportedMedia

MEDIA = ("application/pdf", "text/html", "application/xhtml+xml", "text/plain", "application/octet-stream")
"""Of a body that is the file itself. What it is, its bytes tell."""
_FIELD = b"file"
_LONGEST_BOUNDARY = 70
"""RFC 2046."""


async def uploaded(request: Request, filename: str | None) -> tuple[str, AsyncIterator[bytes]]:
    """The file's name as given, and its bytes. Raises UnsupportedMedia, InvalidInput, InvalidRequest, Cancelled."""
    media, parameters = parse_options_header(request.headers.get("content-type", ""))
    if media == b"multipart/form-data":
        form = _Form(_pieces(request), parameters.get(b"boundary", b""))
        return filename or await form.filename(), form.content()
    if media.decode("latin-1") not in MEDIA:
        raise UnsupportedMedia(f"send a form with a field `file`, or the file as a body of type {', '.join(MEDIA)}")
    if not filename:
        raise InvalidInput("query.filename: a body that is the file itself needs ?filename=")
    return filename, _pieces(request)


async def _pieces(request: Request) -> AsyncIterator[bytes]:
    try:
        async for piece in request.stream():
            if piece:
                yield piece
    except ClientDisconnect:
        raise Cancelled("the client closed the connection before the file was whole") from None


@dataclass
class _Part:
    """The part that is being read."""

    name: bytes = b""
    filename: str | None = None
    header: bytearray = field(default_factory=bytearray)
    value: bytearray = field(default_factory=bytearray)


class _Form:
    """A multipart body that has one part, `file`."""

    def __init__(self, pieces: AsyncIterator[bytes], boundary: bytes) -> None:
        if not boundary:
            raise InvalidRequest("the form's Content-Type names no boundary")
        if len(boundary) > _LONGEST_BOUNDARY:
            raise InvalidRequest(f"the form's boundary is longer than {_LONGEST_BOUNDARY} characters")
        self._pieces = pieces
        self._part = _Part()
        self._found: _Part | None = None
        self._data: list[bytes] = []
        self._ended = False
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_field": lambda data, a, b: self._part.header.extend(data[a:b]),
                "on_header_value": lambda data, a, b: self._part.value.extend(data[a:b]),
                "on_header_end": self._header_end,
                "on_headers_finished": self._headers_end,
                "on_part_data": lambda data, a, b: self._data.append(data[a:b]),
                "on_end": self._end,
            },
        )

    async def filename(self) -> str:
        """As the part's header gives it. Raises InvalidInput where there is none."""
        while self._found is None and await self._more():
            pass
        if self._found is None or not self._found.filename:
            raise InvalidInput("body: the form has no field `file` with a file name")
        return self._found.filename

    async def content(self) -> AsyncIterator[bytes]:
        while True:
            data, self._data = self._data, []
            for piece in data:
                yield piece
            if self._ended or not await self._more():
                break
        for piece in self._data:
            yield piece
        if not self._ended:
            raise InvalidRequest("the form ends in the middle")

    async def _more(self) -> bool:
        piece = await anext(self._pieces, None)
        if piece is None:
            return False
        try:
            self._parser.write(piece)
        except FormParserError as error:
            raise InvalidRequest(f"the form cannot be read: {error}") from None
        return True

    def _begin(self) -> None:
        self._part = _Part()

    def _header_end(self) -> None:
        part = self._part
        if part.header.lower() == b"content-disposition":
            _, options = parse_options_header(bytes(part.value))
            part.name, plain = options.get(b"name", b""), options.get(b"filename")
            part.filename = _extended(bytes(part.value)) if plain is None else _decoded(plain)
        part.header.clear()
        part.value.clear()

    def _headers_end(self) -> None:
        if self._part.name != _FIELD or self._found is not None:
            raise InvalidInput("body: the form takes one field, `file`; the rest goes into the query")
        self._found = self._part

    def _end(self) -> None:
        self._ended = True


def _decoded(name: bytes) -> str:
    """UTF-8, and of clients that do not speak it Windows-1252."""
    try:
        return name.decode()
    except UnicodeDecodeError:
        return name.decode("cp1252", "replace")


def _extended(disposition: bytes) -> str | None:
    """A name that is not ASCII as older clients send it: `filename*=utf-8''%C3%A9.pdf` (RFC 5987)."""
    header = Message()
    header["Content-Disposition"] = disposition.decode("latin-1")
    return header.get_filename()
