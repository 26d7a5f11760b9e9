"""Everything once: ingest the specimen filings, serve them, ask each architecture, show answers, evidence and price."""

import argparse
import json
import math
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

import httpx
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.errors import GeneratorUnavailable
from app.local_model import check_memory, fetch_with_progress, model_file
from app.settings import Settings, read_settings
from evals.questions import stem
from ingest.cli import OK, SOME_FAILED

Reply: TypeAlias = dict[str, Any]

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "demo"
MODELS = ("embedding_", "model", "generator", "local_", "passage_", "openai_", "usd_")
"""Settings that may come from the caller's environment; the demo keeps clear of whatever index the rest points at."""

_LLM_CLASSES = ("numeric", "on", "unanswerable")
"""Of these the model is asked the first question each: on two cores it takes some ten seconds an answer."""
_FETCH_S = 240.0
_LLM_ASKING_S = 200.0
_ASK_S = 175


class DemoFailed(Exception):
    """A step that nothing can go on without has failed; the message says which, and where to look."""


def environment(folder: Path, **more: str) -> dict[str, str]:
    """The caller's variables without those that name an index or guard a service, an index in `folder`, and more."""
    foreign = {name for name in Settings.model_fields if not name.startswith(MODELS)}
    kept = {name: value for name, value in os.environ.items() if name.lower() not in foreign}
    path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    return {**kept, "DATA_DIR": str(folder), "PYTHONPATH": path, **more}


def run(module: str, *arguments: str | Path, folder: Path) -> int:
    """Runs a module of ours, its progress on this terminal; returns its exit status. Started in `folder`: no .env."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=environment(folder), check=False).returncode


@contextmanager
def service(command: Sequence[str], folder: Path, **variables: str) -> Iterator[str]:
    """The running service's URL, which it prints itself; stopped however the block is left. Raises DemoFailed."""
    log = folder / "service.log"
    pipe = subprocess.PIPE
    with (
        log.open("w") as stderr,
        subprocess.Popen(
            command, cwd=folder, env=environment(folder, **variables), stdout=pipe, stderr=stderr, text=True
        ) as process,
    ):
        assert process.stdout is not None
        try:
            url = next((line[line.index("http://") :].strip() for line in process.stdout if "http://" in line), None)
            if url is None:
                raise DemoFailed(f"the service did not start: {log.read_text().strip()[-500:]}")
            yield url
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


def one_of_each_class(questions: Path) -> list[Reply]:
    """The first question of each class, in the file's order."""
    first: dict[str, Reply] = {}
    for line in questions.read_text(encoding="utf-8").splitlines():
        question = json.loads(line)
        first.setdefault(question["class"], question)
    return list(first.values())


def answer_cell(reply: Reply) -> Text:
    """The answer and, below it, a line for each page cited; a problem's title and detail where there is no answer."""
    if "answer" not in reply:
        return Text(f"{reply['title']}: {reply['detail']}", style="red")
    if reply["abstained"]:
        return Text(f"no answer ({reply['reason']})  {reply['answer']}".strip(), style="yellow")
    cell = Text(reply["answer"])
    cited = [(c["marker"], c["title"], c["page"], c["verified"]) for c in reply["citations"]]
    for marker, title, page, verified in dict.fromkeys(cited):
        cell.append(f"\n[{marker}] {title}, page {page} ", style="cyan")
        cell.append("verified" if verified else "not verified", style="green" if verified else "yellow")
    return cell


def replies_table(question: Reply, replies: dict[str, Reply]) -> Table:
    """One question, a row for each architecture."""
    title = Text.assemble((question["class"], "bold magenta"), "  ", (question["question"], "bold"))
    table = Table(
        box=box.SIMPLE_HEAD,
        expand=True,
        show_edge=False,
        pad_edge=False,
        title=title,
        title_justify="left",
        caption=Text(f"expected: {question['answer']}"),
        caption_justify="left",
    )
    table.add_column("arch", no_wrap=True)
    table.add_column("answer and citations", ratio=1)
    for heading in ("ops", "calls", "ms"):
        table.add_column(heading, justify="right", no_wrap=True)
    for arch, reply in replies.items():
        cost = reply["cost"]
        price = f"{cost['ops']:,}", f"{cost['llm_calls']}", f"{cost['latency_ms']:,.0f}"
        table.add_row(Text(arch), answer_cell(reply), *price)
    return table


def as_expected(question: Reply, reply: Reply) -> bool:
    """Whether a page that holds the evidence is cited; of what no filing answers, whether the reply abstains."""
    if "answer" not in reply or question["class"] == "unanswerable":
        return bool(reply.get("abstained"))
    evidence = {(each["doc"], each["page"]) for each in question["evidence"]}
    return any((stem(each["source"]), each["page"]) in evidence for each in reply["citations"])


def summary_table(questions: Sequence[Reply], asked: Sequence[dict[str, Reply]]) -> Table:
    """Each architecture over all questions: outcomes, citations, and the two currencies, never added up."""
    title = Text("All questions; ms is their median", style="bold")
    table = Table(box=box.SIMPLE_HEAD, title=title, title_justify="left", show_edge=False, pad_edge=False)
    for heading in ("arch", "answered", "abstained", "failed", "right", "verified", "ops", "calls", "ms"):
        table.add_column(heading, justify="left" if heading == "arch" else "right")
    for arch in asked[0]:
        replies = [each[arch] for each in asked]
        good = [reply for reply in replies if "answer" in reply]
        citations = [citation for reply in good for citation in reply["citations"]]
        abstained = sum(reply["abstained"] for reply in good)
        table.add_row(
            Text(arch),
            f"{len(good) - abstained}",
            f"{abstained}",
            f"{len(replies) - len(good)}",
            f"{sum(map(as_expected, questions, replies))}/{len(replies)}",
            f"{sum(citation['verified'] for citation in citations)}/{len(citations)}",
            f"{sum(reply['cost']['ops'] for reply in replies):,}",
            f"{sum(reply['cost']['llm_calls'] for reply in replies)}",
            f"{statistics.median(reply['cost']['latency_ms'] for reply in replies):,.0f}",
        )
    return table


def ask_all(
    url: str, questions: Sequence[Reply], console: Console, limit_s: float = math.inf
) -> list[dict[str, Reply]]:
    """Asks every question of every architecture that can run; prints as the replies come in.

    After `limit_s` seconds it asks no more and leaves out a question that not all were asked, except the first.
    """
    asked: list[dict[str, Reply]] = []
    begun = time.monotonic()
    with httpx.Client(base_url=url, timeout=_ASK_S + 5) as client:
        described = client.get("/architectures").raise_for_status().json()["architectures"]
        able = [each["name"] for each in described if each["can_run"]]
        for each in described:
            if not each["can_run"]:
                console.print(Text(f"{each['name']} sits out: {each['why_not']}", style="yellow"))
        for question in questions:
            replies: dict[str, Reply] = {}
            for arch in able:
                if (asked or replies) and time.monotonic() - begun > limit_s:
                    break
                body = {"question": question["question"]}
                replies[arch] = client.post("/query", params={"arch": arch}, json=body).json()
            whole = len(replies) == len(able)
            if whole or not asked:
                console.print(replies_table(question, replies), "")
                asked.append(replies)
            if not whole:
                console.print(f"Stopping after {limit_s:g} seconds: this machine is slow or busy.", style="yellow")
                break
    return asked


def demonstrate(filings: Sequence[str], folder: Path, console: Console) -> None:
    """Raises DemoFailed."""
    for source in filings:
        if "://" not in source and not os.path.exists(source):
            raise DemoFailed(f"{source}: no such file or folder")
    specimens = folder / "specimens"
    specimens.mkdir(parents=True, exist_ok=True)
    console.rule("Writing specimen filings")
    if run("evals.specimens", specimens, folder=folder):
        raise DemoFailed("the specimen filings could not be written")
    console.rule("Ingesting")
    status = run("ingest", specimens / "filings", *filings, folder=folder)
    if status == SOME_FAILED:
        console.print("Some files were not ingested; the list above says why. Going on without them.", style="yellow")
    elif status != OK:
        raise DemoFailed("ingesting stopped; if an earlier version left its index there, run `make clean` first")
    questions = one_of_each_class(specimens / "questions.jsonl")
    converse(folder, questions, console)
    if local_model_is_there(console):
        few = [question for question in questions if question["class"] in _LLM_CLASSES]
        converse(folder, few, console, _LLM_ASKING_S, GENERATOR="local", REQUEST_TIMEOUT_S=str(_ASK_S))


def converse(
    folder: Path, questions: Sequence[Reply], console: Console, limit_s: float = math.inf, **variables: str
) -> None:
    """Serves the index, asks every architecture, shows the replies and what they add up to. Raises DemoFailed."""
    console.rule(f"Starting the service, generator: {variables.get('GENERATOR') or generator_named()}")
    with service([sys.executable, "-m", "app", "--host", "127.0.0.1", "--port", "0"], folder, **variables) as url:
        console.print(f"It answers on {url}, its log is {folder / 'service.log'}")
        asked = ask_all(url, questions, console, limit_s)
    console.print(summary_table(questions[: len(asked)], asked), _LEGEND, "")


def generator_named() -> str:
    return os.environ.get("GENERATOR") or "extractive"


def local_model_is_there(console: Console) -> bool:
    """Fetches it the first time; says why where it is not to be had. LLM=none and a GENERATOR of one's own skip it."""
    if os.environ.get("LLM") == "none" or generator_named() != "extractive":
        return False
    console.rule("The same with answers written by a local language model (LLM=none skips this)")
    try:
        settings = read_settings()
        if settings.local_model is None:
            fetch_with_progress(settings, console, _FETCH_S)
        check_memory(model_file().memory_bytes)
    except (GeneratorUnavailable, ValueError) as error:
        console.print(Text(f"Going on without it: {error}", style="yellow"))
        return False
    return True


_LEGEND = """\
right: cites a page that holds the evidence, or refuses where no filing has the
answer. verified: the quote carries its sentence, numbers included, which does
not mean that the sentence answers the question. ops: similarity evaluations;
calls: to an LLM. Without one an answer only quotes."""


def absolute(source: str) -> str:
    """The demo's steps run in a folder of their own, so that a relative path must be resolved here."""
    return source if "://" in source else os.path.abspath(os.path.expanduser(source))


def next_steps(folder: Path) -> str:
    data = os.path.relpath(folder, ROOT)
    return f"""Go on:
  make serve DATA={data}
      serves what was just ingested; open http://127.0.0.1:8000/ or
      curl -G http://127.0.0.1:8000/query -d arch=hybrid --data-urlencode 'q=your question'
  make ingest FILINGS=folder, then make serve
      your own PDFs (make demo FILINGS=folder ingests them beside the specimens)
  .venv/bin/sextant-eval matrix --data-dir {data} --questions {data}/specimens/questions.jsonl --run runs/specimens
      which architecture wins which class of question, which it damages, and what it costs
  GENERATOR=local make serve DATA={data}
      answers written by the local model; GENERATOR=openai with OPENAI_BASE_URL
      and OPENAI_MODEL: by any endpoint; .env.example lists every setting"""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m evals.demo", description=__doc__)
    parser.add_argument(
        "filings", nargs="*", type=absolute, help="folders, files or URLs to ingest beside the specimens"
    )
    arguments = parser.parse_args(argv)
    console = Console(highlight=False)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # an exception, so that the service is stopped, too
    try:
        demonstrate(arguments.filings, FOLDER, console)
    except (DemoFailed, httpx.HTTPError) as error:
        console.print(Text(f"The demo failed: {error}", style="red"))
        return 1
    except KeyboardInterrupt:
        console.print("Stopped.")
        return 130
    console.print(Text(next_steps(FOLDER)), soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
