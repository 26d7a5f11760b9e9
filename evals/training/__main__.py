"""`python -m evals.training`: the training's command line. What is slow to import is imported when needed."""

import argparse
import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

_STEPS = """a new cross-encoder, from the repository's root:
  python -m evals.training pairs --data-dir data --sets SETS
  python -m evals.training unpack                 the shipped weights, to go on from; or start from a base's folder
  python -m evals.training train                  stopped, it goes on from its last checkpoint when started again
  python -m evals.packing build/training/run/model app/models/grader

The same index, sets, seed and start give the same groups in the same order; weights differ in the last digits between
processors. app/models/grader/README.md says what the shipped weights were made from.
"""
_BUILD = Path("build") / "training"


def main(arguments: Sequence[str]) -> int:
    """Returns the exit status."""
    options = _parser().parse_args(list(arguments) or ["--help"])
    commands = {"pairs": _pairs, "unpack": _unpack, "train": _train}
    commands[options.command](options)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m evals.training",
        description="Train the cross-encoder that the service ships.",
        epilog=_STEPS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = parser.add_subparsers(dest="command", required=True)
    pairs = commands.add_parser("pairs", help="queries with a right passage and hard wrong ones").add_argument
    pairs("--data-dir", metavar="DIR", type=Path, default=Path("data"), help="index of filings (default: data)")
    pairs("--sets", metavar="DIR", type=Path, required=True, help="folder of retrieval sets and labelled pairs")
    pairs("--out", metavar="FILE", type=Path, default=_BUILD / "groups.jsonl")
    pairs("--seed", metavar="N", type=int, default=1)
    unpack = commands.add_parser("unpack", help="the shipped weights as a folder to start from").add_argument
    unpack("--out", metavar="DIR", type=Path, default=_BUILD / "start")
    train = commands.add_parser("train", help="go on from weights, with checkpoints").add_argument
    train("--groups", metavar="FILE", type=Path, default=_BUILD / "groups.jsonl")
    train("--start", metavar="DIR", default=str(_BUILD / "start"), help="a BERT's folder: a base, or unpacked weights")
    train("--out", metavar="DIR", type=Path, default=_BUILD / "run")
    train("--limit", metavar="N", type=int, help="only the first N groups")
    train("--epochs", metavar="N", type=int, default=1)
    train("--rate", metavar="X", type=float, default=3e-5, help="of learning (default: 3e-5)")
    train("--threads", metavar="N", type=int, default=1)
    train("--seed", metavar="N", type=int, default=1)
    return parser


def _pairs(options: argparse.Namespace) -> None:
    from evals.training.pairs import build

    counts = asyncio.run(build(options.data_dir, options.sets, options.out, options.seed))
    _say(f"{options.out}: " + ", ".join(f"{count} {source}" for source, count in sorted(counts.items())))


def _unpack(options: argparse.Namespace) -> None:
    from evals.packing import unpack

    unpack(options.out)
    _say(str(options.out))


def _train(options: argparse.Namespace) -> None:
    import torch

    from evals.training import groups
    from evals.training.train import Recipe, train

    torch.set_num_threads(options.threads)
    recipe = Recipe(epochs=options.epochs, rate=options.rate, seed=options.seed)
    _say(str(train(groups.read(options.groups)[: options.limit], options.start, options.out, recipe, _say)))


def _say(text: str) -> None:
    sys.stderr.write(text + "\n")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
