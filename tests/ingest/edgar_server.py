"""A server on loopback that behaves as EDGAR does: it wants to know who asks, counts requests and holds filings."""

import gzip
import json
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

UNDECLARED = b"<title>SEC.gov | Your Request Originates from an Undeclared Automated Tool</title>"
TOO_FAST = b"<title>SEC.gov | Request Rate Threshold Exceeded</title>"
CIK = "0000123456"
FILES = f"/Archives/edgar/data/{int(CIK)}"


def columns(*rows: tuple[str, str, str, str, str]) -> dict[str, list[str]]:
    """EDGAR's index of filings from accession number, filing date, report date, form and primary document."""
    names = ("accessionNumber", "filingDate", "reportDate", "form", "primaryDocument")
    return {name: [row[at] for row in rows] for at, name in enumerate(names)}


RECENT = columns(
    ("0000123456-24-000009", "2024-02-01", "2024-01-31", "8-K", "orr-8k.htm"),
    ("0000123456-23-000107", "2023-12-20", "2023-09-30", "10-K/A", "orr-20230930a.htm"),
    ("0000123456-23-000106", "2023-11-03", "2023-09-30", "10-K", "orr-20230930.htm"),
    ("0000123456-22-000108", "2022-10-28", "2022-09-24", "10-K", "orr-20220924.htm"),
)
OLDER = {
    "CIK0000123456-submissions-001.json": columns(
        ("0000123456-10-000011", "2010-10-27", "2010-09-25", "10-K", "orr.htm")
    ),
    "CIK0000123456-submissions-002.json": columns(("0000123456-96-000023", "1996-12-19", "", "10-K405", "")),
}


class EdgarServer:
    """What it holds by path, and what it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.per_second = 10
        self.ranges = True
        """Whether it knows Range."""
        self.sent = 0
        """Bytes of bodies."""
        self.bodies: dict[str, bytes] = {}
        self.asked: list[tuple[float, str, int]] = []
        """Time in seconds, path and status of each reply."""
        self.agents: set[str | None] = set()
        self.script: dict[str, deque[str]] = {}
        """By path, what goes wrong with the next requests: 429, 403, 500, cut, stop; anything else is all well."""
        self._counted: deque[float] = deque()
        self._lock = threading.Lock()
        self.hold("/files/company_tickers.json", {"0": {"cik_str": int(CIK), "ticker": "ORR", "title": "Orrin"}})
        older = [
            {"name": name, "filingFrom": rows["filingDate"][-1], "filingTo": rows["filingDate"][0]}
            for name, rows in OLDER.items()
        ]
        company = {"cik": CIK, "name": "Orrin Harbour, Inc.", "sic": "4400", "tickers": ["ORR"]}
        self.hold(f"/submissions/CIK{CIK}.json", {**company, "filings": {"recent": RECENT, "files": older}})
        for name, rows in OLDER.items():
            self.hold(f"/submissions/{name}", rows)
        for rows in (RECENT, OLDER["CIK0000123456-submissions-001.json"]):
            for accession, name in zip(rows["accessionNumber"], rows["primaryDocument"], strict=True):
                self.bodies[f"{FILES}/{accession.replace('-', '')}/{name}"] = f"<html>{accession}</html>".encode() * 999
                self.bodies[f"{FILES}/{accession}.txt"] = f"<SEC-DOCUMENT>{accession}".encode()

    def hold(self, path: str, body: Any) -> None:
        self.bodies[path] = json.dumps(body).encode()

    def fail(self, path: str, *how: str) -> None:
        self.script[path] = deque(how)

    def paths(self, status: int = 200) -> list[str]:
        return [path for _, path, got in self.asked if got == status]

    def statuses(self) -> Counter[int]:
        return Counter(status for _, _, status in self.asked)

    def peak(self) -> int:
        """Most requests within any one second."""
        times = [at for at, _, _ in self.asked]
        return max((sum(at <= other < at + 1 for other in times) for at in times), default=0)

    def trouble(self, path: str, agent: str | None) -> str | None:
        """What is wrong with a request, if anything."""
        with self._lock:
            now = time.monotonic()
            self._counted.append(now)
            while self._counted[0] <= now - 1:
                self._counted.popleft()
            self.agents.add(agent)
            if not agent or "@" not in agent:
                return "undeclared"
            if len(self._counted) > self.per_second:
                return "429"
            return self.script[path].popleft() if self.script.get(path) else None


class _Handler(BaseHTTPRequestHandler):
    edgar: EdgarServer
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        trouble = self.edgar.trouble(self.path, self.headers["User-Agent"])
        body = self.edgar.bodies.get(self.path)
        if trouble in ("undeclared", "403"):
            self.reply(403, UNDECLARED if trouble == "undeclared" else TOO_FAST)
        elif trouble == "stop":
            self.reply(410, b"")
        elif trouble in ("429", "500"):
            self.reply(int(trouble), b"", [("Retry-After", "1")] if trouble == "429" else [])
        elif body is None:
            self.reply(404, b"")
        else:
            self.found(body, cut=trouble == "cut")

    def found(self, body: bytes, *, cut: bool) -> None:
        tag = f'"{hash(body)}"'
        if self.headers["If-None-Match"] == tag:
            self.reply(304, b"", [("ETag", tag)])
            return
        headers = [("ETag", tag)]
        if "gzip" in self.headers["Accept-Encoding"]:
            body = gzip.compress(body, mtime=0)
            headers.append(("Content-Encoding", "gzip"))
        wanted = re.fullmatch(r"bytes=(\d+)-", self.headers["Range"] or "")
        if wanted is None or self.headers["If-Range"] != tag or not self.edgar.ranges:
            self.reply(200, body, headers, cut=cut)
            return
        start = int(wanted[1])
        if start >= len(body):
            self.reply(416, b"")
        else:
            headers.append(("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}"))
            self.reply(206, body[start:], headers, cut=cut)

    def reply(self, status: int, body: bytes, headers: Sequence[tuple[str, str]] = (), *, cut: bool = False) -> None:
        self.edgar.asked.append((time.monotonic(), self.path, status))
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        sent = body[: len(body) // 2] if cut else body
        self.edgar.sent += len(sent)
        self.wfile.write(sent)
        self.close_connection = cut

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the base class's name
        pass


@contextmanager
def edgar_server() -> Iterator[EdgarServer]:
    edgar = EdgarServer()

    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"edgar": edgar}))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    edgar.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield edgar
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
