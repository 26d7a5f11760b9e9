"""What every peer's process does: index a folder of PDFs, write down what it holds, answer questions over HTTP.

`python -m evals.peers.runners.<peer> FILINGS MODEL K` writes `built.json` into the working directory, then prints its
URL. `POST /query/dense` and `/query/hybrid` take {"question": ...} and give {"passages": [...]} in the service's form.
Nothing but the standard library, FastAPI and uvicorn is imported here.
"""

import argparse
import json
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeAlias

import uvicorn
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

BUILT = "built.json"


@dataclass(frozen=True, slots=True)
class Found:
    source: str
    """File name of the filing."""
    page: int
    """Position in the PDF, first is 1."""
    text: str
    last_page: int | None = None
    """Where a passage runs on to further pages."""


Retrieve: TypeAlias = Callable[[str], Sequence[Found]]
"""From a question to its passages, best first."""


@dataclass(frozen=True, slots=True)
class Index:
    files: int
    """Of which there is at least one chunk."""
    chunks: int
    retrievers: Mapping[str, Retrieve]
    """By name: dense, hybrid."""


Build: TypeAlias = Callable[[Path, str, int], Index]
"""From the folder of PDFs, the embedding model's folder and k."""


class Asked(BaseModel):
    question: str


class Passage(BaseModel):
    rank: int
    score: float
    """1/rank: only the order counts."""
    source: str
    page: int
    last_page: int | None
    text: str


class Reply(BaseModel):
    passages: list[Passage]


def application(retrievers: Mapping[str, Retrieve]) -> FastAPI:
    app = FastAPI()

    # No coroutine: FastAPI runs it in a thread, as its documentation has it for calls that block.
    @app.post("/query/{name}")
    def query(name: str, asked: Asked) -> Reply:
        if name not in retrievers:
            raise HTTPException(404, f"there are {', '.join(retrievers)}")
        found = enumerate(retrievers[name](asked.question), start=1)
        return Reply(passages=[Passage(rank=rank, score=1 / rank, **asdict(each)) for rank, each in found])

    return app


def serve(build: Build, argv: Sequence[str] | None = None) -> None:
    """Until it is terminated."""
    began = time.perf_counter()
    parser = argparse.ArgumentParser()
    parser.add_argument("filings", type=Path)
    parser.add_argument("model")
    parser.add_argument("k", type=int)
    given = parser.parse_args(argv)
    index = build(given.filings, given.model, given.k)
    held = {"files": index.files, "chunks": index.chunks, "seconds": time.perf_counter() - began}
    Path(BUILT).write_text(json.dumps(held), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0), backlog=2048) as listener:
        sys.stdout.write(f"answers on http://127.0.0.1:{listener.getsockname()[1]}\n")
        sys.stdout.flush()
        server = uvicorn.Server(uvicorn.Config(application(index.retrievers), log_config=None, access_log=False))
        server.run(sockets=[listener])
