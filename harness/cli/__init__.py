"""The command ``harness``.

Exit codes of ``run`` and ``check``: 0 valid, 1 invalid, 2 unknown, 64 wrong usage or a bad scenario, 70 a broken harness, 130 interrupted.
The worst outranks.
"""

import sys


def main() -> None:
    """Run the command line; every error of ours is one line, never a traceback."""
    from harness.cli.commands import run_app

    sys.exit(run_app(sys.argv[1:]))
