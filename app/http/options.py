"""An architecture's options: described for a person, and built from the wire's JSON."""

import re
from functools import cache
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from app.architectures import ARCHITECTURES, Architecture
from app.errors import InvalidOptions, UnknownArchitecture

DEFAULT_ARCH = "auto"
"""Of a query that names none: what suits the question."""

_PAPER = re.compile(r"\s*\(([^()]*\d{4}[^()]*)\)\.?$")
_BOUNDS = ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "minLength", "maxLength", "enum")


class OptionReply(TypedDict):
    name: str
    type: str
    default: Any
    bounds: dict[str, Any]
    """In JSON Schema's words: minimum, maximum, enum, ..."""
    description: str | None


@cache
def _adapter(name: str) -> TypeAdapter[Architecture]:
    try:
        return TypeAdapter(ARCHITECTURES[name])
    except KeyError:
        raise UnknownArchitecture(
            f"there is no architecture {name!r:.80}; those that exist: {', '.join(ARCHITECTURES)}"
        ) from None


def build(name: str, options: dict[str, Any]) -> Architecture:
    """The architecture with these options. Raises UnknownArchitecture, InvalidOptions."""
    adapter = _adapter(name)
    try:
        return adapter.validate_json(orjson.dumps(options), strict=True)
    except ValidationError as error:
        places = [(".".join(map(str, e["loc"])), e["msg"].removeprefix("Value error, ")) for e in error.errors()[:10]]
        wrong = "; ".join(f"{place}: {what}" if place else what for place, what in places)
        raise InvalidOptions(f"{wrong}. {_said(name)}") from None


def options_of(name: str) -> list[OptionReply]:
    properties: dict[str, Any] = _adapter(name).json_schema().get("properties", {})
    return [
        {
            "name": option,
            "type": schema.get("type", "any"),
            "default": schema.get("default"),
            "bounds": {bound: schema[bound] for bound in _BOUNDS if bound in schema},
            "description": schema.get("description"),
        }
        for option, schema in properties.items()
    ]


def description_of(name: str) -> tuple[str, str]:
    """The docstring's first line, and the paper it ends with."""
    line = (ARCHITECTURES[name].__doc__ or "").strip().partition("\n")[0]
    paper = _PAPER.search(line)
    return (_PAPER.sub(".", line), paper[1]) if paper else (line, "")


def _said(name: str) -> str:
    options = options_of(name)
    if not options:
        return f"{name} takes no options"
    return f"{name} takes " + ", ".join(
        f"{o['name']} ({o['type']}, default {o['default']}"
        + "".join(f", {bound} {value}" for bound, value in o["bounds"].items())
        + ")"
        for o in options
    )
