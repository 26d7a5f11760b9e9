"""The generator without a model: the best supported sentences and table rows of the passages, quoted as they stand."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from rank_bm25 import BM25Okapi

from app.adapters.bm25 import query_tokens, tokens
from app.evidence.breakdowns import breakdown
from app.evidence.recency import years_behind
from app.evidence.statements import (
    AMOUNT,
    HOW_MANY,
    SYNONYM,
    Statement,
    Subject,
    columns_of,
    counts,
    further,
    is_whole,
    labelled,
    line_of,
    match,
    overlap,
    shown_columns,
    statements,
    subject_of,
    tells_amount,
    tells_of,
)
from app.evidence.telling import is_capex, is_topic, on_topic, only_points, suits
from app.evidence.wording import worded
from app.ports import Embedder
from app.question.aims import Aim, aim_of, made_of
from app.question.companies import strangers
from app.question.reading import looks_ahead
from app.types import Generation, OpKind, Prompt

_WORD = re.compile("[a-z]")
"""A question of which only the year can be read, as one in Chinese, has an answer in every sentence of that year."""
_SURE = 0.5
"""How far a sentence tells what is wanted that leaves those behind that may or may not."""
Scores: TypeAlias = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Draft:
    """The lexically best statements, before the model has seen them; arrays of the shortlist's length."""

    subject: Subject
    pool: Sequence[Statement]
    """Statements scored."""
    current: Sequence[Statement]
    """Those of them in the filing meant of their company."""
    short: list[Statement]
    rough: Scores
    covered: Scores
    aim: Aim | None
    """What is to be told beside rows."""


@dataclass(frozen=True, slots=True)
class ExtractiveGenerator:
    """Scores statements lexically (BM25 over the small pool) and by embedding, quotes the best, writes nothing itself.

    score = lexical + cosine + coverage + focus + prior/rank + period + line + whole - outdated, each in about [0, 1]
    before its weight.
    It abstains where no passage speaks of the period asked for, where the question names what no passage mentions, and
    where the best statement is too far from the question.
    """

    embedder: Embedder
    shortlist: int = 16
    """Statements that are embedded, the lexically best."""
    most: int = 3
    """Statements quoted."""
    prior: float = 0.2
    """Weight of the passage's rank."""
    period: float = 0.3
    """Weight of a row that has a value for the year asked for."""
    focus: float = 0.8
    """Weight of a row's label being what is asked for, and little else."""
    line: float = 2.0
    """Weight of a row being a line that is asked for, in the statement itself."""
    amount: float = 0.3
    """Weight of a statement that has an amount, where one is asked for."""
    whole: float = 0.3
    """Weight of a row or a whole sentence against a heading or a fragment."""
    keep: float = 0.85
    """Share of the best score that a further statement needs."""
    keep_row: float = 0.95
    """The same after a row, which mostly is the whole answer."""
    keep_told: float = 0.6
    """The same for sentences of a cause, an event or a discussion, of the best sentence's score."""
    told: float = 0.6
    """Weight of a sentence that tells what is wanted: a cause, an event, something said of figures."""
    topic: float = 0.25
    """Share of what the question is about that such a sentence names."""
    topic_of_cause: float = 0.5
    """The same where it gives a cause: of another line it is none."""
    elsewhere: float = 0.8
    """Weight against a sentence that only points elsewhere in the filing, or is about the filing itself."""
    outdated: float = 0.4
    """Weight against a statement for each year that its filing is behind the one meant, where no period is named."""
    least: float = 0.5
    """Coverage and cosine together below which a statement is no answer."""

    @property
    def name(self) -> str:
        return "extractive"

    @property
    def purposes(self) -> frozenset[str]:
        return frozenset({"answer"})

    async def stream(self, prompt: Prompt) -> AsyncIterator[str | Generation]:
        generation = await self.generate(prompt)
        for line in generation.text.splitlines(keepends=True):
            yield line
        yield generation

    async def generate(self, prompt: Prompt) -> Generation:
        draft = await asyncio.to_thread(self._draft, prompt)
        if isinstance(draft, Generation):
            return draft
        chosen, _ = await self.ranked(prompt.question, draft)
        spent: dict[OpKind, int] = {"sparse": len(draft.pool), "dense": len(draft.short)}
        if not chosen:
            return Generation("", ops=spent, abstained="not_supported")
        lines = (worded(s, shown_columns(s, prompt.question, draft.subject.periods)) for s in chosen)
        exact = draft.aim is None and bool(labelled(draft.subject, chosen[0]))
        return Generation("\n".join(lines), ops=spent, exact=exact)

    async def ranked(self, question: str, draft: Draft) -> tuple[list[Statement], list[Statement]]:
        """What is quoted, nothing where no statement is near enough, and the whole shortlist; best first."""
        scores, evidence = await self._scored(question, draft)
        ranked = [(draft.short[i], float(scores[i]), float(evidence[i])) for i in np.argsort(-scores, kind="stable")]
        chosen = self._chosen(ranked, draft.subject)
        if chosen and draft.aim:
            chosen = self._told(ranked, chosen, draft.subject, draft.aim)
        chosen = [*chosen, *self._further(question, draft.subject, ranked, chosen)]
        if chosen and (parts := await asyncio.to_thread(_broken_down, question, draft)):
            chosen = parts
        return chosen, [statement for statement, _, _ in ranked]

    async def _scored(self, question: str, draft: Draft) -> tuple[Scores, Scores]:
        """Of the shortlist: the scores, and the part of them that is evidence of an answer."""
        [query] = await self.embedder.queries([question])
        cosine = await self.embedder.passages([_described(s) for s in draft.short]) @ query
        return draft.rough + cosine, draft.covered + cosine

    def _draft(self, prompt: Prompt) -> Draft | Generation:
        """What can be told without the model; over many passages it takes long, so it is not for the loop."""
        subject = subject_of(prompt.question, prompt.passages)
        if subject.unknown:
            return Generation("", abstained="off_corpus" if _of_another(prompt.question, subject) else "not_supported")
        every = statements(prompt.passages)
        pool = _of_last(every) if _is_to_come(prompt, subject) else of_period(subject, every)
        pool = of_kind(prompt.question, subject, pool)
        if not pool or not any(map(_WORD.search, subject.weights)):
            return Generation("", abstained="not_supported")
        return self.draft(prompt.question, subject, pool)

    def draft(self, question: str, subject: Subject, pool: Sequence[Statement]) -> Draft:
        """The lexically best of a pool that is not empty, for a subject that has terms."""
        aim = aim_of(question)
        if aim == "cause":
            more = dict.fromkeys(query_tokens(made_of(question)), SYNONYM / 2)
            subject = replace(subject, weights={**more, **subject.weights})
        covered, focus = np.array([match(subject, s) for s in pool]).T
        rough = _lexical(subject, pool) + covered + self.focus * focus
        rough += self.prior * np.array([1.0 / s.marker for s in pool])
        rough += self.period * np.array([bool(columns_of(s, question, subject.periods)) for s in pool])
        rough += self.line * np.array([bool(line_of(subject, s)) for s in pool])
        rough += self.whole * np.array([is_whole(s) for s in pool])
        if AMOUNT.search(question):
            rough += self.amount * np.array([tells_amount(s) for s in pool])
        if aim is not None:
            topic = [on_topic(subject, s) for s in pool]
            rough += self.told * np.array(
                [share and share * suits(s, aim) for s, share in zip(pool, topic, strict=True)]
            )
        behind = years_behind(question, subject, pool)
        rough -= self.outdated * np.array(behind)
        rough -= self.elsewhere * np.array([only_points(s) for s in pool])
        best = self._short(np.argsort(-rough, kind="stable"), pool, aim)
        current = [statement for statement, years in zip(pool, behind, strict=True) if not years]
        return Draft(subject, pool, current, [pool[i] for i in best], rough[best], covered[best], aim)

    def _short(self, order: npt.NDArray[np.intp], pool: Sequence[Statement], aim: Aim | None) -> list[int]:
        """The first of this order; where something is to be told, sentences are most of them."""
        if aim is None:
            return [int(i) for i in order[: self.shortlist]]
        rows = [int(i) for i in order if pool[i].row is not None][: self.shortlist // 3]
        told = [int(i) for i in order if pool[i].row is None][: self.shortlist - len(rows)]
        return [*rows, *told]

    def _chosen(self, ranked: Sequence[tuple[Statement, float, float]], subject: Subject) -> list[Statement]:
        """The best and those near it that say something else; of several companies or lines named, each one's best."""
        enough = [item for item in ranked if item[2] >= self.least]
        if len(subject.companies) > 1:
            firsts = {s.chunk.meta.company: s for s, _, _ in reversed(enough)}
            return [s for company, s in firsts.items() if company in subject.companies][: self.most]
        chosen = self._by_line(enough, subject)
        for statement, score, _ in enough:
            near = self.keep_row if enough[0][0].row else self.keep
            if len(chosen) == self.most or score < near * enough[0][1]:
                break
            if all(overlap(statement, other) < 0.6 for other in chosen):
                chosen.append(statement)
        return chosen

    def _told(
        self, ranked: Sequence[tuple[Statement, float, float]], chosen: Sequence[Statement], subject: Subject, aim: Aim
    ) -> list[Statement]:
        """The rows chosen, or the best that is of the topic, then the best sentences that tell what is wanted."""
        if aim == "event":
            ranked = [one for one in ranked if not is_capex(one[0])]
            chosen = [s for s in chosen if not is_capex(s)]
        of_topic = [s for s, _, _ in ranked if is_topic(subject, s) and columns_of(s, "", subject.periods)]
        rows = [s for s in chosen if s.row is not None] or of_topic[:1]
        least = self.topic_of_cause if aim == "cause" else self.topic
        told = [
            (s, score, how)
            for s, score, evidence in ranked
            if evidence >= self.least and on_topic(subject, s) >= least and (how := suits(s, aim))
        ]
        told = [one for one in told if one[2] >= _SURE] or told
        found: list[Statement] = []
        for statement, score, _ in told:
            if len(found) == self.most or score < self.keep_told * told[0][1]:
                break
            if all(overlap(statement, other) < 0.6 for other in found):
                found.append(statement)
        if rows or found:
            return [*rows, *found]
        return [s for s in chosen if on_topic(subject, s)] or list(chosen)

    def _further(
        self,
        question: str,
        subject: Subject,
        ranked: Sequence[tuple[Statement, float, float]],
        chosen: Sequence[Statement],
    ) -> list[Statement]:
        """For each further question in it that no statement chosen is about, the best that is, by its terms."""
        found: list[Statement] = []
        enough = [s for s, _, evidence in ranked if evidence >= self.least]
        for terms, amount in further(question, subject) if chosen else ():
            about = [s for s in enough if 2 * len(terms & s.terms) > len(terms) and (tells_amount(s) or not amount)]
            best = max((len(terms & s.terms) for s in about), default=0)
            if all(s not in about or len(terms & s.terms) < best for s in (*chosen, *found)):
                found += [s for s in about if len(terms & s.terms) == best][:1]
        return found

    def _by_line(self, enough: Sequence[tuple[Statement, float, float]], subject: Subject) -> list[Statement]:
        """Where the best is a line named, each one's best row, of each filing that may be for the quarter named."""
        if not enough or not line_of(subject, enough[0][0]):
            return []
        quarterly = any(period.quarter for period in subject.periods)
        firsts: dict[tuple[str, str], Statement] = {}
        for statement, _, _ in enough:
            if key := line_of(subject, statement):
                firsts.setdefault((key, statement.chunk.document_id if quarterly else ""), statement)
        return list(firsts.values())[: self.most]


def _broken_down(question: str, draft: Draft) -> list[Statement]:
    """In the filing meant, else in any."""
    return breakdown(question, draft.subject, draft.current) or breakdown(question, draft.subject, draft.pool)


def _of_another(question: str, subject: Subject) -> bool:
    """Whether it is about somebody of whom nothing was found, and not about a part of a company that was, as Europe."""
    named = {word for name in strangers(question) for word in name.split()}
    return not subject.companies or not named.isdisjoint(subject.unknown)


def _is_to_come(prompt: Prompt, subject: Subject) -> bool:
    """Whether it asks what filings say of years after their own: "in the coming year" names none."""
    last = max((hit.chunk.meta.fiscal_year or 0 for hit in prompt.passages), default=0)
    later = subject.periods and all(period.year > last > 0 for period in subject.periods)
    return bool(later) and looks_ahead(prompt.question)


def _of_last(pool: Sequence[Statement]) -> list[Statement]:
    """Of the newest fiscal year alone: what an older filing planned has come by then."""
    last = max((s.chunk.meta.fiscal_year or 0 for s in pool), default=0)
    return [s for s in pool if s.chunk.meta.fiscal_year == last]


def of_period(subject: Subject, pool: Sequence[Statement]) -> list[Statement]:
    """Those whose passage tells of a period asked for."""
    return [s for s in pool if not subject.periods or any(tells_of(s.chunk, p) for p in subject.periods)]


def of_kind(question: str, subject: Subject, pool: Sequence[Statement]) -> list[Statement]:
    """Sentences alone where prose is asked for, whole ones if there are; numbers alone where it is asked how many."""
    told = pool
    if subject.prose:
        prose = [s for s in pool if s.row is None]
        told = [s for s in prose if is_whole(s)] or prose or pool
    return [s for s in told if counts(s)] if HOW_MANY.search(question) else list(told)


def _lexical(subject: Subject, pool: Sequence[Statement]) -> Scores:
    """BM25 over the pool, each statement with its section's words, scaled so that the best is 1.

    Okapi's idf is 0 for a term of just half of the statements. With ln(1 + (N - n + 0.5) / (n + 0.5)) in its place 6 of
    186 answers over real filings were better and 8 worse, so it stands.
    """
    documents = [[*s.terms, *tokens(s.chunk.section or "")] for s in pool]
    if not any(documents):
        return np.zeros(len(pool))
    scores = np.maximum(BM25Okapi(documents).get_scores(list(subject.weights)), 0.0)
    return np.asarray(scores / (scores.max() or 1.0))


def _described(statement: Statement) -> str:
    section = statement.chunk.section
    return f"{section}: {statement.unit.text}" if section else statement.unit.text
