"""The agent with a model: it judges what is known, acts with the declared tools, and answers from what they gave."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from app.agent.controller import STOPPED, Controller
from app.agent.findings import Finding, joined, merged
from app.agent.steps import Step, UnusableReply, prompt, step_of
from app.agent.toolbox import Observation, Toolbox, unavailable
from app.answering import abstain, answer_from, told
from app.computing.calculations import checked
from app.errors import SextantError
from app.evidence.citations import MARKERS
from app.evidence.quotes import numbers
from app.prompts import sanitise
from app.question.decomposition import SubQuestion
from app.tools import Tools, together
from app.types import Answer, Calculation, Hit, Question


@dataclass(slots=True)
class Agent:
    """One request's: rules search first, then the model judges and acts until it answers or a limit is met.

    The parts of a comparison are answered each by itself, at once, and joined.
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
        parts: Sequence[SubQuestion] = ()
        try:
            parts = self.controller.parts()
            if (computed := await self.controller.computed(self.question)) is not None:
                return told(computed, self.tools)
            if parts and apart and self.tools.beyond(len(parts) + 1) is None:
                return told(await self._joined(parts), self.tools)
            for found in await self.controller.evidence(parts):
                self._found(found)
        except STOPPED as error:
            self._stopped(error)
            if not self.evidence:
                return abstain("limit", (), *self.notes)
        await self._act()
        return await self._written()

    async def _joined(self, parts: Sequence[SubQuestion]) -> Answer:
        """One answer to the whole from those to its parts; those themselves where it would lose one of them."""
        rooms = self.controller.rooms(len(parts))
        found = await together([self._part(part, room, len(parts)) for part, room in zip(parts, rooms, strict=True)])
        whole = joined(found, self.question.k)
        known = [finding.answer for finding in found if not finding.answer.abstained]
        passages = [{hit.chunk.id for hit in answer.passages} for answer in known]
        if len(known) < 2 or all(answer.calculations for answer in known):
            return whole
        self.told.append(MARKERS.sub("", whole.text))
        try:
            answer = await answer_from(self._asked(), whole.passages, self.toolbox.actions.tools)
        except STOPPED as error:
            return replace(whole, notes=(*whole.notes, f"stopped: {self.toolbox.actions.stopped(error)}"))
        cited = {citation.chunk_id for citation in answer.citations}
        if not all(cited & own for own in passages):
            self.tools.note("parts", why="the model's answer to the whole leaves one of them out")
            return whole
        one = self._finished(answer)
        return replace(one, notes=tuple(dict.fromkeys((*one.notes, *whole.notes))))

    async def _part(self, part: SubQuestion, room: int, parts: int) -> Finding:
        """Acted on only where its own search does not answer it."""
        found = await self.controller.part(part, room)
        if not found.answer.abstained or found.answer.reason == "limit":
            return found
        aside = self.toolbox.actions.tools
        question = replace(self.question, text=part.text, k=room)
        toolbox = replace(self.toolbox, question=question, part=part.about)
        agent = Agent(question, self.controller, toolbox, self.max_steps, aside, kept_back=parts)
        agent._found(found.answer.passages)
        await agent._act()
        if len(agent.evidence) == 1 and not agent.told:  # asked again, it would say the same
            return Finding(part.about, replace(found.answer, notes=(*found.answer.notes, *agent.notes)))
        return Finding(part.about, await agent._written())

    async def _act(self) -> None:
        """In steps until the model has enough; what it takes to write the answer is kept back from them."""
        try:
            await self._steps()
        except STOPPED as error:
            self._stopped(error)

    async def _written(self) -> Answer:
        """From all that was found; at a limit an abstention that says what is known."""
        hits = merged(self.evidence, self.question.k)
        try:
            return self._finished(await answer_from(self._asked(), hits, self.tools))
        except STOPPED as error:
            self._stopped(error)
            return abstain("limit", hits, *dict.fromkeys(self.notes), *(f"known: {line}" for line in self.told))

    async def _steps(self) -> None:
        failed = False
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
            found = await self._called(step)
            if not found or all(each.repeated or (failed and not each.ok) for each in found):
                return
            failed = not any(each.ok for each in found)
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
            self._add(f"{action.tool} {action.input}", observation, tell=action.tool in ("calculate", "figures"))
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

    def _stopped(self, error: SextantError) -> None:
        self.notes.append(f"stopped: {self.toolbox.actions.stopped(error)}")

    def _asked(self) -> Question:
        text = f"{self.question.text}\nTools found: {'; '.join(self.told)}" if self.told else self.question.text
        return replace(self.question, text=text)

    def _finished(self, answer: Answer) -> Answer:
        """With the equations in it checked, and a note on every number that no tool gave and the request lets stand."""
        notes = tuple(dict.fromkeys((*answer.notes, *self.notes)))
        if answer.abstained:
            return replace(answer, notes=notes)
        text, made = self._with_equations(answer)
        given = [self.question.text, *self.told, *map(_said, answer.passages)]
        computed = [one.value for one in made if one.verified]
        strange = sorted(numbers(MARKERS.sub("", text)) - numbers(" ".join((*given, *computed))))
        untraced = (f"no tool gave {', '.join(strange)}",) if strange else ()
        return replace(answer, text=text, notes=(*notes, *untraced), calculations=made)

    def _with_equations(self, answer: Answer) -> tuple[str, tuple[Calculation, ...]]:
        """The answer with what the calculator gave, as far as its operands are cited and the answer lacks it."""
        text = answer.text
        for line in self.told:
            of_cited = [one for one in checked(f"{text}\n{line}", answer.citations) if one.verified]
            if line not in text and any(one.answer_span[0] > len(text) for one in of_cited):
                text = f"{text}\n{line}"
        return text, checked(text, answer.citations)


def _said(hit: Hit) -> str:
    """What a passage says, with what is known of its filing."""
    meta = hit.chunk.meta
    facts = (meta.title, meta.fiscal_year or "", meta.period_end or "", meta.filed or "", *hit.chunk.columns)
    return " ".join((hit.chunk.searchable, *map(str, facts)))
