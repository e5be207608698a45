"""Twice as long a history is twice the work to judge, not four times: counted in instructions of the interpreter, so that no clock decides.

What C code does inside one instruction (``max`` of a list, ``in`` a tuple) is not counted.
"""

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import msgspec
import pytest

from benchmarks.story import scenario_of, tell
from harness.checkers import ALWAYS, CHECKERS, Evidence, gather
from harness.history import CheckpointsSeen, Event, History, Marked, SaveBegun, SaveEnded, StepDone
from harness.scenario import name_of

STEPS = 400
GROWTH_MAX = 2.2
"""Twice, and room for what grows with the logarithm or in leaps."""


def works_of(evidence: Evidence) -> dict[str, int]:
    works = {name: instructions_of(lambda check=check: check(evidence)) for name, check in ALWAYS.items()}
    for expectation in evidence.scenario.expects:
        check = CHECKERS[type(expectation)]
        works[name_of(expectation)] = instructions_of(lambda check=check, expectation=expectation: check(expectation, evidence))
    return works


def instructions_of(act: Callable[[], object]) -> int:
    count = 0

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal count
        frame.f_trace_opcodes = True
        count += event == "opcode"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count


def right(steps: int) -> list[Event]:
    return tell(steps, is_golden=False).events


def wrong(steps: int) -> list[Event]:
    """After the first death no state and no sample is right, and nothing is saved any more."""
    return [spoilt(event) for event in right(steps) if not (isinstance(event, SAVING) and event.attempt > 0)]


SAVING = (SaveBegun, SaveEnded, Marked, CheckpointsSeen)


def spoilt(event: Event) -> Event:
    if isinstance(event, StepDone) and event.attempt > 0:
        return msgspec.structs.replace(event, digests=dict.fromkeys(event.digests, "wrong"), batch_ids=event.batch_ids[::-1])
    return event


@pytest.mark.parametrize("events_of", [right, wrong])
def test_judging_grows_with_the_length_of_the_history_and_no_faster(events_of: Callable[[int], list[Event]]):
    works = []
    for steps in (STEPS, 2 * STEPS):
        golden = History(events=tuple(tell(steps, is_golden=True).events))
        history = History(events=tuple(events_of(steps)))
        gathered = {
            "gather": instructions_of(lambda history=history, golden=golden, steps=steps: gather(scenario_of(steps), history, golden))
        }
        works.append(gathered | works_of(gather(scenario_of(steps), history, golden)))
    grown = {name: works[1][name] / works[0][name] for name in works[0]}
    assert {name: growth for name, growth in grown.items() if growth > GROWTH_MAX} == {}
