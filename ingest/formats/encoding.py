"""Bytes of a filing to text, whatever encoding they are declared to be in."""

import codecs

_MARKED = (
    ((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE), "utf-32"),
    ((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE), "utf-16"),
)
"""UTF-32 first: its mark begins with that of UTF-16."""


def is_marked(data: bytes) -> bool:
    """Whether a byte order mark says that it is text of more than one byte a character."""
    return any(data.startswith(marks) for marks, _ in _MARKED)


def decoded(data: bytes) -> str:
    """UTF-8, bytes that are not being Windows-1252, whatever is declared; else what a byte order mark says."""
    for marks, encoding in _MARKED:
        if data.startswith(marks):
            return data.decode(encoding, "replace")
    return data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "windows-1252")


def _as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error("windows-1252", _as_windows_1252)
