"""Who filed what for which period, read from what the filing declares and from its own words."""

import calendar
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from itertools import pairwise
from pathlib import Path

from app.types import DocumentMeta, Page
from ingest.formats.filing_text import Declared

_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_MONTHS |= {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name} | {"sept": 9}
MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
DATE = (
    rf"(?:(?:{MONTH})\.?\s+\d{{1,2}}\s*,?\s+(?:19|20)\d\d|\d{{1,2}}\s+(?:{MONTH})\s+(?:19|20)\d\d"
    r"|(?:19|20)\d\d-\d\d-\d\d|\d\d?/\d\d?/(?:19|20)\d\d)"
)
_FORM = re.compile(r"^\W*form\s*((?:10|8|20|40|6)\s?-?\s?[KQF])(?:T|405)?\s*(?:/A)?\W*$", re.I | re.M)
_FORM_MENTIONED = re.compile(r"(?<![A-Za-z0-9])(10-?[KQ]|8-?K|20-?F)(?![A-Za-z0-9])", re.I)
_RESULTS = re.compile(r"\b(?:reports?|announces?|results)\b.{0,80}\b(?:quarter|results|year)\b", re.I | re.S)
_LETTER = re.compile(r"annual report|(?:dear (?:fellow )?|letter to (?:our )?)(?:share|stock)(?:holders|owners)", re.I)
_PERIOD_END = re.compile(
    rf"(?:fiscal\s+year|quarterly\s+period|quarter|year|period|months|weeks)\s+(?:ended|ending)\s*:?\s*({DATE})", re.I
)
_REPORT_DATE = re.compile(
    rf"({DATE})\s*\(?\s*date\s+of\s+report|date\s+of\s+report[^\n:]*?(?:\([^)]*\))?\s*:?\s*({DATE})", re.I
)
_DESCRIBED_END = re.compile(rf"period ending ({DATE})", re.I)
_FILED = re.compile(rf"\bfiled\s+(?:on\s+)?({DATE})|\b(?:10-[KQ]|8-K|20-F)\s+-\s+({DATE})", re.I)

_EXACT_NAME = re.compile(r"^\W*\(?exact\s+name\s+of\s+(?:the\s+)?(?:registrant|company)", re.I)
_FILE_NUMBER = re.compile(r"commission\s+file\s+n", re.I)
_REST_OF_NAME = re.compile(r"(?:and subsidiaries|inc|corporation|company|corp|plc|ltd|limited)\b\W*", re.I)
_SUFFIX = (
    r"(?:Inc|Incorporated|Corp|Corporation|Company|Co|Ltd|Limited|LLC|L\.L\.C|plc|PLC|N\.V|S\.A|AG|SE|L\.P|LP|Group"
    r"|Holdings|Trust|Bancorp)"
)
_OF_A_DATE = rf"(?:{MONTH})\.?[ \xa0]+\d|(?:19|20)\d\d\b"
_NAME = rf"\b(?:(?!{_OF_A_DATE})[A-Z0-9][\w&’'.-]*,?[ \xa0]+(?:(?:of|and|the|&)[ \xa0]+)*){{1,6}}{_SUFFIX}\b\.?"
"""On one line: what stands above a name is none of it."""
_LISTED_NAME = re.compile(rf"({_NAME})\s*\((?:NYSE|NASDAQ|Nasdaq)")
_DESCRIBED_NAME = re.compile(r"\bfor (.{3,60}?) filed \d")
_KEPT_UPPER = re.compile(r"(?:LLC|LP|NV|SA|AG|SE|II|III|IV|USA|US|AT&T|[A-Z]&[A-Z]|(?:[A-Z]\.){2,})\W*")

_EXCHANGE = (
    r"(?:the\s+)?(?:new\s+york\s+stock|nyse|nasdaq|american\s+stock|cboe|chicago\s+stock|london\s+stock|tsx|toronto)"
)
_TICKERS = (
    re.compile(rf"(?<![\w“\".])([A-Z]{{1,5}}(?:[.-][A-Z])?)\s+(?i:{_EXCHANGE})"),
    re.compile(r"\((?:NYSE|NASDAQ|Nasdaq|AMEX|TSX|LSE)[^:)]{0,20}:\s*([A-Z]{1,5}(?:[.-][A-Z])?)\b"),
    re.compile(r"under\s+the\s+(?:ticker\s+|trading\s+|stock\s+)?symbols?\s+[“\"‘']([A-Z]{1,5})[,.”\"’']"),
)
_NOT_TICKERS = frozenset({"THE", "NONE", "NA", "ON", "OF", "AND"})
_CIK = re.compile(r"(?:\bCIK\b|central\s+index\s+key)\D{0,40}?(\d{5,10})\b", re.I)
_SIC = re.compile(r"(?:\bSIC\b(?:\s+code)?|standard\s+industrial\s+classification)\D{0,40}?(\d{4})\b", re.I)
_SECTORS = (
    (100, 999, "Agriculture"), (1000, 1499, "Mining"), (1500, 1799, "Construction"), (2000, 3999, "Manufacturing"),
    (4000, 4999, "Transportation and Utilities"), (5000, 5199, "Wholesale Trade"), (5200, 5999, "Retail Trade"),
    (6000, 6799, "Finance"), (7000, 8999, "Services"), (9100, 9999, "Public Administration"),
)  # fmt: skip
"""Divisions of the Standard Industrial Classification."""

_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4}
_QUARTER = re.compile(
    r"\b(?:(?P<ordinal>first|second|third|fourth)[\s-]+(?:fiscal\s+)?quarter|Q(?P<q>[1-4]))"
    r"(?:(?:\s+(?:of|for|our|the))*(?:\s+fiscal)?(?:\s+year)?\s*,?\s*(?P<year>20\d\d)\b)?",
    re.I,
)
_FOOTER_QUARTER = re.compile(r"\bQ([1-4])\s+20\d\d\s+form\s+10-Q", re.I)
_LONG_PERIOD = re.compile(r"\b(three|six|nine)\s+months\s+ended|\b(\w+(?:-\w+)?)\s+weeks\s+ended", re.I)
_WEEKS = (
    dict.fromkeys(("twelve", "thirteen", "fourteen", "12", "13", "14"), 1)
    | dict.fromkeys(("twenty-four", "twenty-six", "twenty-seven", "24", "26", "27"), 2)
    | dict.fromkeys(("thirty-six", "thirty-nine", "forty", "36", "39", "40"), 3)
    | {"three": 1, "six": 2, "nine": 3}
)
_NAMED_YEAR = re.compile(
    rf"\bfiscal(?:\s+year)?\s+(?P<y1>(?:19|20)\d\d)\s*\(?(?:[^.;()\n]{{0,30}}?\s)?(?:ended|ending|ends)\s+(?:on\s+)?"
    rf"(?P<d1>{DATE})|(?:ended|ending|ends)\s+(?:on\s+)?(?P<d2>{DATE})\s*[,(]?\s*(?:or\s+)?[“\"]?fiscal(?:\s+year)?\s+"
    r"(?P<y2>(?:19|20)\d\d)",
    re.I,
)
_FISCAL = re.compile(r"\bfiscal(?:\s+year)?\s+((?:19|20)\d\d)\b", re.I)

_COVER_PAGES = 15
_NOTHING = Declared()
_ANNUAL = ("10-K", "20-F", "40-F", "AR")


def read_metadata(
    pages: Sequence[Page], info: Mapping[str, str], path: Path, declared: Declared = _NOTHING
) -> DocumentMeta:
    """What the filing says about itself; `source` is the file's name, tenant and acl are the defaults.

    What it declares as data wins over its prose, and the company's own naming of its fiscal year over arithmetic. The
    document information is asked where the text is silent, and the file name last.
    """
    at = _cover(pages)
    cover = pages[at].text if at is not None else ""
    head = cover or "\n".join(page.text for page in pages[:3])
    text = "\n".join(page.text for page in pages[:140])
    described = " ".join(info.get(key, "") for key in ("Title", "Subject", "Keywords"))
    form = declared.form or _form(at, cover, head, len(pages), described, path)
    company = declared.company or _company(cover, text, described, declared.conformed_name)
    end = declared.period_end or _period_end(form, head, text, described)
    year, period = _fiscal(form, end, head, text, path, declared)
    cik = declared.cik or _search(_CIK, f"{cover} {described}")
    filed = declared.filed or parse_date(_search(_FILED, described))
    shown = f"{form}/A" if form and declared.amended else form
    return DocumentMeta(
        title=_document_title(company or path.stem.replace("_", " "), shown, year, period, end),
        source=path.name,
        company=company,
        cik=cik.zfill(10) if cik else None,
        ticker=declared.ticker or _ticker(head, text),
        form=form,
        fiscal_year=year,
        fiscal_period=period,
        period_end=end.isoformat() if end else None,
        filed=filed.isoformat() if filed else None,
        sector=sector(declared.sic or _search(_SIC, cover)),
    )


def printed(day: date) -> str:
    """A date as filings print it: December 31, 2022."""
    return f"{calendar.month_name[day.month]} {day.day}, {day.year}"


def _cover(pages: Sequence[Page]) -> int | None:
    """Index of the cover page that the SEC prescribes."""
    for index, page in enumerate(pages[:_COVER_PAGES]):
        top = page.text[:3000]
        if "EXCHANGECOMMISSION" in re.sub(r"\s+", "", top).upper() and _FORM.search(top):
            return index
    return None


def _form(at: int | None, cover: str, head: str, pages: int, described: str, path: Path) -> str | None:
    if at is not None:
        form = _form_name(_search(_FORM, cover) or "")
        return "AR" if form == "10-K" and at >= 3 else form
    if mentioned := _search(_FORM, head[:3000]) or _search(_FORM_MENTIONED, described):
        return _form_name(mentioned)
    if pages <= 60 and _RESULTS.search(head[:1500]):
        return "ER"
    if pages >= 30 and _LETTER.search(head):
        return "AR"
    name = re.sub(r"[\s_]+", " ", path.stem)
    if mentioned := _search(_FORM_MENTIONED, name):
        return _form_name(mentioned)
    if re.search(r"earnings|press|release|results|\bER\b", name, re.I):
        return "ER"
    return "AR" if re.search(r"annual|\bAR\b", name, re.I) else None


def _form_name(raw: str) -> str:
    letters = re.sub(r"[\s-]", "", raw).upper()
    return f"{letters[:-1]}-{letters[-1:]}"


def _company(cover: str, text: str, described: str, conformed: str | None) -> str | None:
    """The registrant's name: from the cover, else as filed, beside its ticker, or the company the text names most."""
    front = text[:100_000]
    raw = _name_on_cover(cover) or conformed or _search(_LISTED_NAME, front) or _search(_DESCRIBED_NAME, described)
    if raw is None:
        named = Counter(" ".join(name.split()) for name in re.findall(_NAME, front))
        raw = max(named, key=named.__getitem__, default=None)
    return _as_written(raw, front) if raw else None


def _name_on_cover(cover: str) -> str | None:
    lines = [line.strip() for line in cover.split("\n") if line.strip()]
    for index, line in enumerate(lines):
        if index and _EXACT_NAME.match(line):
            name = lines[index - 1]
            return f"{lines[index - 2]} {name}" if index > 1 and _REST_OF_NAME.fullmatch(name) else name
    for line, below in pairwise(lines):
        if _FILE_NUMBER.match(line) and re.fullmatch(r"\d?[A-Za-z][\w&.,’' -]+", below):
            return below
    return None


def _as_written(raw: str, text: str) -> str:
    """A name as running text writes it, where the cover has it in capitals."""
    name = re.sub(r"\s+and subsidiaries$", "", " ".join(raw.split()).strip(" *|"), flags=re.I)
    if not name.isupper():
        return name
    spelled = re.findall(r"\s+".join(map(re.escape, name.split())), text, re.I)
    mixed = Counter(" ".join(s.split()) for s in spelled if not s.isupper() and s[0] == name[0])
    return mixed.most_common(1)[0][0] if mixed else " ".join(map(_capitalised, name.split()))


def _capitalised(word: str) -> str:
    if _KEPT_UPPER.fullmatch(word):
        return word
    return re.sub(r"[^\W\d_]+(?:[’'][^\W\d_]+)?", lambda m: m[0].capitalize(), word, count=1)


def _ticker(head: str, text: str) -> str | None:
    for pattern in _TICKERS:
        found = _search(pattern, head) or _search(pattern, text if pattern is _TICKERS[2] else text[:20_000])
        if found and found not in _NOT_TICKERS:
            return found
    return None


def _period_end(form: str | None, head: str, text: str, described: str) -> date | None:
    """The end of the reported period; for an 8-K the date of the reported event."""
    if form == "8-K":
        return parse_date(_search(_REPORT_DATE, head))
    if found := parse_date(_search(_PERIOD_END, head)) or parse_date(_search(_DESCRIBED_END, described)):
        return found
    ended = Counter(filter(None, map(parse_date, _PERIOD_END.findall(text))))
    # The latest of the days named about as often as any: a report repeats its own period and those it compares with.
    return max((day for day, count in ended.items() if 3 * count >= max(ended.values())), default=None)


def _fiscal(
    form: str | None, end: date | None, head: str, text: str, path: Path, declared: Declared
) -> tuple[int | None, str | None]:
    """Fiscal year and period in the company's own calendar."""
    if form == "8-K":
        return (end.year if end else _year_in_name(path)), None
    if declared.fiscal_year and declared.fiscal_period:
        return declared.fiscal_year, declared.fiscal_period
    quarter = None if form in _ANNUAL else _quarter(form, end, head, text, declared.year_end)
    period = declared.fiscal_period or (f"Q{quarter}" if quarter else "FY" if form in _ANNUAL or end else None)
    if declared.fiscal_year:
        return declared.fiscal_year, period
    if end is None:
        named = next((m["year"] for m in _QUARTER.finditer(head) if m["year"]), None)
        return (int(named) if named else _year_in_name(path)), period
    return _year_ending(months_later(end, 3 * (4 - quarter)) if quarter else end, text), period


def _quarter(form: str | None, end: date | None, head: str, text: str, year_end: tuple[int, int] | None) -> int | None:
    """1 to 4, from the declared year end, the name a release gives it or the longest period ending on that day."""
    if form != "10-Q":
        named = _QUARTER.search(head)
        return (_ORDINALS[named["ordinal"].lower()] if named["ordinal"] else int(named["q"])) if named else None
    if end is not None and year_end is not None:
        months_left = (year_end[0] - end.month) % 12 + (year_end[1] - end.day) / 31
        return min(max(4 - round(months_left / 3), 1), 4)
    if footer := _search(_FOOTER_QUARTER, text):
        return int(footer)
    if end is None:
        return None
    day = re.compile(rf"{calendar.month_abbr[end.month]}\w*\.?\s+{end.day}\b", re.I)
    lengths = [
        _WEEKS.get((period[1] or period[2]).lower(), 0)
        for period in _LONG_PERIOD.finditer(text)
        if day.search(text, period.end(), period.end() + 80)
    ]
    return max([1, *lengths])


def _year_ending(end: date, text: str) -> int:
    """How the company names the fiscal year that ends about that day.

    A year that it calls by name and date decides. Else, for one that ends in January or February, an annual report
    speaks of the three years up to its own: those that the text names most. The first days of January belong to the
    year before.
    """
    names: Counter[int] = Counter()
    for match in _NAMED_YEAR.finditer(text):
        day, year = parse_date(match["d1"] or match["d2"]), int(match["y1"] or match["y2"])
        if day and abs(year - day.year) <= 1:
            later = round((end - day).days / 365.25)
            if abs((end - day).days - 365.25 * later) < 20:
                names[year + later] += 1
    if names:
        return names.most_common(1)[0][0]
    if end.month > 2:
        return end.year
    fiscal = Counter(map(int, _FISCAL.findall(text)))
    if fiscal[end.year - 3] != fiscal[end.year]:
        return end.year if fiscal[end.year] > fiscal[end.year - 3] else end.year - 1
    return end.year - 1 if end.month == 1 and end.day <= 15 else end.year


def months_later(day: date, months: int) -> date:
    month = day.month - 1 + months
    year = day.year + month // 12
    return date(year, month % 12 + 1, min(day.day, calendar.monthrange(year, month % 12 + 1)[1]))


def _year_in_name(path: Path) -> int | None:
    match = re.search(r"(?<!\d)((?:19|20)\d\d)(?!\d)", path.stem)
    return int(match[1]) if match else None


def _document_title(name: str, form: str | None, year: int | None, period: str | None, end: date | None) -> str:
    """A title for people: Acme Corp 10-Q Q3 FY2023."""
    if form == "8-K" and end:
        return f"{name} 8-K {printed(end)}"
    return " ".join(filter(None, [name, form, period if period != "FY" else None, f"FY{year}" if year else None]))


def sector(code: str | None) -> str | None:
    """Division of the Standard Industrial Classification that a code of four digits is in."""
    return next((name for low, high, name in _SECTORS if code and low <= int(code) <= high), None)


def _search(pattern: re.Pattern[str], text: str) -> str | None:
    """The first of the pattern's groups that matched."""
    match = pattern.search(text)
    return next(filter(None, match.groups()), None) if match else None


def parse_date(text: str | None) -> date | None:
    """A date as American filings print it or in ISO form; None where there is none or it does not exist."""
    if not text:
        return None
    try:
        if "-" in text:
            return date.fromisoformat(text)
        numbers = [int(number) for number in re.findall(r"\d+", text)]
        if "/" in text:
            return date(numbers[2], numbers[0], numbers[1])
        month = next((_MONTHS[word] for word in re.findall(r"[a-z]+", text.lower()) if word in _MONTHS), 0)
        return date(numbers[1], month, numbers[0])
    except (ValueError, IndexError):
        return None
