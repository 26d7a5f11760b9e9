"""The agent without a model: computes what has a formula, splits comparisons, follows whom the evidence names."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.agent.actions import Actions
from app.agent.directions import along
from app.agent.findings import Finding, joined
from app.agent.hops import Lead, leads, points_beyond, residual, resolved
from app.agent.series import Line, common_line, own_columns, printed
from app.agent.threshold import Follow
from app.answering import abstain, answer_if_held, told
from app.computing.changes import Change, asked_change
from app.computing.finding import numbered
from app.computing.formulas import asked_formula
from app.computing.lookups import Looked, asked_lookup
from app.computing.parts import asked_part
from app.computing.ratios import Computing, computing
from app.errors import LimitExceeded, Timeout
from app.evidence.citations import MARKERS, cite
from app.evidence.quotes import numbers
from app.evidence.statements import plain
from app.evidence.wording import worded
from app.question.aims import aim_of, said_for
from app.question.companies import named_companies, without_names
from app.question.decomposition import SubQuestion, decompose
from app.question.periods import Period
from app.question.reading import read
from app.question.topics import followed
from app.retrieval.fusion import in_order
from app.retrieval.search import Retrieval
from app.retrieval.widening import SPARE, widened
from app.tools import Tools, together
from app.types import Answer, Condition, Document, Hit, Question

STOPPED = (LimitExceeded, Timeout)
_READ = 10
"""Passages read for whom they name, even where fewer are asked for."""
_POOL = 50
"""Passages looked through for prose."""
_SERIES = 20
"""Passages of each filing read for a line that all of them print."""
_SHOWN = 20
"""Most ids put into a trace."""


@dataclass(frozen=True, slots=True)
class Controller:
    """One request's. No call but the generator's that writes the answer; the rest is rules over the real index."""

    question: Question
    catalogue: Sequence[Document]
    tools: Tools
    """The request's own, for its answer; what leads there is done by those of the actions."""
    actions: Actions
    max_parts: int
    max_hops: int
    follow: Follow
    question_signal: bool
    least_lead: float
    least_residual: float

    async def answer(self) -> Answer:
        """Within the limits; where one is met, what is known by then, or an abstention that says which it was."""
        parts = self.parts()
        try:
            exact = await self.exact(parts)
        except STOPPED as error:
            return abstain("limit", (), self.actions.stopped(error))
        if isinstance(exact, Answer):
            return told(exact, self.tools)
        return told(await self._compared(parts), self.tools) if parts else await self.followed(exact)

    async def exact(self, parts: Sequence[SubQuestion]) -> Answer | Looked | None:
        """What rules alone compute, or read in the statements; Looked where those lines are not all that is asked."""
        if (computed := await self.computed(self.question)) is not None:
            return computed
        looked = await self.looked_up(self.question, (), whole=bool(parts))
        if looked is not None and looked.whole:
            return await self._backed(looked.answer, await self._first(), self.question.k)
        series = await self._series(parts) if parts else []
        if series and aim_of(self.question.text) and self.tools.ports.generator.purposes is not None:
            rows = zip(parts, self.rooms(len(parts)), series, strict=True)
            series = await together([self.open_part(part, room, _looked(row)) for part, room, row in rows])
        return joined(series, self.question.k) if series else looked

    async def evidence(self, parts: Sequence[SubQuestion]) -> list[list[Hit]]:
        """The passages of each part of the question, or of each hop; nothing is answered."""
        if parts:
            asked = [replace(self.question, text=part.text) for part in parts]
            return await together([self._searched(part, one) for part, one in zip(parts, asked, strict=True)])
        if self.follow == "direction":
            return [await self._along()]
        hits = await self._first()
        if (lead := await self._lead(hits)) is None:
            return [hits]
        rest = [hit for hit in hits if hit.chunk.id != lead.hit.chunk.id]
        part = self._of(lead)
        return [[lead.hit, *rest], await self._searched(part, replace(self.question, text=part.text))]

    def parts(self) -> list[SubQuestion]:
        """Of a comparison, two or more; noted in the trace."""
        parts = decompose(self.question.text, self.catalogue, most=self.max_parts) if self.max_parts > 1 else []
        beyond = points_beyond(self.question.text)
        self.actions.tools.note("plan", parts=[part.about for part in parts], points_beyond=beyond)
        return parts[: self.question.k] if self.question.k > 1 else []

    async def computed(self, question: Question) -> Answer | None:
        """None where no ratio, growth or part of one company is asked for, or a number that it needs was not found."""
        reading = read(question.text, self.catalogue)
        companies = reading.companies
        ends = {document.meta.period_end for document in self.catalogue if document.id in reading.documents}
        only = ends.pop() if len(ends) == 1 else None
        current = Period(int(only[:4]), None, only) if only else None
        if len(companies) != 1:
            return None
        plan: Computing | Change | None = asked_change(question.text, companies, self.catalogue)
        if formula := asked_formula(without_names(question.text, companies), current):
            plan = computing(formula, [document for document in self.catalogue if document.meta.company in companies])
        if plan is not None:
            return await plan.answer(question, self.actions)
        filings = [document for document in self.catalogue if document.id in reading.documents]
        part = asked_part(question.text, companies, filings)
        return None if part is None else await part.answer(question, self.actions)

    async def looked_up(self, question: Question, documents: Sequence[str], *, whole: bool = False) -> Looked | None:
        """Lines of the statements that it names; None where it names none of one company, or they were not found.

        `documents` are the filings to look into, by default those that the question names; `whole` does so only where
        these lines are all that it asks for.
        """
        reading = read(question.text, self.catalogue)
        ids = set(documents or reading.documents)
        filings = [document for document in self.catalogue if document.id in ids]
        if len(reading.companies) != 1:
            return None
        plan = asked_lookup(question.text, reading.companies, filings)
        if plan is None or (whole and not plan.whole):
            return None
        return await plan.answer(question, self.actions)

    async def _compared(self, parts: Sequence[SubQuestion]) -> Answer:
        """Each part searched and answered from its own passages, all at once."""
        rooms = self.rooms(len(parts))
        found = await together([self.part(part, room) for part, room in zip(parts, rooms, strict=True)])
        return joined(found, self.question.k)

    def rooms(self, parts: int) -> list[int]:
        """How many of the k passages each part is given."""
        return [self.question.k // parts + (n < self.question.k % parts) for n in range(parts)]

    async def _series(self, parts: Sequence[SubQuestion]) -> list[Finding]:
        """One line of every filing's statements, where it is asked how one moved and they share it; else nothing."""
        about = followed(parts[0].text) if parts[0].over_time else None
        if about is None or read(self.question.text, self.catalogue).beyond:
            return []
        about = without_names(about, parts[0].companies)
        try:
            several = await together([self._found_by(about, part) for part in parts])
            line = await asyncio.to_thread(common_line, about, several)
            self.tools.note("series", topic=about, line=line and line.label)
            if line is None:
                return []
            rooms = self.rooms(len(parts))
            asked = zip(parts, several, rooms, strict=True)
            return await together([self._line(line, part, hits, room) for part, hits, room in asked])
        except STOPPED:
            return []

    async def _line(self, line: Line, part: SubQuestion, hits: Sequence[Hit], room: int) -> Finding:
        """The filing's value of the line; where no passage prints it, those found by its label are looked at, too."""
        found = await asyncio.to_thread(printed, line, hits)
        if found is None:
            hits = await self._found_by(line.label, part)
            found = await asyncio.to_thread(printed, line, hits)
        if found is None:
            return Finding(part.about, abstain("not_supported", hits[:room]))
        first = hits[found.marker - 1]
        passages = in_order([first, *(hit for hit in hits if hit is not first)][: max(room, 1)])
        text = worded(replace(found, marker=1), own_columns(found))
        cited = await cite(text, passages, self.actions.tools)
        return Finding(part.about, Answer(cited.text, cited.citations, tuple(passages), notes=cited.notes))

    async def _found_by(self, words: str, part: SubQuestion) -> list[Hit]:
        asked = replace(self.question, text=words, k=_SERIES)
        return (await self._searched(replace(part, text=words), asked, broad=False))[:_SERIES]

    async def part(self, part: SubQuestion, room: int) -> Finding:
        """Computed, or answered from `room` passages of its own; at a limit not answered."""
        try:
            exact = await self.exact_part(part, room)
        except STOPPED as error:
            return Finding(part.about, abstain("limit", (), self.actions.stopped(error)))
        return exact if isinstance(exact, Finding) else await self.open_part(part, room, exact)

    async def exact_part(self, part: SubQuestion, room: int) -> Finding | Looked | None:
        """As `exact`, of a part."""
        asked = replace(self.question, text=part.text, k=room)
        if not self._asks_for_one_value() and (computed := await self.computed(asked)) is not None:
            return Finding(part.about, computed)
        looked = await self.looked_up(asked, part.documents)
        if looked is None or not looked.whole:
            return looked
        return Finding(part.about, await self._backed(looked.answer, await self._searched(part, asked), room))

    async def _backed(self, answer: Answer, hits: Sequence[Hit], k: int) -> Answer:
        """The answer with what was searched for the question behind its own passages, k together."""
        own = {hit.chunk.id for hit in answer.passages}
        others = [hit for hit in hits if hit.chunk.id not in own]
        passages = await widened(others, self.actions.tools, k, read=answer.passages)
        return replace(answer, passages=tuple(in_order(passages)))

    async def open_part(self, part: SubQuestion, room: int, looked: Looked | None) -> Finding:
        """What the generator says of a part that rules do not answer exactly."""
        hits: list[Hit] = []
        to_tell = aim_of(part.text) is not None
        if to_tell and self.tools.ports.generator.purposes is not None:
            room = self.question.k  # read sentence by sentence; a model would be shown them all
        asked = replace(self.question, text=part.text, k=room)
        try:
            hits = await self._searched(part, asked, prose=looked is not None and to_tell)
            rest = await answer_if_held(asked, hits, self.actions.tools)
            return Finding(part.about, _led(looked, rest, room, to_tell=to_tell))
        except STOPPED as error:
            return Finding(part.about, abstain("limit", hits[:room], self.actions.stopped(error)))

    def _asks_for_one_value(self) -> bool:
        """Whether something is to be computed over all parts, such as the growth from one year to another.

        Of a single part the growth would be another year's.
        """
        companies = read(self.question.text, self.catalogue).companies
        return len(companies) == 1 and asked_formula(without_names(self.question.text, companies)) is not None

    async def _searched(
        self, part: SubQuestion, asked: Question, *, broad: bool = True, prose: bool = False
    ) -> list[Hit]:
        if part.documents:
            named = Condition("document_id", "$in", part.documents)
            asked = replace(asked, where=asked.where.narrowed(named))

        async def work() -> list[Hit]:
            terms = f"{part.terms} {said_for(part.text)}".rstrip()
            hits = await Retrieval().fused(asked, terms, asked.where, self.actions.tools)
            hits = _prose(hits) if prose else hits
            return (_broad(hits) if broad else hits)[: SPARE * asked.k]

        arguments = {"query": part.text, "documents": part.documents[:_SHOWN]}
        return await self.actions.take("search", arguments, f"{part.about} is to be searched by itself", work, ids)

    async def followed(self, looked: Looked | None) -> Answer:
        """One search; where its evidence names whom the question only describes, a second in that company's filings.

        Lines of the statements that the question names go before.
        """
        hits: list[Hit] = []
        try:
            if self.follow == "direction":
                hits = await self._along()
                return await answer_if_held(self.question, hits, self.tools)
            to_tell = aim_of(self.question.text) is not None
            hits = await self._first(prose=looked is not None and to_tell)
            if (lead := await self._lead(hits)) is not None:
                found = await self._hop(hits, lead)
                whole = joined(found, self.question.k)
                if not found[-1].answer.abstained or self.tools.ports.generator.purposes is None:
                    return told(whole, self.tools)  # a model that read the company's filings was asked already
                hits = list(whole.passages)
            if looked is None:
                return await answer_if_held(self.question, hits, self.tools)
            rest = await answer_if_held(self.question, hits, self.actions.tools)
            return told(_led(looked, rest, self.question.k, to_tell=to_tell), self.tools)
        except STOPPED as error:
            return abstain("limit", hits[: self.question.k], self.actions.stopped(error))

    async def _along(self) -> list[Hit]:
        beyond = not self.question_signal or points_beyond(self.question.text)
        hops = self.max_hops if beyond else 0
        return await along(self.question, self.actions, hops=hops, least=self.least_residual)

    async def _first(self, *, prose: bool = False) -> list[Hit]:
        """Where only prose is wanted, rows are known already."""
        k = max(SPARE * self.question.k, _READ)
        wide, more = replace(self.question, k=_POOL if prose else k), said_for(self.question.text)

        async def work() -> list[Hit]:
            hits = await Retrieval().best(wide, self.actions.tools, more=more)
            return _prose(hits)[:k] if prose else hits

        return await self.actions.take("search", {"query": self.question.text}, "the question as it stands", work, ids)

    async def _lead(self, hits: Sequence[Hit]) -> Lead | None:
        """Whom to follow; None where the question is about whom it names, or the evidence leads nowhere else."""
        if not self.max_hops or (self.question_signal and not points_beyond(self.question.text)):
            return None
        hits = hits[: max(self.question.k, _READ)]
        found = [lead for lead in leads(self.question.text, hits, self.catalogue) if lead.score >= self.least_lead]
        if not found:
            return None
        tools = self.actions.tools
        [query] = await tools.embed_queries([self.question.text])
        [passage] = await tools.embed_passages([found[0].hit.chunk.searchable])
        opened = residual(passage, query)[1]
        tools.note("lead", company=found[0].company, score=round(found[0].score, 3), residual=round(opened, 3))
        return found[0] if opened >= self.least_residual else None

    async def _hop(self, hits: Sequence[Hit], lead: Lead) -> list[Finding]:
        """What names the company, quoted, and the question asked of that company's filings."""
        room = self.question.k - self.question.k // 3
        naming = await self._named(lead, hits, self.question.k - room)
        return [naming, await self.part(self._of(lead), room)]

    def _of(self, lead: Lead) -> SubQuestion:
        """The question asked of the company in the place of whom it describes, in its filings of the same periods."""
        asked = sorted(named_companies(self.question.text, self.catalogue))
        filings = read(f"{lead.company} {without_names(self.question.text, asked)}", self.catalogue).documents
        text = without_names(resolved(self.question.text, lead.company), asked)
        return SubQuestion(text, filings, lead.company, companies=(lead.company,))

    async def _named(self, lead: Lead, hits: Sequence[Hit], room: int) -> Finding:
        """The sentence that names the company, cited; its passage first."""
        rest = [hit for hit in hits if hit.chunk.id != lead.hit.chunk.id]
        passages = in_order((lead.hit, *rest))[: max(room, 1)]
        sentence = lead.unit.text if lead.unit else lead.hit.chunk.meta.title
        cited = await cite(f"{plain(sentence)} [1]", passages, self.actions.tools)
        return Finding("", Answer(cited.text, cited.citations, tuple(passages), notes=cited.notes))


def _among(answer: Answer, hits: Sequence[Hit], k: int) -> Answer:
    """The answer with what was searched for the question behind its own passages."""
    return replace(answer, passages=numbered([*answer.passages, *hits])[: max(k, len(answer.passages))])


def _looked(row: Finding) -> Looked | None:
    return None if row.answer.abstained else Looked(row.answer, whole=False)


def _led(looked: Looked | None, rest: Answer, k: int, *, to_tell: bool) -> Answer:
    """The rest of an answer behind what was looked up; where rows alone are wanted, not without any other number."""
    if looked is None:
        return rest
    said = numbers(MARKERS.sub("", rest.text))
    if said and said <= numbers(looked.answer.text) and not to_tell:
        return _among(looked.answer, rest.passages, k)
    return joined([Finding("", looked.answer), Finding("", rest)], k)


def _prose(hits: Sequence[Hit]) -> list[Hit]:
    """Those that are no tables, all where every one is."""
    return in_order([hit for hit in hits if hit.chunk.kind != "table"]) or list(hits)


def _broad(hits: Sequence[Hit]) -> list[Hit]:
    """The best passage of each page before any page's second; ranks from 1."""
    seen: set[tuple[str, int]] = set()
    firsts: list[Hit] = []
    others: list[Hit] = []
    for hit in hits:
        page = (hit.chunk.document_id, hit.chunk.page)
        (others if page in seen else firsts).append(hit)
        seen.add(page)
    return in_order((*firsts, *others))


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.chunk.id for hit in hits[:_SHOWN]]
