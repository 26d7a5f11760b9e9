"""The evaluation's command line: its arguments and exit statuses. What is slow to import is imported when needed."""

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

_EXAMPLES = """examples:
  sextant-eval matrix --questions qa.jsonl --run runs/a             every architecture, every class; writes a report
  sextant-eval matrix --questions qa.jsonl --run runs/a --estimate  what would that cost
  sextant-eval ablate --questions qa.jsonl --arch hybrid --switch query_filters,c=20,bm25_weight=0.5
  sextant-eval chunking --filings FOLDER --questions qa.jsonl --chunker structure --chunker parent:max_tokens=64
  sextant-eval ir sets/* --baseline bm25.json                       public retrieval sets, leg by leg
  sextant-eval stress --questions qa.jsonl --run runs/stress        what is trusted when passages lie (on a copy)
  sextant-eval rerank sets/* --questions qa.jsonl                   the same candidates with and without RERANKER_MODEL
  sextant-eval injections                                           orders planted in a filing: is any obeyed
  sextant-eval study                                                what each architecture wins and damages, and why
  sextant-eval bench                                                how fast, and how far from the sum of the parts
  sextant-eval peers --filings PDFS --questions FILE                beside LlamaIndex, LangChain and Haystack
  sextant-eval compare runs/a runs/b                                what changed, question by question
  sextant-eval compare before/bench.json build/bench/bench.json     what became slower, beyond the noise
  sextant-eval retrieval --questions qa.jsonl                       where naive, BM25 and hybrid rank the evidence
  sextant-eval retrieval --questions qa.jsonl --arch hybrid,hybrid:c=20:bm25_weight=0.5
  sextant-eval calibrate --questions qa.jsonl                       crag's grader fitted to this collection
  sextant-eval calibrate --agent --questions qa.jsonl               agentic's threshold of a hop, likewise
  sextant-eval citations --questions qa.jsonl --url http://127.0.0.1:8000    are quotes exact, are bills true

The service is run inside this process over DATA_DIR (or --data-dir), unless --url names a running one.
exit status: 0 fine, 1 a promise was broken or questions failed, 2 wrong usage, 3 no service or index, 4 over budget,
130 interrupted.
"""


def run(arguments: Sequence[str]) -> int:
    """Returns the exit status."""
    options = _parser().parse_args(list(arguments) or ["--help"])
    from app.__main__ import loop_factory
    from app.errors import SextantError
    from evals import commands
    from evals.errors import SubjectError, UsageError

    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            return runner.run(commands.COMMANDS[options.command](options))
    except UsageError as error:
        return commands.fail(str(error), commands.USAGE)
    except (SextantError, SubjectError) as error:
        return commands.fail(str(error), commands.UNAVAILABLE)
    except (KeyboardInterrupt, asyncio.CancelledError):
        return commands.fail("interrupted", commands.INTERRUPTED)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="sextant-eval",
        description="Measure architectures on questions with known evidence.",
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    output = argparse.ArgumentParser(add_help=False)
    output.add_argument("--json", action="store_true", help="print JSON, for programs")
    subject = argparse.ArgumentParser(add_help=False, parents=[output])
    _subject(subject)
    commands = parser.add_subparsers(dest="command", required=True)
    _retrieval(commands.add_parser("retrieval", parents=[subject], help="where evidence ranks"))
    _citations(commands.add_parser("citations", parents=[subject], help="are quotes exact and bills true"))
    _figures(commands.add_parser("figures", parents=[subject], help="is the number asked for in a retrieved table"))
    _matrix(commands.add_parser("matrix", parents=[subject], help="architectures by classes of questions"))
    _ablate(commands.add_parser("ablate", parents=[subject], help="one thing changed at a time"))
    _chunking(commands.add_parser("chunking", parents=[output], help="chunk strategies on the same questions"))
    _ir(commands.add_parser("ir", parents=[output], help="retrieval sets in BEIR's form, leg by leg"))
    _calibrate(
        commands.add_parser("calibrate", parents=[output], help="fit crag's grader, or agentic's hops, to a collection")
    )
    _scan(commands.add_parser("scan", parents=[output], help="how deep a flat scan reads to count as the graph does"))
    _stress(commands.add_parser("stress", parents=[subject], help="answers over a collection made worse"))
    _rerank(commands.add_parser("rerank", parents=[output], help="what a cross-encoder adds, alone and fused"))
    _injections(commands.add_parser("injections", parents=[output], help="orders planted in filings: is any obeyed"))
    _study(commands.add_parser("study", parents=[output], help="the architectures over a geometry, no model needed"))
    _loaders(commands.add_parser("loaders", parents=[output], help="our reading of PDFs beside other loaders"))
    _bench(commands.add_parser("bench", parents=[output], help="speed of the service and of the ingestion"))
    _peers(commands.add_parser("peers", parents=[output], help="other frameworks on the same work"))
    comparison = commands.add_parser("compare", parents=[output], help="two runs of matrix, or of bench")
    comparison.add_argument("a", type=Path, metavar="A", help="folder of a run, or its JSON file")
    comparison.add_argument("b", type=Path, metavar="B", help="the same of a later run")
    return parser


def _subject(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--questions", metavar="FILE", type=Path, required=True, help="JSONL file or BEIR folder")
    add("--arch", metavar="A,B", default="all", help="systems, as hybrid or hybrid:c=20 (default: all that can run)")
    add("--url", metavar="URL", help="a running service; its API key is read from SEXTANT_API_KEY")
    add("--data-dir", metavar="DIR", type=Path, help="index for the service in this process (default: DATA_DIR)")
    _fewer(parser)
    add("--parallel", metavar="N", type=_positive, default=4, help="questions at once (default: 4)")
    add("--run", metavar="DIR", type=Path, help="keep replies here and take those already kept")


def _fewer(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--class", dest="kinds", metavar="C,D", help="only questions of these classes")
    most = parser.add_mutually_exclusive_group()
    most.add_argument("--limit", metavar="N", type=_positive, help="only the first N questions")
    of_each = "only N questions, drawn of each class by its share"
    most.add_argument("--sample", metavar="N", dest="drawn", type=_positive, help=of_each)
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="of the sample (default: 0)")


def _retrieval(parser: argparse.ArgumentParser) -> None:
    _passages(parser, 100)
    parser.add_argument("--weak", action="store_true", help="weak evidence too, at document level")


def _citations(parser: argparse.ArgumentParser) -> None:
    _passages(parser, 10)
    help_ = "questions asked again with a filter (default: 10)"
    parser.add_argument("--filter-probes", metavar="N", type=int, default=10, help=help_)


def _figures(parser: argparse.ArgumentParser) -> None:
    _passages(parser, 10)


def _matrix(parser: argparse.ArgumentParser) -> None:
    _passages(parser, 10)
    add = parser.add_argument
    add("--baseline", metavar="A", default="naive", help="what others win or damage against (default: naive)")
    add("--quality", metavar="M", default="answer", help="measure weighed against price (default: answer)")
    judges, first = ("deterministic", "openai", "none"), "who judges RAGAS's measures (default: deterministic)"
    add("--judge", choices=judges, default="deterministic", help=first)
    add("--labels", metavar="FILE", type=Path, help="JSONL of claim, passage, supported to check the judge against")
    routes = "write what auto is to choose by (default: routes.json beside the index, where the service reads it)"
    add("--routes", metavar="FILE", type=Path, nargs="?", const=Path(), help=routes)
    add("--estimate", action="store_true", help="ask two questions, say what the rest will cost, stop")
    add("--max-calls", metavar="N", type=int, help="stop where more LLM calls than this are to come")
    add("--max-usd", metavar="X", type=float, help="stop where more US dollars than this are to come")


def _stress(parser: argparse.ArgumentParser) -> None:
    _passages(parser, 10)
    kinds = "kinds of bad passages: noise,stale,conflict,counterfactual,poison (default: all)"
    parser.add_argument("--plant", metavar="A,B", default="all", help=kinds)


def _injections(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--arch", metavar="A,B", default="all", help="systems (default: all that can run)")
    parser.add_argument("--parallel", metavar="N", type=_positive, default=4, help="systems at once (default: 4)")


def _study(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--seeds", metavar="N", type=_positive, default=20, help="corpora drawn (default: 20)")
    add("--queries", metavar="N", type=_positive, default=20, help="queries of a class on each corpus (default: 20)")
    add("--out", metavar="DIR", type=Path, default=Path("build/study"), help="for the report (default: build/study)")
    add("--filings", metavar="RUN", type=Path, help="a run of matrix: which statements hold on its filings")
    add("--parallel", metavar="N", type=_positive, help="seeds at once (default: a core each)")


def _bench(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="less of everything: about two minutes")
    size.add_argument("--full", action="store_true", help="an index of 500,000 chunks, too")
    add("--only", metavar="A,B", default="all", help="of ingestion,growth,graph,start,service,lag (default: all)")
    add("--seconds", metavar="X", type=float, help="per round and number of clients")
    add("--out", metavar="DIR", type=Path, default=Path("build/bench"), help="for bench.json (default: build/bench)")


def _peers(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--filings", metavar="DIR", type=Path, required=True, help="whose PDFs every contender indexes")
    add("--questions", metavar="FILE", type=Path, required=True, help="JSONL; those whose evidence is in the PDFs")
    names = "llamaindex,langchain,haystack"
    add("--peers", metavar="A,B", default=names, help=f"beside ours (default: {names})")
    cover = "only the fewest PDFs, shortest first, with all evidence of N questions"
    add("--cover", metavar="N", type=_positive, help=cover)
    add("--clients", metavar="1,8", default="1,8,32", help="numbers of clients at once (default: 1,8,32)")
    add("--seconds", metavar="X", type=float, help="per round and number of clients")
    add("--again", action="store_true", help="measure anew what an earlier run has measured")
    add("--out", metavar="DIR", type=Path, default=Path("build/peers"), help="environments and report (build/peers)")


def _ablate(parser: argparse.ArgumentParser) -> None:
    _passages(parser, 100)
    add = parser.add_argument
    add("--switch", metavar="A,B=2", default="", help="options to change: a name flips, name=value sets")
    add("--index", metavar="DIR", type=Path, action="append", default=[], help="data directory of another index")


def _chunking(parser: argparse.ArgumentParser) -> None:
    _passages(parser, 10)
    add = parser.add_argument
    add("--filings", metavar="PATH", nargs="+", required=True, help="what is indexed, once for each strategy")
    add("--questions", metavar="FILE", type=Path, required=True, help="JSONL; those whose evidence is indexed")
    strategies = "structure:header=none, fixed, ...; repeat it; the others are compared with the first"
    add("--chunker", metavar="S", action="append", help=f"{strategies} (default: structure and fixed)")
    add("--arch", metavar="A,B", help="systems (default: hybrid,naive)")
    add("--bm25-only", action="store_true", help="no dense leg: seconds instead of minutes")
    add("--k1", metavar="X", type=float, help="BM25's k1 (default: the service's)")
    add("--b", metavar="X", type=float, help="BM25's b (default: the service's)")
    _fewer(parser)
    add("--parallel", metavar="N", type=_positive, default=4, help="questions at once (default: 4)")
    add("--run", metavar="DIR", type=Path, help="keep indexes and replies here and take those already kept")


def _loaders(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--filings", metavar="PATH", type=Path, nargs="+", required=True, help="PDFs, or folders of them")
    add("--python", metavar="PYTHON", help="for which pypdf, pdfplumber, pymupdf are installed (default: this one)")
    ours = "sextant: text with places; sextant-whole: all before the model; pymupdf, pypdf, pypdf-layout, pdfplumber"
    add("--loader", metavar="A,B", help=f"{ours} (default: all)")


def _rerank(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folders", nargs="*", type=Path, metavar="FOLDER", help="retrieval sets in BEIR's form")
    add("--questions", metavar="FILE", type=Path, help="JSONL file with evidence pages, asked of the index")
    add("--data-dir", metavar="DIR", type=Path, help="whose index is asked (default: DATA_DIR)")
    add("--class", dest="kinds", metavar="C,D", help="only questions of these classes")
    add("--limit", metavar="N", type=_positive, help="only the first N questions")
    add("--depth", metavar="N", type=_positive, default=30, help="candidates that are scored anew (default: 30)")
    add("--sample", metavar="N", type=_positive, default=200, help="queries drawn of each set (default: 200)")
    add("--passages", action="store_true", help="cut long documents as filings are; each ranks by its best passage")
    parser.set_defaults(drawn=None)


def _scan(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--questions", metavar="FILE", type=Path, required=True, help="JSONL file with evidence pages")
    add("--data-dir", metavar="DIR", type=Path, help="whose index is asked (default: DATA_DIR)")
    add("--class", dest="kinds", metavar="C,D", default="global", help="of these classes (default: global)")
    add("--limit", metavar="N", type=_positive, help="only the first N questions")
    parser.set_defaults(drawn=None)


def _calibrate(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--questions", metavar="FILE", type=Path, required=True, help="JSONL file with evidence pages")
    add("--data-dir", metavar="DIR", type=Path, help="whose index is asked (default: DATA_DIR)")
    add("--limit", metavar="N", type=_positive, help="only the first N questions")
    add("--out", metavar="FILE", type=Path, help="what to write (default: GRADER_CALIBRATION, else beside the index)")
    add("--agent", action="store_true", help="instead: from which residual on agentic follows a passage")
    add("--plot", metavar="FILE", type=Path, help="reliability as SVG")
    add("--save", metavar="FILE", type=Path, help="keep the passages' features and labels here")
    add("--with", dest="others", metavar="FILE", type=Path, action="append", default=[], help="add another's --save")
    add("--seed", metavar="N", type=int, default=0, help="of the folds (default: 0)")


def _ir(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("folders", nargs="+", type=Path, metavar="FOLDER", help="corpus.jsonl, queries.jsonl, qrels*.tsv")
    add("--baseline", metavar="FILE", type=Path, help="JSON rows of set, qrels, ndcg10 for BM25 to reach")
    add("--bm25-only", action="store_true", help="no dense leg: seconds instead of minutes")
    add("--passages", action="store_true", help="cut long documents as filings are; each ranks by its best passage")
    walk = "recall@5 of a walk over the names that documents print (personalised PageRank), too"
    add("--graph", action="store_true", help=walk)
    add("--k1", metavar="X", type=float, help="BM25's k1 (default: the service's)")
    add("--b", metavar="X", type=float, help="BM25's b (default: the service's)")
    add("--average-length", metavar="N", type=float, help="BM25's terms per document (default: the set's)")


def _passages(parser: argparse.ArgumentParser, default: int) -> None:
    parser.add_argument("--k", metavar="N", type=_positive, default=default, help=f"passages asked for ({default})")


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is below 1")
    return value
