"""An architecture is one way to answer. To add one: write `<name>.py`, its line below, its test and its cost row."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

from app.architectures.agentic import Agentic
from app.architectures.auto import Auto
from app.architectures.crag import Crag
from app.architectures.graph import Graph
from app.architectures.hybrid import Hybrid
from app.architectures.hyde import Hyde
from app.architectures.naive import Naive
from app.tools import Tools
from app.types import Answer, Question


class Architecture(Protocol):
    """A frozen dataclass whose fields are its options, each with a default and its bounds."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    needs_llm: ClassVar[bool]
    """Whether it cannot run on the extractive generator."""
    needs_reranker: ClassVar[bool]
    """Whether it cannot run without a cross-encoder."""

    async def answer(self, question: Question, tools: Tools) -> Answer: ...


ARCHITECTURES: Mapping[str, type[Architecture]] = {
    "naive": Naive,
    "hybrid": Hybrid,
    "hyde": Hyde,
    "crag": Crag,
    "graph": Graph,
    "agentic": Agentic,
    "auto": Auto,
}
"""Name on the wire, in labels and in reports -> class. Its first docstring line is its description."""
