"""Bytes of a filing to text, whatever encoding they are declared to be in."""

import codecs


def decoded(data: bytes) -> str:
    """UTF-8, bytes that are not being Windows-1252, whatever is declared; UTF-16 where a byte order mark says so."""
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    return data.removeprefix(codecs.BOM_UTF8).decode("utf-8", "windows-1252")


def _as_windows_1252(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return error.object[error.start : error.end].decode("cp1252", "replace"), error.end


codecs.register_error("windows-1252", _as_windows_1252)
