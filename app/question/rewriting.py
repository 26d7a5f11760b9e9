"""A question in other words: what is searched for beside it, each search and each call on the bill."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import orjson

from app.adapters.bm25 import query_tokens
from app.evidence.statements import core_question
from app.prompts import Messages, sanitise
from app.question.decomposition import decompose
from app.question.glossary import expanded, reworded
from app.question.periods import named_periods
from app.tools import Tools
from app.types import Condition, Filter, Prompt, Question

Rewrite: TypeAlias = Literal["none", "expand", "decompose", "step_back", "multi_query"]

_MOST = 4
"""Searches beside the question's own."""
_MAX_TOKENS = 200
_LISTED: Mapping[str, Any] = {
    "type": "object",
    "properties": {"questions": {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": _MOST}},
    "required": ["questions"],
    "additionalProperties": False,
}
_FORM = 'Reply with JSON: {"questions": ["..."]}'
_DECOMPOSE = f"""\
Split a question about company filings into the {_MOST} or fewer questions that must be answered first, each about one \
company, one period and one figure or fact, and each complete in itself. If it needs no splitting, give it alone. \
{_FORM}"""
_STEP_BACK = """\
Write the more general question behind a question about company filings: what the topic, statement or section is about \
that the answer stands in. Keep the company; leave out what is specific. Reply with that question alone, on one line."""
_VARY = f"""\
Write three other wordings of a question about company filings, in the words that filings print, with the same \
companies, periods and meaning. {_FORM}"""
_ORDINALS = ("first", "second", "third", "fourth")


@dataclass(frozen=True, slots=True)
class Search:
    """One dense and one BM25 search, and over which filings."""

    text: str
    """What the dense leg searches for."""
    terms: str
    """What BM25 searches for."""
    where: Filter


async def searches(rewrite: Rewrite, question: Question, terms: str, where: Filter, tools: Tools) -> list[Search]:
    """The question's own search first, then those of its rewriting; what was rewritten goes into the trace.

    `expand` adds to the terms the words that filings print for them (Rocchio's expansion from a fixed glossary) and
    costs nothing more. `decompose` searches each part of a comparison in its own filings (by rule; an LLM splits what
    no rule does). `step_back` asks an LLM for the question behind it (Zheng et al. 2024, Take a Step Back).
    `multi_query` takes an LLM's wordings or, without one, the glossary's (RAG-Fusion, Rackauckas 2024).

    Raises GeneratorUnavailable where `step_back` has no LLM, and what a call raises.
    """
    own = Search(question.text, terms, where)
    if rewrite == "none":
        return [own]
    if rewrite == "expand":
        found = [replace(own, terms=" ".join((terms, *synonyms(terms))))]
    elif rewrite == "decompose":
        found = [own, *await _parts(question, where, tools)]
    elif rewrite == "step_back":
        found = [own, *_worded([await _stepped_back(question, tools)], where)]
    else:
        found = [own, *await _variants(question, terms, where, tools)]
    tools.note("rewritten", rewrite=rewrite, searches=[[each.text, each.terms] for each in found])
    return found


def synonyms(terms: str) -> list[str]:
    """Words that filings print for those asked with: abbreviations and near synonyms spelled out, periods as headed."""
    words = sorted(expanded(tuple(query_tokens(core_question(terms)))))
    for period in named_periods(terms):
        if period.quarter:
            words.append(f"{_ORDINALS[period.quarter - 1]} quarter three months ended")
        elif period.day is None:
            words.append("fiscal year ended")
    return list(dict.fromkeys(words))


async def _parts(question: Question, where: Filter, tools: Tools) -> list[Search]:
    parts = decompose(question.text, await tools.catalogue(), most=_MOST)
    if parts:
        return [Search(part.text, part.terms, _within(question.where, part.documents)) for part in parts]
    if not _has_llm(tools, "decompose"):
        return []
    return _worded(await _listed("decompose", _DECOMPOSE, question, tools), where)


def _within(where: Filter, documents: tuple[str, ...]) -> Filter:
    named = (Condition("document_id", "$in", documents),) if documents else ()
    return where.narrowed(*named)


async def _stepped_back(question: Question, tools: Tools) -> str:
    return (await tools.generate(_prompt("step_back", _STEP_BACK, question))).text.strip().partition("\n")[0]


async def _variants(question: Question, terms: str, where: Filter, tools: Tools) -> list[Search]:
    if _has_llm(tools, "rewrite"):
        return _worded(await _listed("rewrite", _VARY, question, tools), where)
    return _worded(reworded(core_question(terms), _MOST - 1), where)


def _worded(texts: list[str], where: Filter) -> list[Search]:
    return [Search(text, text, where) for text in texts if text]


def _has_llm(tools: Tools, purpose: str) -> bool:
    purposes = tools.ports.generator.purposes
    return purposes is None or purpose in purposes


async def _listed(purpose: str, rules: str, question: Question, tools: Tools) -> list[str]:
    """Empty where the reply is no such list, or only the question again."""
    out = await tools.generate(replace(_prompt(purpose, rules, question), json_schema=_LISTED))
    try:
        found = orjson.loads(out.text)["questions"]
    except (ValueError, LookupError, TypeError):
        tools.note("unusable", why=f"what the model wrote for {purpose!r} is no list of questions")
        return []
    texts = [text.strip() for text in found if isinstance(text, str)] if isinstance(found, list) else []
    return [text for text in dict.fromkeys(texts) if text and text != question.text][:_MOST]


def _prompt(purpose: str, rules: str, question: Question) -> Prompt:
    messages: Messages = ("system", rules), ("user", f"Question: {sanitise(question.text)}")
    return Prompt(purpose, messages, question.text, max_tokens=_MAX_TOKENS)
