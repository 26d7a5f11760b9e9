"""Two collections of 25 companies: one whose passages carry answers, one whose answers are counts that none carries."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from app.graph.asking import role_of
from app.graph.themes import THEMES, Theme, theme_key
from app.types import Chunk, Document, DocumentMeta, Entity, FloatArray, Mention, Relation
from evals.study.geometry import WINDOWS, Bag, Window, around, bag, tilted, uniform, unit
from evals.study.ports import Collection

COMPANIES = (
    "Alpha Bravo Charlie Delta Echo Foxtrot Golf Hotel India Juliett Kilo Lima Mike November Oscar Papa Quebec Romeo "
    "Sierra Tango Uniform Victor Whiskey Xray Yankee"
).split()
SECTORS = ("Banks", "Energy", "Health", "Retail", "Software")
PASSAGES = 4
KAPPA = 700.0
"""Of a passage's tokens around its theme, and of a query's: a mean cosine of about 0.955."""
ANGLE = np.deg2rad(35)
"""Between a filing's theme and its passage that names another company."""
MENTIONS = 5
"""Distinctive companies that name another one, each once; the other five distinctive companies are named."""
VOICE = (0.1, 0.3)
"""Share of the axis g in a company's passages, evenly spread over the companies: how much boilerplate it writes."""


@dataclass(frozen=True)
class Company:
    name: str
    sector: str
    distinctive: bool
    """Its dense theme belongs to no other company; else only the triple of its themes is its own."""
    slots: tuple[int, int, int]
    """Which theme of each window's pool it has."""
    themes: Mapping[Window, FloatArray]
    voice: float

    @property
    def document(self) -> Document:
        meta = DocumentMeta(title=f"{self.name} 10-K", source=f"{self.name}.pdf", company=self.name, sector=self.sector)
        return Document(self.name.lower(), "0" * 64, meta, PASSAGES, PASSAGES)


@dataclass(frozen=True)
class Local:
    """The regime in which a passage carries the answer."""

    companies: Sequence[Company]
    axis: FloatArray
    """g: what all filings share and queries need not; it says nothing of the company, for no theme has a part of it."""
    names: Mapping[int, int]
    """Company -> the company that its last passage names."""
    collection: Collection


def build_local(rng: np.random.Generator) -> Local:
    axis = uniform(1, rng)[0]
    companies = _companies(axis, rng)
    distinctive = [i for i, company in enumerate(companies) if company.distinctive]
    chosen = [distinctive[i] for i in rng.permutation(len(distinctive))]
    names = dict(zip(chosen[:MENTIONS], chosen[MENTIONS:], strict=True))
    chunks: list[Chunk] = []
    bags: dict[str, Bag] = {}
    records: list[Entity | Relation] = []
    for i, company in enumerate(companies):
        own = [_passage(company.document, n, f"{company.name} files passage {'abcd'[n]}") for n in range(PASSAGES)]
        if i in names:
            own[-1] = _passage(company.document, PASSAGES - 1, f"{company.name} names {companies[names[i]].name}")
            records += _naming(company, companies[names[i]], own[-1])
        for n, chunk in enumerate(own):
            other = companies[names[i]] if i in names and n == PASSAGES - 1 else None
            bags[chunk.text] = _passage_bag(company, other, axis, rng)
        records.append(_entity(company, company.document, own))
        chunks += own
    documents = [company.document for company in companies]
    return Local(companies, axis, names, Collection(documents, sorted(chunks, key=lambda c: c.id), bags, records))


def _companies(axis: FloatArray, rng: np.random.Generator) -> list[Company]:
    """Two distinctive companies in each sector."""
    shares = np.linspace(*VOICE, len(COMPANIES))[rng.permutation(len(COMPANIES))]
    slots = _slots(rng)
    pools = {name: _orthogonal(uniform(13 if name == "dense" else 7, rng), axis) for name in WINDOWS}
    return [
        Company(
            name,
            SECTORS[i % len(SECTORS)],
            _is_distinctive(i),
            slots[i],
            {window: pools[window][slot] for window, slot in zip(WINDOWS, slots[i], strict=True)},
            float(shares[i]),
        )
        for i, name in enumerate(COMPANIES)
    ]


def _is_distinctive(i: int) -> bool:
    return i // len(SECTORS) in (1, 3)


def _slots(rng: np.random.Generator) -> list[tuple[int, int, int]]:
    """Dense slots 0 to 2 are shared by five conjunctive companies each, 3 to 12 are of one distinctive company each.

    Every theme that is shared at all is shared by five companies or three. No two conjunctive companies share more than
    one; a distinctive company shares both its other themes with the same four.
    """
    conjunctive = [(i, j, (i + j) % 5) for i in range(3) for j in range(5)]
    distinctive = [(3 + 5 * i + j, 5 + i, 5 + i) for i in range(2) for j in range(5)]
    drawn = {kind: iter(rng.permutation(found).tolist()) for kind, found in enumerate((conjunctive, distinctive))}
    return [tuple(next(drawn[_is_distinctive(i)])) for i in range(len(COMPANIES))]


def _orthogonal(vectors: FloatArray, axis: FloatArray) -> FloatArray:
    return unit(vectors - (vectors @ axis)[:, None] * axis)


def _passage_bag(company: Company, named: Company | None, axis: FloatArray, rng: np.random.Generator) -> Bag:
    themes = dict(company.themes)
    if named is not None:
        cos, sin = np.float32(np.cos(ANGLE)), np.float32(np.sin(ANGLE))
        themes = {name: unit(cos * theme + sin * named.themes[name]) for name, theme in company.themes.items()}
    return tilted(bag(themes, dict.fromkeys(WINDOWS, KAPPA), rng), axis, company.voice)


def _passage(document: Document, n: int, text: str) -> Chunk:
    id_ = f"{document.id}-{n}"
    return Chunk(id_, document.id, n, n + 1, 0, len(text), text, "", "text", None, document.meta)


def _entity(company: Company, document: Document, chunks: Sequence[Chunk]) -> Entity:
    """What the ingestion would keep of passages that begin or end with the company's name."""
    mentions = tuple(Mention(c.id, c.page, at := c.text.index(company.name), at + len(company.name)) for c in chunks)
    name = company.name.lower()
    return Entity(
        document.id, f"company:{name}", "company", company.name, (name,), mentions, len(mentions), document.meta
    )


def _naming(company: Company, named: Company, chunk: Chunk) -> list[Entity | Relation]:
    entity = _entity(named, company.document, [chunk])
    own, other = f"company:{company.name.lower()}", entity.key
    names = (company.name, named.name)
    meta = company.document.meta
    return [entity, Relation(chunk.document_id, own, "counterparty", other, *names, None, entity.mentions[0], meta)]


@dataclass(frozen=True)
class Topic:
    """A question of the global regime: which sector has the most companies that discuss it."""

    theme: Theme
    direction: FloatArray
    nearest: str
    """The sector whose mean is nearest to it."""
    gold: str
    """The sector with the most companies that discuss it."""
    discussed_by: frozenset[str]
    """Names of companies."""


@dataclass(frozen=True)
class Global:
    """The regime in which the answer is a count: one passage for each company, none of which says who else."""

    topics: Sequence[Topic]
    collection: Collection


_TOPICS = tuple(theme for theme in THEMES if role_of(theme.label) is None)[:16]
_NEAR = 60.0
"""Concentration of companies around their sector, and of topics around the sector nearest to them."""


def build_global(rng: np.random.Generator) -> Global:
    centres = uniform(len(SECTORS), rng)
    sector_of = {name: i % len(SECTORS) for i, name in enumerate(COMPANIES)}
    documents, chunks, bags = [], [], {}
    for name, sector in sector_of.items():
        meta = DocumentMeta(title=f"{name} 10-K", source=f"{name}.pdf", company=name, sector=SECTORS[sector])
        documents.append(Document(name.lower(), "0" * 64, meta, 1, 1))
        chunks.append(_passage(documents[-1], 0, f"{name} describes its business"))
        bags[chunks[-1].text] = bag(dict.fromkeys(WINDOWS, around(centres[sector], _NEAR, 1, rng)[0]), _SPREAD, rng)
    topics = [_topic(theme, n, centres, sector_of, rng) for n, theme in enumerate(_TOPICS)]
    assert all(topic.gold != topic.nearest for topic in topics), "else nearness alone would answer"
    own = {chunk.meta.company: chunk for chunk in chunks}
    records = [_discussing(topic, own[name]) for topic in topics for name in sorted(topic.discussed_by)]
    return Global(topics, Collection(documents, sorted(chunks, key=lambda c: c.id), bags, records))


_SPREAD = dict.fromkeys(WINDOWS, KAPPA)
_DISCUSS = (4, 3, 2, 1, 1)
"""Companies that discuss a topic: of the gold sector, of the one nearest to it, and of the other three."""


def _topic(theme: Theme, n: int, centres: FloatArray, sector_of: Mapping[str, int], rng: np.random.Generator) -> Topic:
    near = n % len(SECTORS)
    direction = around(centres[near], _NEAR, 1, rng)[0]
    others = [s for s in rng.permutation(len(SECTORS)).tolist() if s != near]
    discussed: list[str] = []
    for sector, count in zip((others[0], near, *others[1:]), _DISCUSS, strict=True):
        members = [name for name, own in sector_of.items() if own == sector]
        discussed += rng.choice(members, count, replace=False).tolist()
    nearest = SECTORS[int((centres @ direction).argmax())]
    counts = {s: sum(SECTORS[sector_of[name]] == s for name in discussed) for s in SECTORS}
    return Topic(theme, direction, nearest, max(counts, key=counts.__getitem__), frozenset(discussed))


def _discussing(topic: Topic, chunk: Chunk) -> Entity:
    mention = Mention(chunk.id, chunk.page, 0, len(chunk.text))
    key, label = theme_key(topic.theme.name), topic.theme.label
    return Entity(chunk.document_id, key, "theme", label, (label,), (mention,), 2, chunk.meta)
