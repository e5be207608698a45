"""What a person sees of a state that was tried again."""

import io
from pathlib import Path

from rich.console import Console

from harness.cli.replayed_state import TRACEBACK_LINES_MAX, print_replayed
from harness.explore.judgement import Broken, Judgement, Recovery
from harness.explore.kept_state import KeptState
from harness.explore.recipe import Tried
from harness.explore.replaying import Again, ReplayedState
from harness.explore.result import Moment, StateResult
from harness.explore.states import KillPoint
from harness.verdict import Outcome

POINT = KillPoint(marker="start", marker_nth=0, operation="", path_class="", nth=0)
TRACEBACK = "Traceback (most recent call last):\n  in load\n\x1b[2JValueError: empty\n"


def printed(first: Recovery, second: Recovery | None = None, *, is_broken: bool = True, **fields: object) -> list[str]:
    broken = (Broken(promise="recovers", says="it did not"),) * is_broken
    before = StateResult(state="s", moments=(Moment(at=0, point=POINT),), outcome=Outcome.INVALID, broken=broken)
    again = Again(surface="posix × process", before=before, now=Judgement(state="s", recovery=first, broken=broken))
    out = io.StringIO()
    replayed = ReplayedState(state="s", tried=Tried(state="s", first=first, second=second), again=(again,), **fields)
    print_replayed(Console(file=out, width=60), replayed)
    return out.getvalue().splitlines()


def test_the_end_of_what_a_failed_recovery_said_is_told_once_and_acts_on_nothing():
    failed = Recovery(exit_code=1, detail=TRACEBACK)

    lines = printed(failed, failed)

    assert [line for line in lines if "in load" in line] == ["      in load"]
    assert "\x1b" not in "".join(lines)
    assert lines[-1] == "with --keep the files of this state stay: as the crash left them, and as recovery did"


def test_of_a_long_end_the_last_lines_are_told():
    lines = printed(Recovery(exit_code=1, detail="\n".join(f"line {number}" for number in range(99))))

    assert sum(line.startswith("    line ") for line in lines) == TRACEBACK_LINES_MAX
    assert "    line 98" in lines


def test_where_the_files_are_and_which_of_them_differ_is_told(tmp_path: Path):
    kept = KeptState(tmp_path)
    kept.recovered.mkdir()

    lines = printed(Recovery(exit_code=0), kept=kept, results=(kept.recovered / "final", kept.uninterrupted / "final"))

    assert lines[-3:] == [
        f"kept, as the crash left it: {tmp_path}/state",
        f"kept, as recovery left it: {tmp_path}/recovered",
        f"these differ: {tmp_path}/recovered/final and {tmp_path}/uninterrupted/final",
    ]


def test_of_a_state_that_is_valid_now_nothing_more_is_told():
    assert not [line for line in printed(Recovery(exit_code=0), is_broken=False) if "--keep" in line]
