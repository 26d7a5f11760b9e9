"""Two companies' filings for agents: Acme buys from Globex; and models that are scripted for them."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import NAMESPACE_OID, uuid5

from app.errors import SextantError
from app.tools import Ports, Tools
from app.types import (
    Chunk,
    ChunkKind,
    ChunkVectors,
    Document,
    DocumentMeta,
    FloatArray,
    Generation,
    Page,
    Prompt,
    Question,
)
from tests.fakes import (
    STAMP,
    FakeStore,
    LetterEmbedder,
    QuotingGenerator,
    ScriptedGenerator,
    WordEncoder,
)


def filing(company: str, year: int) -> DocumentMeta:
    name = f"{company} 10-K {year}"
    return DocumentMeta(
        name,
        f"{name}.pdf",
        company=company,
        form="10-K",
        fiscal_year=year,
        fiscal_period="FY",
        period_end=f"{year}-12-31",
    )


INCOME = ("December 31, 2022", "December 31, 2021")
PAGES: tuple[tuple[DocumentMeta, str, tuple[str, ...]], ...] = (
    (filing("Acme", 2022), "Our steel comes from Globex under a contract to 2027.", ()),
    (filing("Acme", 2022), "Net sales 120 100", INCOME),
    (filing("Acme", 2022), "Property and equipment, net 30 50", INCOME),
    (filing("Globex", 2022), "Globex employs 77 people in all.", ()),
    (filing("Globex", 2022), "Net sales 60 80", INCOME),
)


async def ports(generator: ScriptedGenerator | QuotingGenerator | None = None) -> Ports:
    """A page and a chunk per entry of PAGES; those with columns are tables of a statement."""
    store = FakeStore(STAMP)
    numbers: dict[str, int] = {}
    for meta, text, columns in PAGES:
        document = meta.title.replace(" ", "-").lower()
        numbers[document] = number = numbers.get(document, 0) + 1
        kind: ChunkKind = "table" if columns else "text"
        head = f"{' '.join(columns)}, in millions\n" if columns else ""
        title = "Balance Sheets" if "Property" in text else "Statements of Operations"
        chunk = Chunk(
            str(uuid5(NAMESPACE_OID, text)), document, number, number, len(head), len(head + text), text, "", kind,
            title if columns else None, meta, columns, "in millions" if columns else None,
        )  # fmt: skip
        [dense], [sparse] = await LetterEmbedder().passages([text]), WordEncoder().passages([text])
        await store.put_chunks([chunk], [ChunkVectors(dense, {"bm25": sparse})])
        record = Document(document, "0" * 64, meta, number, number)
        await store.put_pages(record, [Page(number, head + text)])
        await store.put_document(record)
    return Ports(store, LetterEmbedder(), {"bm25": WordEncoder()}, generator or QuotingGenerator())


def acts(tools: Tools) -> list[dict[str, object]]:
    return [step.detail for step in tools.trace if step.name == "act"]


class SlowAboutGlobex(LetterEmbedder):
    async def queries(self, texts: Sequence[str]) -> FloatArray:
        await asyncio.sleep(30 if "Globex" in texts[0] else 0.01)
        return await self.passages(texts)


def step(*actions: tuple[str, str], thought: str = "more is needed", **more: Any) -> str:
    """A model's reply; `more` is of each action."""
    asked = [{"tool": tool, "input": text, "company": "", "year": "", **more} for tool, text in actions]
    return json.dumps({"thought": thought, "actions": asked})


NOT_THERE = "NOT IN THE PASSAGES"
PEOPLE = "Globex employs 77 people in all [1]."
STEEL = "Our steel comes from Globex under a contract to 2027 [1]."
ASKED = Question("Where is the head office?", k=3)
GLOBEX = Question("Globex people", k=3)


def acting(*replies: str | SextantError, delay_s: float = 0.0) -> ScriptedGenerator:
    """A model that finds no answer in what rules searched for, and acts then."""
    return ScriptedGenerator([NOT_THERE, *replies], delay_s=delay_s)


BOTH = Question("How many people do Acme and Globex employ, and where does steel come from?", k=4)


@dataclass
class ByPart(ScriptedGenerator):
    """Says of each company what is scripted for it, whatever the order in which the parts are asked."""

    of: dict[str, list[str]] = field(default_factory=dict)

    async def generate(self, prompt: Prompt) -> Generation:
        about = [name for name in self.of if name and name in prompt.question]
        key = about[0] if len(about) == 1 else ""
        lines = self.of[key]
        self.replies = [lines.pop(0) if len(lines) > 1 else lines[0]]
        return await ScriptedGenerator.generate(self, prompt)


def by_part(acme: list[str], globex: list[str], joined: str) -> ByPart:
    return ByPart([], of={"Acme": acme, "Globex": globex, "": [joined]})
