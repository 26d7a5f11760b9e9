"""What is declared of a filing as data: by its iXBRL cover facts, by EDGAR's header before it, or by who ingests it."""

import re
from collections.abc import Mapping
from dataclasses import fields, replace
from datetime import date

from ingest.extraction.metadata import parse_date
from ingest.formats.filing_text import Declared

_FIELD = re.compile(r"^\s*([A-Z][A-Z /]+[A-Z]):[ \t]+(\S.*?)\s*$", re.M)
_STATE = re.compile(r"\s*[/\\][A-Z]{2,3}[/\\]?\s*$")
_FORM = re.compile(r"(10-K|10-Q|8-K|20-F|40-F|6-K)[A-Z0-9]*", re.I)


def from_cover_facts(facts: Mapping[str, str]) -> Declared:
    """From the facts of the Document and Entity Information taxonomy, by their names without prefix."""
    year = facts.get("DocumentFiscalYearFocus", "")
    period = facts.get("DocumentFiscalPeriodFocus", "").upper()
    cik = re.sub(r"\D", "", facts.get("EntityCentralIndexKey", ""))
    ticker = facts.get("TradingSymbol", "").upper()
    form = facts.get("DocumentType", "")
    return Declared(
        company=facts.get("EntityRegistrantName"),
        cik=cik or None,
        ticker=ticker if re.fullmatch(r"[A-Z]{1,6}(?:[.-][A-Z]{1,2})?", ticker) else None,
        form=_form(form),
        amended=facts.get("AmendmentFlag", "").lower() == "true" or form.upper().endswith("/A"),
        fiscal_year=int(year) if re.fullmatch(r"(?:19|20)\d\d", year) else None,
        fiscal_period=period if period in ("FY", "Q1", "Q2", "Q3", "Q4") else None,
        period_end=parse_date(facts.get("DocumentPeriodEndDate")),
        year_end=_month_and_day(re.sub(r"\D", "", facts.get("CurrentFiscalYearEndDate", ""))),
    )


def from_given(given: Mapping[str, str | int]) -> Declared:
    """From what somebody says of a filing, by the names of DocumentMeta."""
    said = {name: str(value) for name, value in given.items()}
    form, year = said.get("form", ""), said.get("fiscal_year")
    return Declared(
        company=said.get("company"),
        cik=said.get("cik"),
        ticker=said.get("ticker"),
        form=_form(form),
        amended=form.endswith("/A"),
        fiscal_year=int(year) if year else None,
        fiscal_period=said.get("fiscal_period"),
        period_end=parse_date(said.get("period_end")),
        filed=parse_date(said.get("filed")),
    )


def from_header(header: str) -> Declared:
    """From an SGML header; the first filer's where there are several."""
    known: dict[str, str] = {}
    for name, value in _FIELD.findall(header):
        known.setdefault(name, value)
    form = known.get("CONFORMED SUBMISSION TYPE", "")
    sic = re.search(r"\d{4}", known.get("STANDARD INDUSTRIAL CLASSIFICATION", ""))
    name = _STATE.sub("", known.get("COMPANY CONFORMED NAME", ""))
    return Declared(
        conformed_name=name or None,
        cik=known.get("CENTRAL INDEX KEY"),
        form=_form(form),
        amended=form.upper().endswith("/A"),
        period_end=_day(known.get("CONFORMED PERIOD OF REPORT")),
        year_end=_month_and_day(known.get("FISCAL YEAR END", "")),
        filed=_day(known.get("FILED AS OF DATE")),
        sic=sic[0] if sic else None,
    )


def joined(first: Declared, second: Declared) -> Declared:
    """What `first` declares, and where it is silent what `second` does."""
    silent = [each.name for each in fields(Declared) if not getattr(first, each.name)]
    return replace(first, **{name: getattr(second, name) for name in silent})


def _form(text: str) -> str | None:
    """10-K405, 10-KT and 10-K/A are forms of 10-K."""
    name = text.upper().removesuffix("/A").strip()
    known = _FORM.match(name)
    return known[1] if known else name or None


def _day(text: str | None) -> date | None:
    match = re.fullmatch(r"(\d{4})(\d\d)(\d\d)", text or "")
    return parse_date("-".join(match.groups())) if match else None


def _month_and_day(digits: str) -> tuple[int, int] | None:
    match = re.fullmatch(r"(0[1-9]|1[0-2])([0-3]\d)", digits)
    return (int(match[1]), int(match[2])) if match else None
