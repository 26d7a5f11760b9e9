"""The page in a real browser: asks, shows the answer, its evidence and its price, at desktop and phone width."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conftest import MakePorts, live
from tests.web.browser import CHROMIUM, Tab, browser

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt-get install chromium)"),
]


@pytest.fixture
async def tab(tmp_path: Path) -> AsyncIterator[Tab]:
    async with browser(tmp_path) as tab:
        yield tab


@pytest.mark.parametrize("width", [1280, 390])
async def test_two_architectures_side_by_side(make_ports: MakePorts, tab: Tab, width: int) -> None:
    async with live(await make_ports()) as service:
        await tab.open(f"{service.url}/?q=what+was+revenue%3F&arch=naive&arch=hybrid", width)
        await tab.until("document.querySelectorAll('article[data-arch]').length === 2")
        text = await tab.evaluate("document.querySelector('[data-arch=hybrid]').innerText")
        assert "Revenue was $10 million in 2023" in text
        assert "✓ verified" in text
        assert "bm25 #1" in text
        assert "6\nsimilarity ops" in text
        assert "0\nLLM calls" in text
        assert await tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        tops = await tab.evaluate("[...document.querySelectorAll('article')].map(a => a.getBoundingClientRect().top)")
        assert (tops[0] == tops[1]) is (width == 1280), "side by side where there is room, below each other elsewhere"
        await _keep_picture(tab, f"page-{width}.png")


async def test_one_architecture_streams_and_its_evidence_opens(make_ports: MakePorts, tab: Tab) -> None:
    async with live(await make_ports()) as service:
        await tab.open(service.url, 1280)
        await tab.until("document.getElementById('status').innerText === '2 filings in the index'")
        await tab.evaluate("document.getElementById('question').value = 'debt'")
        await tab.evaluate("document.getElementById('go').click()")
        await tab.until("!!document.querySelector('[data-arch=auto] .marker')")
        await tab.evaluate("document.querySelector('.marker').click()")
        assert await tab.evaluate("document.querySelector('.citation.shown').id") == "auto-1"
        await tab.evaluate("document.querySelector('.citation .link').click()")
        await tab.until("document.getElementById('page').open")
        assert (
            await tab.evaluate("document.querySelector('#page mark').innerText") == "Debt was $4 million at year end."
        )
        await _keep_picture(tab, "page-evidence.png")


async def test_a_problem_is_shown_with_its_price(make_ports: MakePorts, tab: Tab) -> None:
    async with live(await make_ports()) as service:
        await tab.open(service.url, 1280)
        await tab.until("!!document.querySelector('#archs input')")
        await tab.evaluate("document.getElementById('question').value = 'debt'")
        await tab.evaluate("document.getElementById('k').value = 500")
        await tab.evaluate("document.getElementById('ask').noValidate = true; document.getElementById('go').click()")
        text = await tab.until("document.querySelector('article .badge.bad')?.closest('article').innerText")
        assert "body.k: Input should be less than or equal to 100" in text
        assert "similarity ops" in text


async def test_a_guarded_service_asks_for_the_key(make_ports: MakePorts, tab: Tab) -> None:
    async with live(await make_ports(), api_keys={"a-key": {}}) as service:
        await tab.open(service.url, 1280)
        await tab.until("!document.getElementById('key-field').hidden")
        await tab.evaluate("document.getElementById('key').value = 'a-key'")
        await tab.evaluate("document.getElementById('key').dispatchEvent(new Event('change'))")
        await tab.until("document.querySelectorAll('#archs input').length >= 2")


async def _keep_picture(tab: Tab, name: str) -> None:
    """Into the folder named by SCREENSHOTS, for a person to look at."""
    picture = await tab.picture()
    assert picture.startswith(b"\x89PNG")
    if folder := os.environ.get("SCREENSHOTS"):
        await asyncio.to_thread(Path(folder, name).write_bytes, picture)
