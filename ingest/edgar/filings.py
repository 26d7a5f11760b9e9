"""Which filings EDGAR holds of a company, where each lies, and what is known of it before it is opened."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import date
from typing import Any

from app.errors import NotFound, Unavailable
from ingest.edgar.client import Edgar
from ingest.extraction.metadata import sector

_VARIANTS: Mapping[str, tuple[str, ...]] = {"10-K": ("10-K405", "10-KT", "10-KT405"), "10-Q": ("10-QT",)}
"""Of a form: the same report with a box ticked, or for a transition period."""
_READABLE = (".htm", ".html", ".pdf")
_AMENDED = "/A"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to fetch of each company."""

    forms: tuple[str, ...]
    last: int | None
    """The newest so many of each form; None is all."""
    since: date | None = None
    """Filed on this day or later."""
    amendments: bool = False
    submission: bool = False
    """The full submission as text, with its header and all exhibits, in place of the primary document."""


@dataclass(frozen=True, slots=True)
class EdgarFiling:
    """One filing in EDGAR's index."""

    company: str
    cik: str
    """Ten digits."""
    ticker: str | None
    sic: str | None
    form: str
    """As asked for, with the mark of an amendment: a 10-K405 is a 10-K."""
    accession: str
    filed: str
    """ISO date."""
    period_end: str | None
    """ISO date of the reported period's end; of an 8-K, of the event."""
    path: str
    """Below EDGAR's archive of the company."""

    @property
    def filename(self) -> str:
        """`<ticker or cik>-<form>-<period or filing date>-<accession>.<suffix>`."""
        suffix = self.path.rpartition(".")[2].lower()
        day = self.period_end or self.filed
        return f"{self.ticker or self.cik}-{self.form.replace('/', '-')}-{day}-{self.accession}.{suffix}"

    def url(self, edgar_url: str) -> str:
        return f"{edgar_url}/Archives/edgar/data/{int(self.cik)}/{self.path}"

    def known(self) -> dict[str, str]:
        """What EDGAR's index says of it, by the names of DocumentMeta.

        Its fiscal year is not among it, nor a company's name in EDGAR's capitals: the filing itself knows better.
        """
        known = {
            "company": None if self.company.isupper() else self.company,
            "cik": self.cik,
            "ticker": self.ticker,
            "form": self.form,
            "period_end": self.period_end,
            "filed": self.filed,
            "sector": sector(self.sic),
        }
        return {name: value for name, value in known.items() if value}


async def cik_of(edgar: Edgar, edgar_url: str, ticker: str) -> str:
    """Ten digits. Raises NotFound, Unavailable."""
    listed = await edgar.index(f"{edgar_url}/files/company_tickers.json")
    wanted = ticker.upper().replace(".", "-")
    for entry in listed.values() if isinstance(listed, dict) else ():
        if str(entry.get("ticker", "")).upper() == wanted:
            return f"{int(entry['cik_str']):010}"
    raise NotFound(f"EDGAR knows no company with the ticker {ticker}; --cik takes its number instead")


async def filings_of(edgar: Edgar, data_url: str, cik: str, ticker: str | None, wanted: Wanted) -> list[EdgarFiling]:
    """Newest first, by form. Older index files are opened only as far as they are needed.

    Raises NotFound where there is no such company, Unavailable.
    """
    try:
        company = await edgar.index(f"{data_url}/submissions/CIK{cik}.json")
    except NotFound:
        raise NotFound(f"EDGAR knows no company with the CIK {cik}") from None
    found: dict[str, dict[str, EdgarFiling]] = {form: {} for form in wanted.forms}
    async with aclosing(_index_files(edgar, data_url, company, wanted.since)) as files:
        async for rows in files:
            for row in rows:
                form = _form(row["form"], wanted)
                if form and (wanted.since is None or row["filingDate"] >= wanted.since.isoformat()):
                    filing = _filing(company, cik, ticker, form, row, wanted.submission)
                    found[form.removesuffix(_AMENDED)].setdefault(filing.accession, filing)
            if wanted.last and all(len(filings) >= wanted.last for filings in found.values()):
                break
    newest = (sorted(filings.values(), key=lambda each: each.filed, reverse=True) for filings in found.values())
    return [filing for filings in newest for filing in filings[: wanted.last]]


async def _index_files(
    edgar: Edgar, data_url: str, company: Mapping[str, Any], since: date | None
) -> AsyncGenerator[list[dict[str, str]], None]:
    """Rows of the recent filings, then of each older index file, newest first."""
    try:
        yield _rows(company["filings"]["recent"])
        older = sorted(company["filings"].get("files", ()), key=lambda file: str(file["filingTo"]), reverse=True)
        for file in older:
            if since is None or file["filingTo"] >= since.isoformat():
                yield _rows(await edgar.index(f"{data_url}/submissions/{file['name']}"))
    except (KeyError, TypeError, ValueError) as error:
        raise Unavailable(f"EDGAR's index of filings has another form than expected ({error!r})") from error


def _rows(columns: Mapping[str, Sequence[str]]) -> list[dict[str, str]]:
    """EDGAR keeps each field of all filings as a list."""
    names = ("accessionNumber", "filingDate", "reportDate", "form", "primaryDocument")
    return [dict(zip(names, row, strict=True)) for row in zip(*(columns[name] for name in names), strict=True)]


def _form(form: str, wanted: Wanted) -> str | None:
    """The form asked for that this is one of."""
    plain = form.removesuffix(_AMENDED)
    asked = next((each for each in wanted.forms if plain in (each, *_VARIANTS.get(each, ()))), None)
    if asked is None or plain == form:
        return asked
    return asked + _AMENDED if wanted.amendments else None


def _filing(
    company: Mapping[str, Any], cik: str, ticker: str | None, form: str, row: Mapping[str, str], submission: bool
) -> EdgarFiling:
    accession, document = row["accessionNumber"], row["primaryDocument"]
    # Filings of the 1990s have no document of their own, and a bare text has no header to say what it is.
    whole = submission or not document.lower().endswith(_READABLE)
    return EdgarFiling(
        company=str(company.get("name", "")),
        cik=cik,
        ticker=ticker or next(iter(company.get("tickers") or ()), None),
        sic=sic if (sic := str(company.get("sic"))).isdecimal() else None,
        form=form,
        accession=accession,
        filed=row["filingDate"],
        period_end=row["reportDate"] or None,
        path=f"{accession}.txt" if whole else f"{accession.replace('-', '')}/{document}",
    )
