"""Metadata given beside filings: understood or refused, put over what is read, and followed when it changes."""

import json
from pathlib import Path

import pytest

from app.errors import DocumentError
from ingest.sidecars import Sidecars
from ingest.sources import find_sources
from tests.fakes import FakeStore
from tests.ingest.filings import prose, stamp, write_pdf
from tests.ingest.test_pipeline import contents, ingest, said


def given(path: Path, table: Path | None = None) -> dict[str, str | int]:
    [source] = find_sources([str(path)])
    return Sidecars(table).given(source)


def write(path: Path, content: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_every_field_is_brought_into_its_form(tmp_path: Path) -> None:
    path = write(tmp_path / "a.pdf", "")
    everything = {
        "title": " Ombrell  annual report ",
        "company": "Ombrell Corp",
        "cik": 12345,
        "ticker": "omb",
        "form": "10-k",
        "fiscal_year": "2023",
        "fiscal_period": "fy",
        "period_end": "2023-12-31",
        "filed": "2024-02-01",
        "sector": "Manufacturing",
        "acl": ["board", "audit"],
    }
    write(tmp_path / "a.pdf.json", everything)
    assert given(path) == {
        "title": "Ombrell annual report",
        "company": "Ombrell Corp",
        "cik": "0000012345",
        "ticker": "OMB",
        "form": "10-K",
        "fiscal_year": 2023,
        "fiscal_period": "FY",
        "period_end": "2023-12-31",
        "filed": "2024-02-01",
        "sector": "Manufacturing",
        "acl": "audit,board",
    }


def test_a_files_own_outranks_a_named_table_and_that_the_folders(tmp_path: Path) -> None:
    path = write(tmp_path / "filings" / "a.pdf", "")
    write(tmp_path / "filings" / "metadata.csv", "file,company,sector,form\na.pdf,Folder,Mining,10-K\nb.pdf,Other,,\n")
    table = write(tmp_path / "named.json", {"filings/a.pdf": {"company": "Named", "sector": "Services"}})
    assert given(path) == {"company": "Folder", "sector": "Mining", "form": "10-K"}
    assert given(path, table) == {"company": "Named", "sector": "Services", "form": "10-K"}
    write(tmp_path / "filings" / "a.pdf.json", {"company": "Own"})
    assert given(path, table) == {"company": "Own", "sector": "Services", "form": "10-K"}
    assert given(write(tmp_path / "filings" / "b.pdf", "")) == {"company": "Other"}
    assert given(write(tmp_path / "filings" / "c.pdf", "")) == {}


def test_a_url_is_known_by_itself_or_by_its_files_name(tmp_path: Path) -> None:
    rows = [{"file": "https://x.test/b%20c.pdf", "company": "Whole"}, {"file": "b c.pdf", "ticker": "BC"}]
    [source] = find_sources(["https://x.test/b%20c.pdf"])
    assert Sidecars(write(tmp_path / "t.json", rows)).given(source) == {"company": "Whole", "ticker": "BC"}


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.pdf.json", {"compny": "x"}, "a.pdf.json: 'compny' is unknown; there are file, title, company, cik"),
        ("a.pdf.json", {"tenant": "x"}, "'tenant' is unknown"),
        ("a.pdf.json", ["x"], "a.pdf.json: an object is wanted"),
        ("a.pdf.json", "{", "a.pdf.json: no JSON"),
        ("a.pdf.json", "[" * 100_000, "a.pdf.json: no JSON"),
        ("a.pdf.json", {"fiscal_year": 23}, "fiscal_year is 23: a year of four digits is wanted"),
        ("a.pdf.json", {"filed": "1/2/2023"}, "filed is '1/2/2023': a date like 2023-12-31 is wanted"),
        ("a.pdf.json", {"fiscal_period": "H1"}, "fiscal_period is 'H1': FY, Q1, Q2, Q3 or Q4 is wanted"),
        ("a.pdf.json", {"cik": "CIK1"}, "cik is 'CIK1': up to ten digits are wanted"),
        ("a.pdf.json", {"company": {"name": "x"}}, "printable text is wanted"),
        ("metadata.csv", "file,compny\na.pdf,x\n", "metadata.csv: 'compny' is unknown"),
        ("metadata.csv", "name,company\na.pdf,x\n", "metadata.csv: no column 'file'"),
        ("metadata.csv", "file,company\nb.pdf,x\na.pdf\n", "metadata.csv row 2: 2 values are wanted"),
        ("metadata.csv", "file,filed\na.pdf,soon\n", "metadata.csv row 1: filed is 'soon'"),
        ("metadata.json", [{"company": "x"}], "metadata.json row 1: no file is named"),
        ("metadata.json", "7", "metadata.json: a list of objects is wanted"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, name: str, content: object, says: str) -> None:
    write(tmp_path / name, content)
    with pytest.raises(DocumentError) as refused:
        given(write(tmp_path / "a.pdf", ""))
    assert refused.value.reason == "metadata"
    assert says in str(refused.value)


def test_sidecars_are_no_filings(tmp_path: Path) -> None:
    write_pdf(tmp_path / "a.pdf", prose("Ombrell"))
    write(tmp_path / "a.pdf.json", {})
    write(tmp_path / "metadata.csv", "file\n")
    for argument in (str(tmp_path), f"{tmp_path}/*"):
        assert [source.stem for source in find_sources([argument])] == ["a"]


@pytest.mark.anyio
async def test_what_is_given_outranks_what_is_read_and_is_followed_when_it_changes(tmp_path: Path) -> None:
    path, store = write_pdf(tmp_path / "a.pdf", prose("Ombrell")), FakeStore(stamp())

    async def again() -> tuple[str, str | None, str, int | None, tuple[str, ...]]:
        [outcome] = await ingest(store, path, sidecars=Sidecars())
        [document] = await store.documents()
        metas = {chunk.meta for chunk, _ in store._chunks.values()}
        assert metas == {document.meta}
        meta = document.meta
        return outcome.reason or outcome.outcome, meta.company, meta.title, meta.fiscal_year, meta.acl

    assert await again() == ("created", None, "a", None, ("public",))
    write(tmp_path / "a.pdf.json", {"company": "Ombrell Corp", "form": "10-K/A", "fiscal_year": 2023, "acl": "board"})
    assert await again() == ("replaced", "Ombrell Corp", "Ombrell Corp 10-K/A FY2023", 2023, ("board",))
    assert [d.meta.form for d in await store.documents()] == ["10-K"]
    assert await again() == ("unchanged", "Ombrell Corp", "Ombrell Corp 10-K/A FY2023", 2023, ("board",))
    before = contents(store)
    write(tmp_path / "a.pdf.json", {"company": "Ombrell Corp", "year": 2023})
    assert (await again())[0] == "metadata"
    assert contents(store) == before
    [outcome] = await ingest(store, path)
    assert outcome.outcome == "unchanged", "an upload of the same bytes gives nothing and takes nothing away"
    (tmp_path / "a.pdf.json").unlink()
    assert await again() == ("replaced", None, "a", None, ("board",))


@pytest.mark.anyio
async def test_a_copy_does_not_take_away_what_was_given_to_the_original(tmp_path: Path) -> None:
    store = FakeStore(stamp())
    for name in ("a.pdf", "b.pdf"):
        write_pdf(tmp_path / name, prose("Ombrell"))
    write(tmp_path / "a.pdf.json", {"sector": "Mining"})
    assert said(await ingest(store, tmp_path, sidecars=Sidecars())) == {"a.pdf": "created", "b.pdf": "unchanged"}
    assert said(await ingest(store, tmp_path, sidecars=Sidecars())) == {"a.pdf": "unchanged", "b.pdf": "unchanged"}
    assert [document.meta.sector for document in await store.documents()] == ["Mining"]
