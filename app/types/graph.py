"""What filings name and how they relate it."""

from dataclasses import dataclass
from typing import Literal

from app.types.filings import DocumentMeta

EntityType = Literal["company", "person", "place", "product", "segment", "theme", "concept"]


@dataclass(frozen=True, slots=True)
class Mention:
    """Where a filing speaks of something."""

    chunk_id: str
    page: int
    """First is 1."""
    start: int
    end: int
    """What is meant is the page's text[start:end]."""


@dataclass(frozen=True, slots=True)
class Entity:
    """One filing's mentions of one entity; the entity itself is the group of these records by key."""

    document_id: str
    key: str
    """`company:0000012345` (CIK), `company:acme`, `person:acme/jane doe`, `theme:cybersecurity`, ..."""
    type: EntityType
    name: str
    """As most often printed."""
    aliases: tuple[str, ...]
    """Normalised names under which a question finds it, the ticker among them."""
    mentions: tuple[Mention, ...]
    """In reading order; the first of them where there are very many."""
    count: int
    """Of all mentions."""
    meta: DocumentMeta


@dataclass(frozen=True, slots=True)
class Relation:
    """One filing's statement that an entity stands in a relation to another."""

    document_id: str
    subject: str
    """Entity key."""
    predicate: str
    """auditor, officer, subsidiary, customer, supplier, competitor, risk, ...: `object` is the `subject`'s auditor."""
    object: str
    """Entity key."""
    subject_name: str
    object_name: str
    detail: str | None
    """What else the text says of it: an officer's title, a customer's share, a risk factor's heading."""
    mention: Mention
    """The text that states it."""
    meta: DocumentMeta
    model: str | None = None
    """Name of the language model that read it; None where a rule did."""
