"""Request bodies on the wire, checked and cleaned by pydantic."""

import re
import unicodedata
from typing import Annotated, Any

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StringConstraints,
    TypeAdapter,
    WithJsonSchema,
    create_model,
)

from app.architectures import ARCHITECTURES
from app.filters import FIELDS, OPERATORS
from app.types import Limits, Unsupported

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_MOST_CHARACTERS = 8000
_MOST_SECONDS = 3600.0


def _clean(value: Any) -> Any:
    return _plain(_CONTROL.sub(" ", value)) if isinstance(value, str) else value


def _plain(text: str) -> str:
    """Full-width letters as others write them, and every script's digits as 0 to 9: a year is to be seen as one."""
    if text.isascii():
        return text
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in unicodedata.normalize("NFKC", text))


def _worded(text: str) -> str:
    if not any(map(str.isalpha, text)):
        raise ValueError("a question needs words")
    return text


def _no_truth_value(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError("a number is wanted, not true or false")
    return value


def _encodable(value: dict[str, Any]) -> dict[str, Any]:
    try:
        orjson.dumps(value)
    except TypeError as error:
        raise ValueError(f"cannot be stored as JSON: {error}") from None
    return value


QuestionText = Annotated[
    str,
    StringConstraints(strip_whitespace=True, min_length=1, max_length=_MOST_CHARACTERS),
    BeforeValidator(_clean),
    AfterValidator(_worded),
]
"""Digits and widths are plain, control characters spaces, the ends bare; without a letter nothing is asked."""

NotBool = BeforeValidator(_no_truth_value)
"""JSON's true is no 1."""

K = Annotated[int, Field(ge=1, le=100, description="Passages to answer from."), NotBool]

JsonObject = Annotated[dict[str, Any], AfterValidator(_encodable)]

_EXAMPLE_FILTERS = {"form": "10-K", "fiscal_year": {"$gte": 2022}}


class LimitsBody(BaseModel):
    """What this request may spend."""

    model_config = ConfigDict(extra="forbid")
    max_llm_calls: Annotated[int | None, Field(ge=0, le=1000), NotBool] = None
    max_tokens: Annotated[int | None, Field(ge=1, le=10_000_000, description="Input and output together."), NotBool] = (
        None
    )
    timeout_s: Annotated[
        float | None, Field(gt=0, le=_MOST_SECONDS, description="Capped by the service's REQUEST_TIMEOUT_S."), NotBool
    ] = None

    def capped(self, timeout_s: float) -> Limits:
        return Limits(self.max_llm_calls, self.max_tokens, min(self.timeout_s or timeout_s, timeout_s))


class Asked(BaseModel):
    """What every question carries."""

    model_config = ConfigDict(extra="forbid")
    question: QuestionText
    k: K = 10
    filters: JsonObject = Field(
        default_factory=dict,
        description=f"Field to value or {{operator: value}}, joined by AND. Fields: {', '.join(FIELDS)}. "
        f"Operators: {', '.join(OPERATORS)}.",
        examples=[_EXAMPLE_FILTERS],
    )
    limits: LimitsBody = LimitsBody()
    unsupported: Unsupported = Field(
        default="drop",
        description="What becomes of a sentence that a model wrote and no passage it cites supports; a note says so.",
    )


class QueryBody(Asked):
    options: JsonObject = Field(default_factory=dict, description="The architecture's own parameters.")
    stream: bool = Field(default=False, description="Answer as server-sent events.")


class CompareBody(Asked):
    archs: Annotated[list[str], Field(min_length=1, max_length=16, description="Architectures, each once.")]
    options: dict[str, JsonObject] = Field(default_factory=dict, description="Architecture to its own parameters.")


def query_body(name: str) -> type[QueryBody]:
    """`QueryBody` whose options are described as this architecture's; they are checked when it is built."""
    options = Annotated[JsonObject, WithJsonSchema(TypeAdapter(ARCHITECTURES[name]).json_schema())]
    return create_model(f"{name.title()}QueryBody", __base__=QueryBody, options=(options, Field(default_factory=dict)))
