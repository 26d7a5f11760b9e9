"""Who filed what for which period, read from the filing's own words."""

import calendar
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from pathlib import Path

from app.types import DocumentMeta, Page

_MONTHS = {name.lower(): number for number, name in enumerate(calendar.month_name) if name}
_MONTHS |= {name.lower(): number for number, name in enumerate(calendar.month_abbr) if name} | {"sept": 9}
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_DATE = rf"(?:(?:{_MONTH})\.?\s+\d{{1,2}}\s*,?\s+(?:19|20)\d\d|\d{{1,2}}\s+(?:{_MONTH})\s+(?:19|20)\d\d|(?:19|20)\d\d-\d\d-\d\d|\d\d?/\d\d?/(?:19|20)\d\d)"
_FORM = re.compile(r"^\W*form\s*(10-?\s?K|10-?\s?Q|8-?\s?K|20-?\s?F|40-?\s?F|6-?\s?K)(?:T|405)?\s*(/A)?\W*$", re.I | re.M)
_PERIOD_END = re.compile(
    rf"(?:fiscal\s+year|quarterly\s+period|quarter|year|period|months|weeks)\s+(?:ended|ending)\s*:?\s*({_DATE})", re.I
)
_REPORT_DATE = re.compile(
    rf"({_DATE})\s*\(?\s*date\s+of\s+report|date\s+of\s+report[^\n]*?:?\s*(?:\(date[^)]*\))?\s*:?\s*({_DATE})", re.I
)
_EXACT_NAME = re.compile(r"^\W*\(?exact\s+name\s+of\s+(?:the\s+)?(?:registrant|company)", re.I)
_SUFFIX = r"(?:Inc|Incorporated|Corp|Corporation|Company|Co|Ltd|Limited|LLC|L\.L\.C|plc|PLC|N\.V|S\.A|AG|SE|L\.P|LP|Group|Holdings|Trust|Bancorp)"
_NAME = re.compile(rf"\b((?:[A-Z0-9][\w&’'.-]*,?\s+(?:of\s+|and\s+|the\s+|&\s+)*){{1,6}}{_SUFFIX}\b\.?)")
_EXCHANGE = r"(?:the\s+)?(?:new\s+york\s+stock|nyse|nasdaq|american\s+stock|cboe|chicago\s+stock|london\s+stock|tsx|toronto)"
_TICKER_ROW = re.compile(rf"(?<![\w“\".])([A-Z]{{1,5}}(?:[.-][A-Z])?)\s+(?i:{_EXCHANGE})")
_TICKER_NAMED = re.compile(r"\((?:NYSE|NASDAQ|Nasdaq|AMEX|NYSE American|TSX|LSE)[^:)]{0,20}:\s*([A-Z]{1,5}(?:[.-][A-Z])?)\b")
_CIK = re.compile(r"(?:\bCIK\b|central\s+index\s+key)\D{0,40}?(\d{5,10})\b", re.I)
_SIC = re.compile(r"(?:\bSIC\b(?:\s+code)?|standard\s+industrial\s+classification)\D{0,40}?(\d{4})\b", re.I)
_FILED = re.compile(rf"\bfiled\s+(?:on\s+)?({_DATE})|\b(?:10-[KQ]|8-K|20-F)\s+-\s+({_DATE})", re.I)
_ORDINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4, "1st": 1, "2nd": 2, "3rd": 3, "4th": 4}
_QUARTER = re.compile(
    r"\b(?:(?P<ordinal>first|second|third|fourth|1st|2nd|3rd|4th)[\s-]+(?:fiscal\s+)?quarter|Q(?P<q>[1-4]))"
    r"(?:\s+(?:of|for))?(?:\s+our)?(?:\s+fiscal)?(?:\s+year)?\s*,?\s*(?:FY\s?)?(?P<year>20\d\d)\b", re.I
)
_NAMED_YEAR = re.compile(
    rf"\bfiscal(?:\s+year)?\s+(?P<y1>(?:19|20)\d\d)\s*(?:\(\s*)?(?:[^.;()\n]{{0,30}}?\s)?(?:ended|ending|ends|which\s+ended)\s+(?:on\s+)?(?P<d1>{_DATE})"
    rf"|(?:ended|ending|ends)\s+(?:on\s+)?(?P<d2>{_DATE})\s*\(?\s*[,(]?\s*(?:or\s+)?[“\"]?fiscal(?:\s+year)?\s+(?P<y2>(?:19|20)\d\d)", re.I
)
_FISCAL = re.compile(r"\bfiscal(?:\s+year)?\s+((?:19|20)\d\d)\b", re.I)
_MONTHS_ENDED = re.compile(r"\b(three|six|nine|3|6|9)\s+months\s+ended|\b(\w+(?:-\w+)?)\s+weeks\s+ended", re.I)
_WEEKS = {"twelve": 1, "thirteen": 1, "fourteen": 1, "13": 1, "12": 1, "14": 1} | {
    w: 2 for w in ("twenty-four", "twenty-six", "twenty-seven", "24", "26", "27")
} | {w: 3 for w in ("thirty-six", "thirty-nine", "forty", "36", "39", "40")}
_SECTORS = (
    (100, 999, "Agriculture"), (1000, 1499, "Mining"), (1500, 1799, "Construction"), (2000, 3999, "Manufacturing"),
    (4000, 4999, "Transportation and Utilities"), (5000, 5199, "Wholesale Trade"), (5200, 5999, "Retail Trade"),
    (6000, 6799, "Finance"), (7000, 8999, "Services"), (9100, 9999, "Public Administration"),
)  # fmt: skip
"""Divisions of the Standard Industrial Classification."""
_COVER_PAGES = 15


def read_metadata(pages: Sequence[Page], info: Mapping[str, str], path: Path) -> DocumentMeta:
    """What the filing says about itself; `source` is the file's name and tenant and acl are the defaults.

    The company's own naming of its fiscal year wins over arithmetic; the PDF's document information and last the file
    name are asked where the text says nothing.
    """
    cover_index = _cover(pages)
    cover = pages[cover_index].text if cover_index is not None else ""
    front = "\n".join(page.text for page in pages[:3])
    described = " ".join([info.get("Title", ""), info.get("Subject", ""), info.get("Keywords", "")])
    form = _form(pages, cover_index, front, described, path)
    head = cover or front
    text = "\n".join(page.text for page in pages[:140])
    company = _company(cover, pages, info)
    period_end = _period_end(form, head, text, described)
    year, period = _fiscal(form, period_end, head, text, path)
    ticker = _ticker(head, text)
    return DocumentMeta(
        title=_name(company, form, year, period, period_end, path),
        source=path.name,
        company=company,
        cik=_first(_CIK, cover + "\n" + described, lambda v: v.zfill(10)),
        ticker=ticker,
        form=form,
        fiscal_year=year,
        fiscal_period=period,
        period_end=period_end.isoformat() if period_end else None,
        filed=_iso(_first_group(_FILED, described)),
        sector=_sector(cover),
    )


def _cover(pages: Sequence[Page]) -> int | None:
    """Index of the cover page that the SEC prescribes."""
    for index, page in enumerate(pages[:_COVER_PAGES]):
        squeezed = re.sub(r"\s+", "", page.text[:3000]).upper()
        if "EXCHANGECOMMISSION" in squeezed and _FORM.search(page.text[:3000]):
            return index
    return None


def _form(pages: Sequence[Page], cover: int | None, front: str, described: str, path: Path) -> str | None:
    if cover is not None and (match := _FORM.search(pages[cover].text)):
        form = _form_name(match[1])
        return "AR" if form == "10-K" and cover >= 3 else form
    if match := re.search(r"\b(10-?K|10-?Q|8-?K|20-?F)\b", described, re.I):
        return _form_name(match[1])
    results = r"\b(?:reports?|announces?|results)\b.{0,80}\b(?:quarter|results|year)\b"
    if len(pages) <= 60 and re.search(results, front[:1500], re.I | re.S):
        return "ER"
    if len(pages) >= 30 and re.search(r"annual report|dear (?:fellow )?(?:share|stock)holders|letter to (?:share|stock)holders", front, re.I):
        return "AR"
    return _form_of_file(path)


def _form_name(raw: str) -> str:
    letters = re.sub(r"[\s-]", "", raw).upper()
    return f"{letters[:-1]}-{letters[-1]}"


def _form_of_file(path: Path) -> str | None:
    name = re.sub(r"[\s_]+", " ", path.stem)
    if match := re.search(r"(10-?[KQ]|8-?K|20-?F)", name, re.I):
        return _form_name(match[1])
    if re.search(r"earnings|press|release|results|\bER\b", name, re.I):
        return "ER"
    return "AR" if re.search(r"annual|\bAR\b", name, re.I) else None


def _company(cover: str, pages: Sequence[Page], info: Mapping[str, str]) -> str | None:
    text = "\n".join(page.text for page in pages[:30])
    raw = _name_on_cover(cover)
    if raw is None:
        named = re.search(rf"({_NAME.pattern})\s*\((?:NYSE|NASDAQ|Nasdaq)", text) or re.search(
            r"\bfor (.{3,60}?) filed \d", info.get("Title", "")
        )
        raw = named[1].strip() if named else None
    if raw is None:
        counts = Counter(" ".join(m.split()) for m in _NAME.findall(text))
        raw = counts.most_common(1)[0][0] if counts else None
    return _as_written(raw, text) if raw else None


def _name_on_cover(cover: str) -> str | None:
    lines = [line.strip() for line in cover.split("\n") if line.strip()]
    for index, line in enumerate(lines):
        if _EXACT_NAME.match(line) and index:
            name = lines[index - 1]
            if re.fullmatch(r"(?:and subsidiaries|inc\.?|corporation|company|corp\.?|plc|ltd\.?)\W*", name, re.I) and index > 1:
                name = f"{lines[index - 2]} {name}"
            return name
    for index, line in enumerate(lines[:-1]):
        if re.match(r"commission\s+file\s+n", line, re.I) and not re.search(r"\d", lines[index + 1]) or (
            re.match(r"commission\s+file\s+n", line, re.I) and re.fullmatch(r"\d?[A-Z][\w&.,’' -]+", lines[index + 1])
        ):
            return lines[index + 1]
    return None


def _as_written(raw: str, text: str) -> str:
    """The name as running text writes it, where the cover has it in capitals."""
    raw = re.sub(r"\s+", " ", raw).strip(" *|")
    raw = re.sub(r"\s+and subsidiaries$", "", raw, flags=re.I)
    if not raw.isupper():
        return raw
    pattern = r"\s+".join(re.escape(word) for word in raw.split())
    forms = Counter(" ".join(m.split()) for m in re.findall(pattern, text, re.I))
    mixed = [(count, form) for form, count in forms.items() if not form.isupper() and form[:1] == raw[:1]]
    return max(mixed)[1] if mixed else " ".join(map(_capitalised, raw.split()))


def _capitalised(word: str) -> str:
    if re.fullmatch(r"(?:LLC|LP|NV|SA|AG|SE|II|III|IV|USA|US|AT&T|[A-Z&.]{1,3}|(?:[A-Z]\.){2,})\W*", word) and word.strip(",.") not in ("INC", "CO", "LTD", "THE", "AND", "OF"):
        return word
    return re.sub(r"[^\W\d_]+(?:[’'][^\W\d_]+)?", lambda m: m[0].capitalize(), word, count=1)


def _ticker(head: str, text: str) -> str | None:
    for pattern, where in ((_TICKER_ROW, head), (_TICKER_NAMED, head), (_TICKER_NAMED, text[:20000])):
        if match := pattern.search(where):
            return match[1] if match[1] not in ("THE", "NONE", "NA") else None
    named = re.search(r"under\s+the\s+(?:ticker\s+|trading\s+)?symbols?\s+[“\"‘']([A-Z]{1,5})[,.”\"’']", text)
    return named[1] if named else None


def _period_end(form: str | None, head: str, text: str, described: str) -> date | None:
    """The end of the reported period; for an 8-K the date of the reported event."""
    if form == "8-K":
        return _date(_first_group(_REPORT_DATE, head))
    if found := _date(_first(_PERIOD_END, head)):
        return found
    if match := re.search(rf"period ending ({_DATE})", described):
        return _date(match[1])
    ended = Counter(filter(None, map(_date, _PERIOD_END.findall(text))))
    if not ended:
        return None
    often = max(ended.values())
    return max(day for day, count in ended.items() if count >= 0.34 * often)


def _fiscal(form: str | None, end: date | None, head: str, text: str, path: Path) -> tuple[int | None, str | None]:
    """Fiscal year and period in the company's own calendar."""
    if form == "8-K":
        return (end.year if end else _year_of_file(path)), None
    quarter = _quarter(form, end, head, text)
    if end is None:
        named = _QUARTER.search(head)
        year = int(named["year"]) if named else _year_of_file(path)
        return year, (f"Q{quarter}" if quarter else "FY" if form in ("10-K", "20-F", "AR") else None)
    if quarter is None:
        return _year_ending(end, text), "FY"
    named_years = Counter(
        int(m["year"]) for m in _QUARTER.finditer(text)
        if _ordinal(m) == quarter and abs(int(m["year"]) - end.year) <= 1 and re.search("fiscal|Q", m[0], re.I)
    )
    year_end = _months_later(end, 3 * (4 - quarter))
    expected = _year_ending(year_end, text)
    if named_years and expected not in named_years and form == "ER":
        expected = named_years.most_common(1)[0][0]
    return expected, f"Q{quarter}"


def _quarter(form: str | None, end: date | None, head: str, text: str) -> int | None:
    """1 to 4; None for a full year."""
    if form in ("10-K", "20-F", "AR"):
        return None
    if form == "ER":
        named = _QUARTER.search(head) or re.search(r"\b(?P<ordinal>first|second|third|fourth)[\s-]+quarter(?P<q>)\b", head, re.I)
        return _ordinal(named) if named else None
    named = re.search(r"\bQ([1-4])\s+20\d\d\s+form\s+10-Q", text, re.I)
    if named:
        return int(named[1])
    day = re.compile(rf"{calendar.month_abbr[end.month]}\w*\.?\s+{end.day}\b", re.I) if end else re.compile("")
    longest = [
        n for m in _MONTHS_ENDED.finditer(text) if (n := _quarters(m)) and day.search(text, m.end(), m.end() + 80)
    ]
    return max(longest, default=1)


def _quarters(match: re.Match[str]) -> int | None:
    if match[1]:
        return {"three": 1, "3": 1, "six": 2, "6": 2, "nine": 3, "9": 3}[match[1].lower()]
    return _WEEKS.get(match[2].lower())


def _ordinal(match: re.Match[str]) -> int:
    return _ORDINALS[match["ordinal"].lower()] if match["ordinal"] else int(match["q"])


def _year_ending(end: date, text: str) -> int:
    """How the company names the fiscal year that ends about that day.

    A year that it calls by name and date decides. Else, for one that ends in January or February, an annual report
    speaks of the three years up to its own: those that the text names most. The first days of January belong to the
    year before.
    """
    names: Counter[int] = Counter()
    for match in _NAMED_YEAR.finditer(text):
        day, year = _date(match["d1"] or match["d2"]), int(match["y1"] or match["y2"])
        if day and abs(year - day.year) <= 1:
            offset = round((end - day).days / 365.25)
            if abs((end - day).days - 365.25 * offset) < 20:
                names[year + offset] += 1
    if names:
        return names.most_common(1)[0][0]
    if end.month > 2:
        return end.year
    fiscal = Counter(int(year) for year in _FISCAL.findall(text))
    if fiscal[end.year - 3] != fiscal[end.year]:
        return end.year if fiscal[end.year] > fiscal[end.year - 3] else end.year - 1
    return end.year - 1 if end.month == 1 and end.day <= 15 else end.year


def _months_later(day: date, months: int) -> date:
    month = day.month - 1 + months
    year = day.year + month // 12
    return date(year, month % 12 + 1, min(day.day, calendar.monthrange(year, month % 12 + 1)[1]))


def _year_of_file(path: Path) -> int | None:
    match = re.search(r"(?<!\d)((?:19|20)\d\d)(?!\d)", path.stem)
    return int(match[1]) if match else None


def _name(company: str | None, form: str | None, year: int | None, period: str | None, end: date | None, path: Path) -> str:
    """A title for people: "Acme Corp 10-Q Q3 FY2023"."""
    if company is None and form is None:
        return path.stem.replace("_", " ")
    parts = [company or path.stem.replace("_", " "), form]
    if form == "8-K" and end:
        parts.append(printed(end))
    else:
        parts += [period if period and period != "FY" else None, f"FY{year}" if year else None]
    return " ".join(filter(None, parts))


def printed(day: date) -> str:
    """ "December 31, 2022" """
    return f"{calendar.month_name[day.month]} {day.day}, {day.year}"


def _sector(cover: str) -> str | None:
    code = _first(_SIC, cover)
    return next((name for low, high, name in _SECTORS if code and low <= int(code) <= high), None)


def _first(pattern: re.Pattern[str], text: str, change: "type | object | None" = None) -> str | None:
    match = pattern.search(text)
    if match is None:
        return None
    return change(match[1]) if callable(change) else match[1]


def _first_group(pattern: re.Pattern[str], text: str) -> str | None:
    match = pattern.search(text)
    return next(filter(None, match.groups()), None) if match else None


def _iso(text: str | None) -> str | None:
    day = _date(text)
    return day.isoformat() if day else None


def _date(text: str | None) -> date | None:
    """A date as American filings print it; None where it is none or does not exist."""
    if not text:
        return None
    try:
        if match := re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", text):
            return date(int(match[1]), int(match[2]), int(match[3]))
        if match := re.fullmatch(r"(\d\d?)/(\d\d?)/(\d{4})", text):
            return date(int(match[3]), int(match[1]), int(match[2]))
        numbers = [int(n) for n in re.findall(r"\d+", text)]
        month = next(number for word in re.findall(r"[a-z]+", text.lower()) if (number := _MONTHS.get(word)))
        return date(numbers[1], month, numbers[0])
    except (ValueError, StopIteration, IndexError):
        return None


def _unused(_: Iterable[str]) -> None: ...
