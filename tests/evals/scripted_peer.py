"""A peer that needs no package: it has read its filings by heart."""

from pathlib import Path

from evals.peers.runners.serving import Found, Index, serve

REVENUE = "What was revenue?"
DEBT = "What was debt?"


def build(filings: Path, model: str, k: int) -> Index:
    """Dense never has the debt's page; hybrid has it third and split across pages 1 and 2."""
    if model == "missing":
        raise SystemExit("no such model")
    files = sorted(path.name for path in filings.glob("*.pdf"))
    wrong = Found(files[0], 9, "nothing")

    def dense(question: str) -> list[Found]:
        return [Found(files[0], 1, "Revenue was 10."), wrong][:k] if question == REVENUE else [wrong]

    def hybrid(question: str) -> list[Found]:
        if question == REVENUE:
            return [Found(files[0], 1, "Revenue was 10.")]
        return [wrong, wrong, Found(files[0], 1, "Prose. Debt was 4.", last_page=2)]

    return Index(len(files), 3, {"dense": dense, "hybrid": hybrid})


if __name__ == "__main__":
    serve(build)
