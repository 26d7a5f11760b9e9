"""`python -m ingest`, installed as `sextant-ingest`."""

import sys

from ingest.cli import run


def main() -> None:
    sys.exit(run(sys.argv[1:]))


if __name__ == "__main__":
    main()
