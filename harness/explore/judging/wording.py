"""Recoveries in words."""

import signal
from collections.abc import Iterable

from harness.explore.judgement import Recovery

DETAIL_SHOWN_MAX = 300
"""Characters of what a failed recovery said that go into a sentence: its last line, as a rule."""


def how_it_ended(recovery: Recovery) -> str:
    """Why a recovery did not come through, with the end of what it said."""
    said = recovery.detail.strip().splitlines()
    last = f": {said[-1][-DETAIL_SHOWN_MAX:]}" if said else ""
    where = f" after it had chosen step {recovery.chosen_step}" if recovery.chosen_step > 0 and recovery.restored_step < 0 else ""
    if recovery.timed_out:
        return f"recovery did not end within {recovery.seconds:.0f} s{where}{last}"
    if recovery.signal is not None:
        return f"recovery was ended by {name_of_signal(recovery.signal)}{where}{last}"
    return f"recovery failed with exit code {recovery.exit_code}{where}{last}"


def name_of_signal(number: int) -> str:
    """Like ``SIGKILL``."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def steps_in_words(steps: Iterable[int]) -> str:
    """Like ``steps 4, 8``."""
    found = sorted(set(steps))
    return f"steps {', '.join(map(str, found))}" if found else "nothing"
