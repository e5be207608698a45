"""``gate.json``: what a gate has measured, and how that was judged."""

from pathlib import Path

import msgspec

from harness.gate.judging import Judged
from harness.gate.result import RESULT_NAME, Measured
from harness.scenario import encode
from harness.store import write_whole


class GateOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The whole document; ``harness gate --from`` reads what was measured and judges it anew."""

    measured: Measured
    judged: Judged


def write_outcome(directory: Path, outcome: GateOutcome) -> Path:
    """Write it, whole or not at all, and return its path.

    Raises:
        StoreError: When it cannot be written.
    """
    path = directory / RESULT_NAME
    write_whole(path, encode(outcome))
    return path
