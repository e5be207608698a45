"""``python -m harness.kind.bundle``: builds what is missing of the bundle."""

import argparse
import sys

from harness.clock import SystemClock
from harness.errors import HarnessError
from harness.kind.bundle.builder import build_bundle
from harness.kind.bundle.pieces import all_pieces


def main() -> int:
    """Build the bundle; returns the exit code."""
    parser = argparse.ArgumentParser(prog="kind-bundle", description=__doc__)
    parser.add_argument("--only", action="append", metavar="PIECE", choices=[piece.name for piece in all_pieces()], help="may be repeated")
    only = parser.parse_args().only
    try:
        build_bundle(SystemClock(), lambda line: print(line, flush=True), only=only or ())  # noqa: T201  a command line of its own
    except HarnessError as error:
        print(f"kind-bundle: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
