"""The reader is chosen by a file's bytes, whatever it is called."""

from pathlib import Path

import pytest

from app.errors import DocumentError
from ingest.formats.reading import read_filing
from tests.ingest.edgar import FONTS, ORRIN, TYPED, document, submission
from tests.ingest.filings import write_pdf


def first_line(path: Path) -> str:
    return read_filing(path).pages[0].text.split("\n")[0]


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (ORRIN, "UNITED STATES"),
        (FONTS, "SECURITIES AND EXCHANGE COMMISSION"),
        (TYPED, "SECURITIES AND EXCHANGE COMMISSION"),
        (submission("10-K405", document("10-K405", TYPED)), "SECURITIES AND EXCHANGE COMMISSION"),
        (document("EX-99.1", "<html><p>Sales rose.</p></html>"), "Sales rose."),
        ("<p>No more than a paragraph.", "No more than a paragraph."),
        ("Notes on <TABLE> and <S> <C>", "Notes on and"),
        ("Notes", "Notes"),
    ],
)
@pytest.mark.parametrize("name", ["a.htm", "a.txt", "a", "a.download"])
def test_what_the_bytes_are_decides(tmp_path: Path, name: str, content: str, line: str) -> None:
    (tmp_path / name).write_text(content)
    assert first_line(tmp_path / name) == line


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32", "cp1252"])
@pytest.mark.parametrize("text", ["Café sales – up", "<html><p>Café sales – up</p></html>"])
def test_whatever_the_encoding(tmp_path: Path, encoding: str, text: str) -> None:
    (tmp_path / "a").write_bytes(text.encode(encoding))
    assert read_filing(tmp_path / "a").pages[0].text == "Café sales – up"


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("one\rtwo\r\nthree\u2028four\x85five\x0bsix", "one\ntwo\nthree\nfour\nfive\nsix"),
        ("so\u00adlid \ufeffco\u200bopera\u2060tion", "solid cooperation"),
        ("a" * 9000 + " b\x00c\x1a", "a" * 9000 + " b c"),
    ],
)
def test_text_without_what_is_not_seen(tmp_path: Path, text: str, read: str) -> None:
    (tmp_path / "a.txt").write_bytes(text.encode())
    assert read_filing(tmp_path / "a.txt").pages[0].text == read


def test_a_pdf_is_one_under_any_name(tmp_path: Path) -> None:
    assert first_line(write_pdf(tmp_path / "a.htm", "Annual report")) == "Annual report"


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("a.htm", b"", "empty"),
        ("a.pdf", b"<html><p>Please log in</p></html>", "not_pdf"),
        ("a.zip", b"PK\x03\x04\0\0", "unsupported"),
        ("a.txt", b" \n ", "no_text"),
    ],
)
def test_what_is_no_filing_is_refused_with_a_reason(tmp_path: Path, name: str, content: bytes, reason: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DocumentError, match=r"^a\.") as caught:
        read_filing(tmp_path / name)
    assert caught.value.reason == reason


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(DocumentError, match="No such file") as caught:
        read_filing(tmp_path / "a.htm")
    assert caught.value.reason == "unreadable"
