"""Clients of a service, each asking the next question when it has its reply.

`python -m evals.bench.load` in a process of its own, so that what they cost is not the service's.
"""

import argparse
import http.client
import json
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

HEADERS = {"content-type": "application/json"}
TIMEOUT_S = 120.0


class Client:
    """One connection, kept open."""

    def __init__(self, url: str) -> None:
        self._at = urlsplit(url).netloc
        self._connection = http.client.HTTPConnection(self._at, timeout=TIMEOUT_S)

    def ask(self, arch: str, question: str) -> tuple[int, float]:
        """HTTP status (0: no reply) and milliseconds until the reply was read."""
        body = json.dumps({"question": question})
        began = time.perf_counter()
        try:
            self._connection.request("POST", f"/query/{arch}", body, HEADERS)
            response = self._connection.getresponse()
            response.read()
            status = response.status
        except (OSError, http.client.HTTPException):
            self._connection.close()
            status = 0
        return status, (time.perf_counter() - began) * 1000

    def close(self) -> None:
        self._connection.close()


def load(url: str, arch: str, questions: Sequence[str], clients: int, seconds: float) -> dict[str, Any]:
    """Replies by status, milliseconds of those with 200, seconds from the first question to the last reply."""
    statuses: Counter[int] = Counter()
    latencies: list[float] = []
    lock = threading.Lock()
    began = time.perf_counter()

    def run(number: int) -> None:
        client = Client(url)
        while time.perf_counter() - began < seconds:
            status, ms = client.ask(arch, questions[number % len(questions)])
            number += 1
            with lock:
                statuses[status] += 1
                if status == 200:
                    latencies.append(ms)
            if status != 200:
                time.sleep(0.05)
        client.close()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {"statuses": dict(statuses), "ms": latencies, "seconds": time.perf_counter() - began}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m evals.bench.load", description="Ask a service in parallel.")
    parser.add_argument("url")
    parser.add_argument("questions", type=Path, help="a JSON list of texts")
    parser.add_argument("--arch", default="hybrid")
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=5.0)
    options = parser.parse_args(argv)
    questions = json.loads(options.questions.read_text("utf-8"))
    sys.stdout.write(json.dumps(load(options.url, options.arch, questions, options.clients, options.seconds)) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
