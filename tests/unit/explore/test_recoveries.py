"""Recoveries are recorded and judged as far as is granted, and what is left out of them is told: as cut, or as what proves nothing."""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.explore.budget import Budget
from harness.explore.conclusion import Missing, conclude
from harness.explore.recoveries import Recoveries
from harness.explore.relapses import Origin, Unrecorded
from harness.explore.replay import Replay
from harness.verdict import Outcome
from tests.unit.explore.recordings import Recording
from tests.unit.explore.test_campaign import RECIPE, RECORDED, Stage

TAKES_S = 5.0
"""To record a recovery."""


class Recorded:
    """Records recoveries that write a lock and remove it, unless it is told otherwise."""

    def __init__(self, stage: Stage, directory: Path, why_not: Unrecorded | None = None) -> None:
        self.origins: list[Origin] = []
        self._stage, self._directory, self._why_not = stage, directory, why_not

    def __call__(self, origin: Origin) -> Replay | Unrecorded:
        self.origins.append(origin)
        self._stage.clock.advance(TAKES_S)
        if self._why_not is not None:
            return self._why_not
        job = Recording(self._directory / f"recovery-{len(self.origins)}")
        for piece in origin.task.pieces:
            job.there(piece.path, b"x")
        job.save_file("lock", b"x")
        job.unlink("lock")
        job.end()
        return job.replay()


Judge = Callable[..., tuple[Stage, Recoveries, Recorded]]


@pytest.fixture
def judge(tmp_path: Path) -> Iterator[Judge]:
    with contextlib.ExitStack() as stack:

        def judge(*, budget: Budget, why_not: Unrecorded | None = None, slows_down_s: float = 1.0) -> tuple[Stage, Recoveries, Recorded]:
            directory = tmp_path / str(len(list(tmp_path.iterdir())))
            directory.mkdir()
            stage = stack.enter_context(contextlib.closing(Stage(directory, names=(("posix", "process"),), budget=budget)))
            record = Recorded(stage, directory, why_not)
            recoveries = Recoveries(stage.campaign, RECIPE, record, stack=stack, clock=stage.clock)
            stage.campaign.judge(stage.frontier, stage.data, rank=0, deadline_s=stage.campaign.deadline_s(0))
            stage.laboratory.takes_s = slows_down_s
            recoveries.judge(stage.frontier)
            return stage, recoveries, record

        yield judge


def test_all_that_tells_most_of_a_recovery_that_is_begun_is_judged_and_others_are_cut(judge: Judge) -> None:
    stage, recoveries, record = judge(budget=Budget(seconds=8.0, representatives_s=1000.0))

    assert stage.campaign.seconds > 8.0
    assert len(recoveries.begun) == len(record.origins) > 0
    assert [relapse.frontier.unjudged_of(0) for relapse in recoveries.begun] == [0] * len(recoveries.begun)
    assert recoveries.cut > 0
    assert recoveries.unrecorded == ()


def test_a_recovery_for_which_too_little_is_left_is_not_begun_but_cut(judge: Judge) -> None:
    by_states, by_seconds = (judge(budget=budget)[1] for budget in (Budget(seconds=None, states=5), Budget(seconds=10.0)))

    for recoveries in (by_states, by_seconds):
        assert recoveries.begun == []
        assert recoveries.cut > 0
        assert recoveries.unrecorded == ()


def test_what_tells_most_of_a_recovery_and_is_not_judged_is_counted(judge: Judge) -> None:
    """It took longer than those before."""
    stage, recoveries, _ = judge(budget=Budget(seconds=30.0), slows_down_s=20.0)

    unjudged = sum(relapse.frontier.unjudged_of(0) for relapse in recoveries.begun)

    assert stage.frontier.unjudged_of(0) == 0
    assert unjudged > 0
    surfaces = tuple(recoveries.surfaces(run_directory="run"))
    assert all(surface.after for surface in surfaces)
    assert conclude(RECORDED, surfaces, missing=Missing(states=unjudged))[0] is Outcome.UNKNOWN


def test_where_no_state_is_granted_any_more_no_recovery_is_recorded(judge: Judge) -> None:
    _, recoveries, record = judge(budget=Budget(seconds=None, states=4))

    assert record.origins == []
    assert recoveries.cut > 0


def test_a_recovery_that_cannot_be_recorded_proves_nothing_and_says_why(judge: Judge) -> None:
    stage, recoveries, record = judge(budget=Budget(seconds=None), why_not=Unrecorded("it failed"))
    surfaces = stage.judge()

    outcome, (why,) = conclude(RECORDED, surfaces, missing=Missing(recoveries=recoveries.unrecorded))

    assert outcome is Outcome.UNKNOWN
    assert why == f"after {len(record.origins)} states recovery could not be recorded, so no crash in it was tried: it failed"


def test_a_recovery_that_takes_longer_than_recoveries_are_recorded_for_is_cut(judge: Judge) -> None:
    _, recoveries, record = judge(budget=Budget(seconds=None), why_not=Unrecorded("it takes long", is_cut=True))

    assert recoveries.cut == len(record.origins) > 0
    assert recoveries.unrecorded == ()
