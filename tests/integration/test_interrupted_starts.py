"""An interrupt may come between any two lines of a start: it stays an interrupt, and nothing is left behind."""

import linecache
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from harness.targets import left_behind
from tests.contract.driver import Run

OURS = ("/harness/cloud_run/", "/harness/targets/local/", "/harness/protocol/")
LINES_AT_LEAST = 60  # a start goes through some hundred


@contextmanager
def interrupted_at(line_number: int) -> Iterator[list[str]]:
    """Raise at the nth line of ours that is executed from now on, once; yields the place.

    Not where a ``with`` is left: the line is traced once more there, before ``__exit__`` is called, and the interpreter looks at signals only
    where a call has returned or a loop begins anew. Source: ``CHECK_EVAL_BREAKER`` in CPython's ``Python/bytecodes.c``.
    """
    places: list[str] = []
    left = line_number
    entered: set[tuple[FrameType, int]] = set()

    def is_left(frame: FrameType) -> bool:
        if not linecache.getline(frame.f_code.co_filename, frame.f_lineno).lstrip().startswith("with "):
            return False
        was_entered = (frame, frame.f_lineno) in entered
        entered.add((frame, frame.f_lineno))
        return was_entered

    def trace(frame: FrameType, event: str, _argument: Any) -> Any:
        nonlocal left
        if not any(part in frame.f_code.co_filename for part in OURS):
            return None
        if event == "line" and not places and not is_left(frame):
            left -= 1
            if left == 0:
                places.append(f"{Path(frame.f_code.co_filename).name}:{frame.f_lineno} in {frame.f_code.co_name}")
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield places
    finally:
        sys.settrace(before)
        entered.clear()  # frames hold what they have started


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")  # descriptors end with us
def test_an_interrupt_at_any_line_of_a_start_stays_one_and_leaves_nothing(tmp_path: Path) -> None:
    failures = []
    for number in range(1, 10_000):
        run = Run("local", tmp_path / str(number), ("sh", "-c", "sleep 60"))
        ended_as = "nothing"
        with interrupted_at(number) as places:
            try:
                run.target.start(run.launch)
            except BaseException as error:  # noqa: BLE001  which one is the question
                ended_as = type(error).__name__
        run.target.stop()
        left = left_behind(run.launch.run_id)
        if not places:
            break
        if ended_as != "KeyboardInterrupt" or left:
            failures.append(f"{places[0]}: ended as {ended_as}, left {left}")
    assert number > LINES_AT_LEAST
    if failures:
        pytest.fail("\n".join(failures))
