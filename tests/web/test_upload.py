"""The page takes a filing in and shows the printed page of what it cites."""

from pathlib import Path

import pytest

from app.settings import Settings
from tests.conftest import live
from tests.ingest.filings import prose, write_pdf
from tests.intake.serving import open_ports
from tests.web.browser import CHROMIUM, Tab, browser
from tests.web.test_page import _keep_picture

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium (Debian: apt-get install chromium)"),
]


async def choose(tab: Tab, *files: Path) -> None:
    """As a person does in the file dialog."""
    root = (await tab.send("DOM.getDocument"))["root"]["nodeId"]
    field = (await tab.send("DOM.querySelector", nodeId=root, selector="#files"))["nodeId"]
    await tab.send("DOM.setFileInputFiles", nodeId=field, files=[str(file) for file in files])


@pytest.mark.parametrize("width", [1280, 390])
async def test_a_filing_is_added_asked_about_and_shown(tmp_path: Path, width: int) -> None:
    content = write_pdf(tmp_path / "annual.pdf", prose("Ombrell"))
    (tmp_path / "photo.pdf").write_bytes(b"\x89PNG\r\n\x1a\n" + b"\0" * 99)
    async with (
        open_ports(Settings(data_dir=tmp_path / "data")) as ports,
        live(ports) as service,
        browser(tmp_path / "profile") as tab,
    ):
        await tab.open(service.url, width)
        await tab.evaluate("document.getElementById('upload').open = true")
        await choose(tab, content, tmp_path / "photo.pdf")
        await tab.until("document.getElementById('jobs').innerText.includes('created')", 60)
        await tab.until("document.getElementById('status').innerText === '1 filings in the index'")
        assert "neither PDF nor HTML" in await tab.evaluate("document.getElementById('jobs').innerText")
        assert await tab.evaluate("document.querySelector('progress') === null")
        await tab.evaluate("document.getElementById('question').value = 'Ombrell sold 300 units in region 3'")
        await tab.evaluate("document.getElementById('go').click()")
        await tab.until("!!document.querySelector('.citation .link')")
        await tab.evaluate("document.querySelector('.citation .link').click()")
        await tab.until("document.getElementById('page-image').naturalWidth > 100")
        assert await tab.evaluate("document.getElementById('page-image').alt.includes('quote marked')")
        assert await tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth") == 0
        await _keep_picture(tab, f"page-upload-{width}.png")
