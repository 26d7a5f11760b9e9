"""The amount of a part of a company that a question names, a segment or a product line, and its share of the whole."""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.adapters.bm25 import query_tokens, tokens
from app.agent.actions import Actions
from app.agent.findings import Finding, joined
from app.computing.arithmetic import evaluate
from app.computing.calculations import checked
from app.computing.finding import Found, answered, numbered, quoted
from app.computing.formulas import Formula, Term, at
from app.computing.lookups import periods_meant
from app.computing.operands import Operand, columns_for, scale_in, written
from app.evidence.citations import cite
from app.evidence.statements import Statement, core_question, statements
from app.question.aims import aim_of
from app.question.companies import without_names
from app.question.lines import LINES, label_rank
from app.question.periods import Period, named_periods, without_periods
from app.question.reading import reporting
from app.retrieval.search import Retrieval
from app.retrieval.widening import widened
from app.types import Answer, Condition, Document, Hit, Question

_POOL = 20
"""Table passages looked through."""
_LINES = ("revenue", "operating income", "operating expenses", "cogs", "gross profit")
"""Those that filings break down."""
_KIND = re.compile(
    r"\b(?:segments?|divisions?|business(?:es)?(?: units?)?|product lines?|categor(?:y|ies)|regions?)\b", re.IGNORECASE
)
_SHARE = re.compile(r"\b(?:what|which|the) (?:percent(?:age)?|%|share|portion|proportion|fraction) of\b", re.IGNORECASE)
_MOVED = re.compile(
    r"\b(?:chang|grow|grew|increas|decreas|declin|rise|rose|fell|fall|compar|differ|fluctuat|trend|than|versus)\w*",
    re.I,
)
_ASIDE = frozenset(
    query_tokens(
        "how much what which was were is are did do does the of its their our total net amount value percent"
        " percentage share portion proportion fraction attributed attributable generated contribute contributed"
        " contribution come came derived earned account accounted represent represented make made up from by for in"
        " to at segment segments division divisions business businesses group groups unit units product products"
        " category categories region regions line lines report reported reports year quarter fiscal latest recent"
        " most 10-K 10-Q filing annual quarterly company million millions billion billions dollars usd end ended"
        " ending period three six nine months"
    )
)
"""Terms that ask, and name no part."""
_MOST = 5
"""Terms that a part's name has at most."""
_OTHER = re.compile(r"\b(?:other|corporate|unallocated|eliminations?)\b", re.IGNORECASE)
"""What a row may be called that is not the part whose name stands in it: `Other pumps`."""
_CAPTION = 300
"""Characters above a table's first row that may say which line it breaks down."""
_TOTAL = re.compile(r"(?:consolidated|total|company)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Part:
    """A line of one part of a company, over periods."""

    line: str
    """Key of LINES."""
    name: str
    """As the question gives it, less what asks: `Personal Computing`."""
    periods: tuple[Period, ...]
    filings: tuple[Document, ...]
    share: bool
    """Whether its share of the whole company's line is asked for."""

    async def answer(self, question: Question, actions: Actions) -> Answer | None:
        """None where no table has a row under the part's whole name for the line, or the whole's is not beside it."""
        hits = await self._search(question, actions)
        found = await asyncio.to_thread(self._operands, hits)
        seen = Found(found, hits)
        if not self.share:
            return await self._quoted(seen, question, actions)
        formulas = [formula for period in self.periods if (formula := self._formula(period))]
        made = [await answered(formula, seen, question, actions) for formula in formulas]
        known = [Finding("", answer) for answer in made if answer is not None]
        return joined(known, question.k) if known else None

    def _formula(self, period: Period) -> Formula | None:
        return at(period, f"{self.name} to {self.line}", f"[{self.name}] / [{self.line}]", percent=True, places=1)

    async def _quoted(self, seen: Found, question: Question, actions: Actions) -> Answer | None:
        terms = [term for term in seen.operands if term.line == self.name]
        passages = seen.passages(terms, question.k) if terms else None
        if passages is None:
            return None
        cited = await cite(quoted([seen.operands[term] for term in terms], passages), passages, actions.tools)
        made = checked(cited.text, cited.citations)
        return Answer(cited.text, cited.citations, passages, notes=cited.notes, calculations=made)

    async def _search(self, question: Question, actions: Actions) -> tuple[Hit, ...]:
        ids = tuple(document.id for document in self.filings)
        named = (Condition("document_id", "$in", ids), Condition("kind", "$eq", "table"))
        where = question.where.narrowed(*named)
        query = f"{self.name} {LINES[self.line].query} by segment and category"

        async def work() -> list[Hit]:
            return (await Retrieval().fused(question, query, where, actions.tools))[:_POOL]

        arguments = {"query": query, "kind": "table", "documents": ids[:10]}
        hits = await actions.take(
            "search",
            arguments,
            f"{self.name} is a part of the company",
            work,
            lambda hits: [h.chunk.id for h in hits[:5]],
        )
        return numbered(await widened(hits, actions.tools))

    def _operands(self, hits: Sequence[Hit]) -> Mapping[Term, Operand]:
        """Per period the part's row that says least else, and the whole's of the same table."""
        rows = [one for one in statements(hits) if one.row is not None]
        firsts = {one.marker: one for one in reversed(rows)}
        own = [one for one in rows if self._is_part(one, firsts[one.marker])]
        own.sort(key=lambda one: (not self._says_line(one), len(self._else(one)), one.marker))
        found: dict[Term, Operand] = {}
        for period in self.periods:
            for row in own:
                part = self._operand(Term(self.name, period), row, hits)
                if part is None:
                    continue
                wholes = (self._operand(Term(self.line, period), one, hits) for one in self._wholes(row, rows))
                whole = next((one for one in wholes if one and _holds(one, part)), None) if self.share else None
                if whole or not self.share:
                    found |= {each.term: each for each in (part, whole) if each}
                    break
        return found

    def _operand(self, term: Term, row: Statement, hits: Sequence[Hit]) -> Operand | None:
        columns = _columns(self.line, row, term.period)
        number = written(row.row.values[columns[0]]) if columns and row.row else None
        return (
            Operand(term, hits[row.marker - 1], row, columns[0], number, scale_in(row.chunk.unit)) if number else None
        )

    def _is_part(self, one: Statement, first: Statement) -> bool:
        """Whether its label, or the heading above it, is the part's name, and it is a row of the line.

        That says the label, the heading, or what stands above the table's `first` row.
        """
        named = set(query_tokens(self.name))
        if not named <= one.terms or (_OTHER.search(f"{one.group} {_label(one)}") and not _OTHER.search(self.name)):
            return False
        if any(2 * len(named & own) < len(own) for own in (_terms(_label(one)), _terms(one.group)) if named & own):
            return False
        above = one.chunk.text[: first.unit.start][-_CAPTION:]
        head = (
            f"{one.chunk.section or ''} {one.chunk.context.partition(chr(10))[2]} {above} {' '.join(one.chunk.columns)}"
        )
        return self._says_line(one) or (not self._other_line(one) and _named_in(self.line, head))

    def _else(self, one: Statement) -> set[str]:
        """What the row is called beside the part's name."""
        said = (label for label in (_label(one), one.group) if not _is_line(self.line, label))
        return set[str]().union(*map(_terms, said)) - set(query_tokens(self.name))

    def _says_line(self, one: Statement) -> bool:
        """By its label or the heading above it in the table."""
        return _is_line(self.line, _label(one)) or _is_line(self.line, one.group)

    def _other_line(self, one: Statement) -> bool:
        """Whether its label or the heading above it is another line of a statement."""
        return any(key != self.line and (_is_line(key, _label(one)) or _is_line(key, one.group)) for key in LINES)

    def _wholes(self, part: Statement, rows: Sequence[Statement]) -> list[Statement]:
        """Rows of the part's table for the whole company, the nearest behind it first."""
        totals = [one for one in rows if one.marker == part.marker and one is not part and self._is_whole(one)]
        return sorted(totals, key=lambda one: (one.unit.start < part.unit.start, abs(one.unit.start - part.unit.start)))

    def _is_whole(self, one: Statement) -> bool:
        """`Total`, `Total company`, the line itself under no part's heading; no total of a part."""
        if self._other_line(one):
            return False
        label, of_line = _label(one), _is_line(self.line, _label(one))
        if _TOTAL.match(label):
            return of_line or not _terms(label) - set(tokens(LINES[self.line].query))
        return of_line and (not one.group or bool(_TOTAL.match(one.group)))


def asked_part(question: str, companies: Sequence[str], filings: Sequence[Document]) -> Part | None:
    """None where the question names no part, or wants anything else than its amount or share in these filings."""
    core = without_names(core_question(question), companies)
    if not filings or _MOVED.search(core) or aim_of(core):
        return None
    lines = [key for key in _LINES if re.search(rf"\b(?:{LINES[key].asked})(?!\w)", core, re.IGNORECASE)]
    named = named_periods(question)
    if len(lines) != 1:
        return None
    if any(period.quarter for period in named):  # an annual report that ends then has no quarter's amount
        filings = [filing for filing in filings if filing.meta.form == "10-Q"]
    name = _name(core, lines[0], named)
    periods = tuple(periods_meant(named, filings))
    if not name or not periods:
        return None
    reports = {filing.id: filing for period in periods for filing in reporting(filings, period)}
    return Part(lines[0], name, periods, tuple(reports.values()), bool(_SHARE.search(core)))


def _name(core: str, line: str, named: Sequence[Period]) -> str:
    """What is left of the question; "" where nothing, too much, or no name."""
    left = re.sub(rf"\b(?:{LINES[line].asked})(?!\w)", " ", without_periods(core, named), flags=re.IGNORECASE)
    words = [word for word in re.findall(r"[\w&-]+", left) if set(query_tokens(word)) - _ASIDE]
    name = " ".join(words)
    terms = query_tokens(name)
    telling = any(word[0].isupper() or any(ch.isupper() for ch in word) for word in words)
    return name if 0 < len(terms) <= _MOST and (telling or _KIND.search(core)) else ""


def _terms(label: str) -> set[str]:
    """Less what any part may be called: `Total Valves segment` -> valves."""
    return set(tokens(label)) - _ASIDE


def _is_line(line: str, label: str) -> bool:
    return bool(label) and label_rank(LINES[line], label) is not None


def _named_in(line: str, text: str) -> bool:
    return re.search(rf"\b(?:{LINES[line].asked})(?!\w)", text, re.IGNORECASE) is not None


def _label(one: Statement) -> str:
    return one.row.label if one.row else ""


def _holds(whole: Operand, part: Operand) -> bool:
    return abs(evaluate(whole.written)) >= abs(evaluate(part.written))


def _columns(line: str, row: Statement, period: Period) -> list[int]:
    """Values of the period, of the line's columns where headings name lines."""
    headed = row.chunk.columns
    columns = columns_for(row, period)
    own = [i for i in columns if _named_in(line, headed[i])]
    return own or [i for i in columns if not any(_named_in(key, headed[i]) for key in _LINES)]
