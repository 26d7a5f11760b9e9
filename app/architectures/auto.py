"""Auto: the architecture that suits the question, the next where its answer fails (Jeong et al., 2024)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, ClassVar

from pydantic import ConfigDict, Field

from app.architectures.agentic import Agentic
from app.architectures.crag import Crag
from app.architectures.graph import Graph
from app.architectures.hybrid import Hybrid
from app.architectures.naive import Naive
from app.errors import LimitExceeded, Timeout, Unavailable
from app.question.routing import order, route
from app.tools import Tools
from app.types import Answer, Question

_ARCHITECTURES: Mapping[str, type[Agentic | Crag | Graph | Hybrid | Naive]] = {
    "naive": Naive,
    "hybrid": Hybrid,
    "crag": Crag,
    "graph": Graph,
    "agentic": Agentic,
}


@dataclass(frozen=True, slots=True)
class Auto:
    """The architecture that suits the question, and the next where its answer does not verify (Jeong et al., 2024)."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")
    needs_llm: ClassVar[bool] = False
    needs_reranker: ClassVar[bool] = False

    attempts: Annotated[
        int, Field(ge=1, le=4, description="Architectures tried, each where no citation of the one before verified.")
    ] = 2

    async def answer(self, question: Question, tools: Tools) -> Answer:
        taken = route(question.text, await tools.catalogue())
        archs, chosen_by = order(taken.kind, tools.ports.measured, tools.limits.max_llm_calls)
        answers: list[Answer] = []
        lacking: Unavailable | None = None
        for arch in archs:
            if arch not in _ARCHITECTURES or len(answers) == self.attempts:
                continue
            why = f"it {taken.why}" if not answers else "no citation of the answer before verified"
            tools.note("route", arch=arch, kind=taken.kind, why=why, by=chosen_by)
            try:
                answers.append(await _ARCHITECTURES[arch]().answer(question, tools))
            except (LimitExceeded, Timeout, Unavailable) as error:
                if answers:
                    break
                if type(error) is not Unavailable:  # a store that is down is so for the next one, too
                    raise
                lacking = error
                continue
            if _holds(answers[-1]):
                return answers[-1]
        if lacking and not answers:
            raise lacking
        return next((answer for answer in answers if not answer.abstained), answers[0])


def _holds(answer: Answer) -> bool:
    """Whether to leave it at this: an answer with a verified citation, or a refusal that no search will mend."""
    return answer.reason in ("off_corpus", "limit") or any(citation.verified for citation in answer.citations)
