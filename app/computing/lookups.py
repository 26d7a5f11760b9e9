"""Quotes the lines that a question names from the statements themselves, for the periods that it means."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.agent.actions import Actions
from app.computing.calculations import checked
from app.computing.finding import Finder, quoted
from app.computing.formulas import Term, at
from app.computing.operands import Operand, restated
from app.computing.ratios import Computing
from app.evidence.citations import cite
from app.evidence.statements import core_question
from app.question.aims import aim_of
from app.question.companies import without_names
from app.question.lines import LINES, named_lines
from app.question.periods import Period, named_periods, without_periods
from app.question.reading import reporting
from app.types import Answer, Document, Question

_NO_LINES = re.compile(
    r"\b(?:polic(?:y|ies)|risks?|legal|expect\w*|outlook|guidance|forecast\w*|how many (?:times|people|employees))\b",
    re.IGNORECASE,
)
"""What wants no line, whatever line it names."""
_BESIDE = re.compile(
    r"\b(?:chang\w+|increas\w+|decreas\w+|gr[eo]w\w*|declin\w+|shift\w*|levels|trends?|evolv\w+|fluctuat\w+|vari\w+"
    r"|differ\w*|prior|previous|earlier)\b",
    re.IGNORECASE,
)
"""What a period's number alone does not tell."""
_ASKING = frozenset(
    "10-k 10-q 10k 10q a about across against amount an and annual any are as at balance between bigger biggest "
    "billion billions by carried carry cash change changed changes company compare compared comparison decline "
    "declined decrease decreased decreases did differ disclose disclosed do does dollars during each earlier earnings "
    "end ended evolved filed filing filings fiscal flow flows fluctuate fluctuated for form from generate generated "
    "greater greatest grew grow growth had has have higher highest how in income increase increased increases incur "
    "incurred invested is it its k larger largest latest less level levels lower lowest magnitude measure million "
    "millions more most much net of on operations or over owe owed per period periods previous prior q quarter "
    "quarterly quarters question recent relative report reported reports s same sheet shift shifted show shown smaller "
    "smallest spend spent stack state stated statement statements than that the their these they this those thousand "
    "thousands time to total up usd value varied vary versus vs was were what which with year years".split()
)
"""Words that ask, and name nothing more to be answered."""
_WORD = re.compile(r"[\w&-]+")
_SCALE = re.compile(r"\bin (?:US\s?D?\$?\s*|units of )?(?P<scale>thousand|million|billion)s?\b", re.IGNORECASE)
_MOST_TERMS = 12
"""Lines times periods; a question for more names no line in particular."""


@dataclass(frozen=True, slots=True)
class Looked:
    """What a lookup found."""

    answer: Answer
    whole: bool
    """Whether it is all that was asked for."""


@dataclass(frozen=True, slots=True)
class Lookup:
    """Lines over periods of one company's filings."""

    terms: tuple[Term, ...]
    filings: tuple[Document, ...]
    beside: bool
    """Whether the columns beside, of other dates, are wanted as well."""
    whole: bool
    """Whether these lines are all that is asked for."""
    scale: str
    """thousands, millions or billions where the question asks for that, else ""."""

    async def answer(self, question: Question, actions: Actions) -> Looked | None:
        """None where no line is found in the statement itself, or the rows' passages are more than k."""
        seen = await Finder(self.filings, question, actions, "the question").find(self.terms)
        known = [term for term in self.terms if term in seen.operands and seen.operands[term].stated]
        passages = seen.passages(known, question.k) if known else None
        if passages is None:
            return None if known else await self._otherwise(question, actions) or await self._instead(question, actions)
        found = [seen.operands[term] for term in known]
        cited = await cite(quoted(found, passages, beside=self.beside), passages, actions.tools)
        text = "\n".join([cited.text, *self._restated(found)])
        whole = self.whole and {term.line for term in known} == {term.line for term in self.terms}
        shown = passages[: len({operand.hit.chunk.id for operand in found})]
        made = checked(text, cited.citations)
        return Looked(Answer(text, cited.citations, shown, notes=cited.notes, calculations=made), whole)

    async def _otherwise(self, question: Question, actions: Actions) -> Looked | None:
        """The one line asked for computed from others, where it can be."""
        [term, *more] = self.terms
        formula = at(term.period, term.line.capitalize(), LINES[term.line].otherwise) if not more else None
        if formula is None or not formula.terms:
            return None
        answer = await Computing(formula, self.filings).answer(question, actions)
        return None if answer is None else Looked(answer, self.whole)

    async def _instead(self, question: Question, actions: Actions) -> Looked | None:
        """The lines that stand for those asked for, where all of them have one."""
        terms = tuple(replace(term, line=line) for term in self.terms if (line := LINES[term.line].instead))
        return await replace(self, terms=terms).answer(question, actions) if len(terms) == len(self.terms) else None

    def _restated(self, found: Sequence[Operand]) -> list[str]:
        """The amounts in the scale asked for, where their tables have another."""
        return [line for operand in found if (line := restated(operand, self.scale))]


def asked_lookup(question: str, companies: Sequence[str], filings: Sequence[Document]) -> Lookup | None:
    """What the question asks of these filings of the one company that it names; None where of no line.

    Periods are those it names, else that of the only filing. A quarter that several filings may report, by the fiscal
    year, the calendar or their names, is looked up in each, and so is a year without an annual filing.
    """
    core = without_names(core_question(question), companies)
    lines = named_lines(core)
    named = named_periods(question)
    if not lines or not filings or _NO_LINES.search(core):
        return None
    chosen = periods_meant(named, filings)
    terms = tuple(Term(key, period) for key, _, _ in lines for period in chosen)
    if not terms or len(terms) > _MOST_TERMS:
        return None
    reports = {filing.id: filing for term in terms for filing in reporting(filings, term.period)}
    scale = _SCALE.search(question)
    return Lookup(
        terms,
        tuple(reports.values()),
        len(named) < 2 and bool(_BESIDE.search(core)),
        aim_of(core) is None and not _rest(core, lines, named),
        f"{scale['scale'].lower()}s" if scale else "",
    )


def periods_meant(named: Sequence[Period], filings: Sequence[Document]) -> list[Period]:
    """The periods as they are named, or the days on which filings that may be for them end.

    Days stand for a quarter, and for a year of which there are quarterly filings alone.
    """
    if not named:
        days = {filing.meta.period_end for filing in filings}
        return [_day(day) for day in days if day] if len(days) == 1 else []
    found: dict[Period, None] = {}
    for period in named:
        ends = sorted(end for filing in _apart(reporting(filings, period), period) if (end := filing.meta.period_end))
        apart = period.quarter or not reporting(filings, period, whole=True)
        found |= dict.fromkeys(map(_day, ends) if apart else [period])
    return list(found)


def _apart(filings: Sequence[Document], period: Period) -> Sequence[Document]:
    """Where there are quarterly filings for a quarter, those alone: a year that ends with it has other amounts."""
    quarterly = [filing for filing in filings if filing.meta.form == "10-Q"] if period.quarter else []
    return quarterly or filings


def _day(iso: str) -> Period:
    return Period(int(iso[:4]), None, iso)


def _rest(core: str, lines: Sequence[tuple[str, int, int]], named: Sequence[Period]) -> list[str]:
    """Words that name something else to be answered."""
    left = core
    for _, start, end in reversed(lines):
        left = f"{left[:start]} {left[end:]}"
    left = without_periods(left, named)
    return [word for word in _WORD.findall(left.lower()) if word not in _ASKING and not word.isdigit()]
