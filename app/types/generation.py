"""What is put to a generator, and what it writes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from app.types.search import Hit, OpKind

AbstainReason = Literal["no_passages", "not_supported", "off_corpus", "limit"]


@dataclass(frozen=True, slots=True)
class Function:
    """What a model may call instead of writing text."""

    name: str
    description: str
    parameters: Mapping[str, Any]
    """JSON schema of its arguments."""


@dataclass(frozen=True, slots=True)
class Call:
    """A function that a model wants called."""

    name: str
    arguments: str
    """JSON, as far as the model kept to it."""


@dataclass(frozen=True, slots=True)
class Calling:
    """A prompt as it is put to an endpoint with function calling: of these functions at least one is to be called."""

    messages: tuple[tuple[Literal["system", "user", "assistant"], str], ...]
    functions: tuple[Function, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """One request to a generator: `messages` for a model, `question` and `passages` for an answer to rest on."""

    purpose: str
    """answer, hyde, grade, plan, ...: the label under which the call is billed."""
    messages: tuple[tuple[Literal["system", "user", "assistant"], str], ...]
    question: str = ""
    passages: tuple[Hit, ...] = ()
    max_tokens: int = 512
    temperature: float = 0.0
    json_schema: Mapping[str, Any] | None = None
    logprobs: bool = False
    """Whether the text's probability is wanted too."""
    picture: bytes | None = None
    """PNG that is shown with the last message."""
    calling: Calling | None = None
    """What stands for `messages` and `json_schema` where the endpoint calls functions."""

    @property
    def characters(self) -> int:
        """Of what a model is to read, in the longer of its two forms; four are about a token."""
        read = sum(len(text) for _, text in self.messages)
        if self.calling is None:
            return read
        declared = sum(len(f"{each.name}{each.description}{each.parameters}") for each in self.calling.functions)
        return max(read, declared + sum(len(text) for _, text in self.calling.messages))


@dataclass(frozen=True, slots=True)
class Excerpt:
    """What a model is shown of a passage."""

    marker: int
    """Rank of the passage, first is 1: what `[n]` refers to."""
    text: str
    """Sentences and table rows in the passage's order, a line each; a row's values with their columns' headings."""


@dataclass(frozen=True, slots=True)
class Packed:
    """The best of several passages within a budget of tokens."""

    excerpts: tuple[Excerpt, ...]
    """The best first; a passage of which nothing fits is left out."""
    ops: Mapping[OpKind, int] = field(default_factory=dict)
    """Similarity evaluations made while choosing."""


@dataclass(frozen=True, slots=True)
class Generation:
    """What a generator wrote. In text for purpose `answer`, `[n]` refers to the prompt's passages[n-1]."""

    text: str
    llm_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    ops: Mapping[OpKind, int] = field(default_factory=dict)
    """Similarity evaluations made while writing (the extractive generator scores sentences)."""
    abstained: AbstainReason | None = None
    exact: bool = False
    """Whether it begins with a row labelled as a line that the question asks the figures of, quoted without a model."""
    finish_reason: str = "stop"
    calls: tuple[Call, ...] = ()
    """Where the prompt was put as `calling`; the text is then what was said beside them, mostly nothing."""
    logprob: float | None = None
    """Natural logarithm of the text's probability, where the prompt wanted it and the generator tells."""
