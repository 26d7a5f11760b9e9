"""The agent with a model: rules first; what they leave open it judges, acts on with tools, and answers from those."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from app.agent.controller import STOPPED, Controller
from app.agent.findings import Finding, joined, merged
from app.agent.hops import points_beyond
from app.agent.steps import Step, UnusableReply, prompt, step_of
from app.agent.toolbox import Observation, Toolbox, unavailable
from app.answering import QUOTED, abstain, answer_from, answer_if_held, told
from app.computing.calculations import checked
from app.computing.lookups import Looked
from app.errors import SextantError
from app.evidence.citations import MARKERS
from app.evidence.quotes import numbers
from app.prompts import sanitise
from app.question.aims import aim_of
from app.question.companies import named_companies
from app.question.decomposition import SubQuestion
from app.retrieval.widening import SPARE
from app.tools import Tools, together
from app.types import Answer, Calculation, Hit, Question


@dataclass(slots=True)
class Agent:
    """One request's: what rules answer exactly stands; the model answers what they leave open, from what they found.

    Where it finds no answer there, or the question describes somebody whom nothing cited is about, it judges what is
    missing and acts until it has enough or a limit is met. No later reply takes back an answer that was found before.
    """

    question: Question
    controller: Controller
    toolbox: Toolbox
    max_steps: int
    """Replies asked of the model before the one that is the answer."""
    tools: Tools
    """To write the answer with; what leads there is done by those of the actions."""
    kept_back: int = 0
    """Calls that others of the same request need to write their answers."""
    seen: list[str] = field(default_factory=list)
    """Results as the model is shown them, oldest first."""
    told: list[str] = field(default_factory=list)
    """What was computed or counted, for the one who writes the answer."""
    evidence: list[tuple[Hit, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    async def answer(self, *, apart: bool) -> Answer:
        """Within the limits; a comparison's parts `apart`, or all together where the calls left are too few."""
        parts = self.controller.parts()
        try:
            exact = await self.controller.exact(parts)
        except STOPPED as error:
            return abstain("limit", (), self.toolbox.actions.stopped(error))
        if isinstance(exact, Answer):
            return told(await self._explained(exact, parts), self.tools)
        if parts:
            return told(await self._compared(parts, apart), self.tools)
        return await self._settled(await self.controller.followed(exact))

    async def _explained(self, exact: Answer, parts: Sequence[SubQuestion]) -> Answer:
        """Where causes or events are asked for beside a line of several filings, with what the model says of them."""
        if not parts or aim_of(self.question.text) is None:
            return exact
        rest = await self._in_one(parts)
        return joined([Finding("", exact), replace(rest, about="")], self.question.k)

    async def _settled(self, first: Answer) -> Answer:
        """The first answer, or where it leaves the question open, one from what the model's actions find besides."""
        if first.reason in ("limit", "off_corpus") or not (first.abstained or self._unresolved(first)):
            return first
        self._found(first.passages)
        await self._act()
        if not self.told and self._known() == {hit.chunk.id for hit in first.passages}:
            return replace(first, notes=self._noted(first))  # asked again, it would say the same
        last = await self._written()
        if not _written_by_model(last) and not first.abstained:
            return told(replace(first, notes=self._noted(first)), self.tools)
        return last

    def _unresolved(self, answer: Answer) -> bool:
        """Whether it is asked about somebody only described, and nothing that is cited is of another than is named."""
        named = named_companies(self.question.text, self.controller.catalogue)
        return points_beyond(self.question.text) and {cited.company for cited in answer.citations} <= named

    async def _compared(self, parts: Sequence[SubQuestion], apart: bool) -> Answer:
        """Parts that rules answer cost no call; the others are answered each by itself and at once, then joined.

        Where they are answered in one, lines of theirs that rules have read stand before that.
        """
        rooms = self.controller.rooms(len(parts))
        exact = await together([self._exact(part, room) for part, room in zip(parts, rooms, strict=True)])
        left = [part for part, known in zip(parts, exact, strict=True) if not isinstance(known, Finding)]
        if left and not (apart and self.tools.beyond(len(left)) is None):
            known = [_finding(part, one) for part, one in zip(parts, exact, strict=True) if one is not None]
            return joined([*known, await self._in_one(left)], self.question.k)
        asked = zip(parts, rooms, exact, strict=True)
        found = await together([self._part(part, room, known, len(left)) for part, room, known in asked])
        whole = joined(found, self.question.k)
        return await self._joined(found, whole) if all(one is None for one in exact) else whole

    async def _exact(self, part: SubQuestion, room: int) -> Finding | Looked | None:
        try:
            return await self.controller.exact_part(part, room)
        except STOPPED as error:
            return Finding(part.about, abstain("limit", (), self.toolbox.actions.stopped(error)))

    async def _in_one(self, parts: Sequence[SubQuestion]) -> Finding:
        """All of them answered from what is searched for each."""
        about = ", ".join(part.about for part in parts)
        hits: tuple[Hit, ...] = ()
        try:
            hits = merged(await self.controller.evidence(parts), SPARE * self.question.k)
            first = await answer_if_held(self.question, hits, self.toolbox.actions.tools)
        except STOPPED as error:
            return Finding(about, abstain("limit", hits[: self.question.k], self.toolbox.actions.stopped(error)))
        return Finding(about, await self._apart(self.question, "")._settled(first))

    async def _part(self, part: SubQuestion, room: int, known: Finding | Looked | None, parts: int) -> Finding:
        """Acted on only where its own search does not answer it, by what the other `parts` do not need."""
        if isinstance(known, Finding):
            return known
        found = await self.controller.open_part(part, room, known)
        agent = self._apart(replace(self.question, text=part.text, k=room), part.about)
        agent.kept_back = parts - 1
        return Finding(part.about, await agent._settled(found.answer))

    def _apart(self, question: Question, part: str) -> "Agent":
        """For something that is not yet the answer, so that nobody is told of it."""
        toolbox = replace(self.toolbox, question=question, part=part)
        return Agent(question, self.controller, toolbox, self.max_steps, self.toolbox.actions.tools)

    async def _joined(self, found: Sequence[Finding], whole: Answer) -> Answer:
        """One answer to the whole from those to its parts; those themselves where it would lose one of them."""
        known = [finding.answer for finding in found if not finding.answer.abstained]
        if len(known) < 2 or not all(map(_written_by_model, known)) or self.tools.beyond(1) is not None:
            return whole
        self.told.append(MARKERS.sub("", whole.text))
        try:
            asked = replace(self._asked(), k=len(whole.passages))
            answer = await answer_from(asked, whole.passages, self.toolbox.actions.tools)
        except STOPPED as error:
            return replace(whole, notes=(*whole.notes, f"stopped: {self.toolbox.actions.stopped(error)}"))
        cited = {citation.chunk_id for citation in answer.citations}
        if not _written_by_model(answer) or not all(cited & {hit.chunk.id for hit in each.passages} for each in known):
            self.tools.note("parts", why="the model's answer to the whole leaves one of them out")
            return whole
        one = self._finished(answer)
        return replace(one, notes=tuple(dict.fromkeys((*one.notes, *whole.notes))))

    async def _act(self) -> None:
        """In steps until the model has enough; what it takes to write the answer is kept back from them."""
        try:
            await self._steps()
        except STOPPED as error:
            self._stopped(error)

    async def _written(self) -> Answer:
        """From all that was found; at a limit an abstention that says what is known."""
        hits = merged(self.evidence, SPARE * self.question.k)
        try:
            return self._finished(await answer_from(self._asked(), hits, self.tools))
        except STOPPED as error:
            self._stopped(error)
            known = (f"known: {line}" for line in self.told)
            return abstain("limit", hits[: self.question.k], *dict.fromkeys(self.notes), *known)

    async def _steps(self) -> None:
        fruitless = False
        for _ in range(self.max_steps):
            if (limit := self.tools.beyond(2 + self.kept_back)) is not None:
                self.tools.note("limit", limit=limit, why="what writing the answer takes is kept back")
                self.notes.append("stopped: only what writing the answer takes was left")
                return
            try:
                step = await self._step()
            except UnusableReply as error:
                self.tools.note("unusable", why=str(error))
                return
            known = self._known()
            found = await self._called(step)
            if not found or all(each.repeated or (fruitless and not each.adds_to(known)) for each in found):
                return
            fruitless = not any(each.adds_to(known) for each in found)
        self.tools.note("limit", limit="steps", why=f"{self.max_steps} steps")
        self.notes.append(f"stopped: the limit of {self.max_steps} steps is reached")

    async def _step(self) -> Step:
        """Raises UnusableReply."""
        asked = prompt(self.question.text, self.seen, unavailable(self.tools))
        return step_of(await self.toolbox.actions.tools.generate(asked))

    async def _called(self, step: Step) -> list[Observation]:
        """What the step's calls gave, all made at once; nothing where it says that no more are needed."""
        asked = [action for action in step.actions if action.tool != "answer"]
        found = await together([self.toolbox.call(action, step.thought) for action in asked])
        for action, observation in zip(asked, found, strict=True):
            self._add(action.said, observation, tell=action.tool in ("calculate", "figures"))
        for problem in step.unusable:
            self._add("call", Observation(f"error: {problem}", ok=False))
        return found if len(asked) == len(step.actions) else []

    def _found(self, hits: Sequence[Hit]) -> None:
        """What rules searched for, before the first step."""
        self._add("search", Observation(self.toolbox.shown(hits, self.question.text), tuple(hits)))

    def _add(self, call: str, observation: Observation, *, tell: bool = False) -> None:
        self.seen.append(f"{sanitise(call)[:160]}\n{observation.text}")
        if observation.hits:
            self.evidence.append(observation.hits)
        if tell and observation.ok:
            self.told.append(observation.text)
        if not observation.ok:
            self.notes.append(f"{sanitise(call)[:80]}: {observation.text}")

    def _known(self) -> set[str]:
        return {hit.chunk.id for hits in self.evidence for hit in hits}

    def _stopped(self, error: SextantError) -> None:
        self.notes.append(f"stopped: {self.toolbox.actions.stopped(error)}")

    def _asked(self) -> Question:
        text = f"{self.question.text}\nTools found: {'; '.join(self.told)}" if self.told else self.question.text
        return replace(self.question, text=text)

    def _finished(self, answer: Answer) -> Answer:
        """With the equations in it checked, and a note on every number that no tool gave and the request lets stand."""
        notes = self._noted(answer)
        if answer.abstained:
            return replace(answer, notes=notes)
        text, made = self._with_equations(answer)
        given = [self.question.text, *self.told, *map(_said, answer.passages)]
        computed = [one.value for one in made if one.verified]
        strange = sorted(numbers(MARKERS.sub("", text)) - numbers(" ".join((*given, *computed))))
        untraced = (f"no tool gave {', '.join(strange)}",) if strange else ()
        return replace(answer, text=text, notes=(*notes, *untraced), calculations=made)

    def _noted(self, answer: Answer) -> tuple[str, ...]:
        return tuple(dict.fromkeys((*answer.notes, *self.notes)))

    def _with_equations(self, answer: Answer) -> tuple[str, tuple[Calculation, ...]]:
        """The answer with what the calculator gave, as far as its operands are cited and the answer lacks it."""
        text = answer.text
        for line in self.told:
            of_cited = [one for one in checked(f"{text}\n{line}", answer.citations) if one.verified]
            if line not in text and any(one.answer_span[0] > len(text) for one in of_cited):
                text = f"{text}\n{line}"
        return text, checked(text, answer.citations)


def _finding(part: SubQuestion, known: Finding | Looked) -> Finding:
    return known if isinstance(known, Finding) else Finding(part.about, known.answer)


def _written_by_model(answer: Answer) -> bool:
    return not answer.abstained and QUOTED not in answer.notes


def _said(hit: Hit) -> str:
    """What a passage says, with what is known of its filing."""
    meta = hit.chunk.meta
    facts = (meta.title, meta.fiscal_year or "", meta.period_end or "", meta.filed or "", *hit.chunk.columns)
    return " ".join((hit.chunk.searchable, *map(str, facts)))
