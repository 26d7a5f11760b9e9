"""RAGAS's measures by their published definitions (Es et al., 2023, and the library's pages), over any judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from app.ports import Embedder
from evals.judging.judge import MARKER, Judge, Verdict, gold_statement
from evals.measures import Reply
from evals.questions import Question

MEASURES: Mapping[str, str] = {
    "faithfulness": "share of the answer's claims that its passages support, by the judge",
    "answer_relevancy": "mean cosine of the question with the questions that the answer would answer; 0 if it refuses",
    "context_precision": "precision@k averaged over the ranks of useful passages, by the judge",
    "context_recall": "share of the gold answer's claims that the passages support, by the judge",
}


@dataclass(frozen=True, slots=True)
class Ragas:
    judge: Judge
    embedder: Embedder
    depth: int = 10
    """Passages judged of each reply, the best."""

    async def measures(self, question: Question, reply: Reply) -> dict[str, float]:
        """Those that apply: faithfulness needs an answer, the others a question that the filings answer."""
        passages = passages_of(reply, self.depth)
        answer = "" if reply["abstained"] else MARKER.sub("", reply["answer"])
        out: dict[str, float] = {}
        if answer and (claimed := await self.judge.attribute(answer, passages)):
            out["faithfulness"] = share(claimed)
        if not question.answerable:
            return out
        out["answer_relevancy"] = await self._relevancy(question.text, answer)
        if question.answer:
            useful = await self.judge.useful(question.text, question.answer, passages) if passages else []
            out["context_precision"] = context_precision(useful)
            wanted = gold_statement(question.text, question.answer)
            if attributed := await self.judge.attribute(wanted, passages):
                out["context_recall"] = share(attributed)
        return out

    async def _relevancy(self, question: str, answer: str) -> float:
        asked = await self.judge.asked(answer) if answer else []
        if not asked:
            return 0.0
        vectors = await self.embedder.queries([question, *asked])
        return max(0.0, float((vectors[1:] @ vectors[0]).mean()))


def passages_of(reply: Reply, depth: int) -> list[str]:
    """As a reader sees them, best first: title, context, text."""
    best = sorted(reply["passages"], key=lambda p: p["rank"])[:depth]
    return ["\n".join(part for part in (p["title"], p["context"], p["text"]) if part) for p in best]


def share(verdicts: Sequence[Verdict]) -> float:
    return sum(v.supported for v in verdicts) / len(verdicts)


def context_precision(useful: Sequence[bool]) -> float:
    """Σ precision@k over the ranks k of useful passages / their number; 0 where none is."""
    found, total = 0, 0.0
    for rank, is_useful in enumerate(useful, start=1):
        if is_useful:
            found += 1
            total += found / rank
    return total / found if found else 0.0
