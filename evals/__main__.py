"""`python -m evals`, installed as `sextant-eval`."""

import sys

from evals.cli import run


def main() -> None:
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
