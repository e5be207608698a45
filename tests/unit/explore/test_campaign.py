"""States are tried as far as a budget goes, each tree once, and judged wherever they are found."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from harness.clock import ManualClock
from harness.explore.blobs import BlobStore
from harness.explore.budget import Budget, read_budget
from harness.explore.campaign import Campaign
from harness.explore.conclusion import Missing, conclude
from harness.explore.data_file import DataFile
from harness.explore.frontier import Frontier, surfaces_of
from harness.explore.judgement import Broken, Recovery, SaveSeen
from harness.explore.judging.expected import expect
from harness.explore.models import MODELS
from harness.explore.moments import timeline
from harness.explore.ranks import RANKS
from harness.explore.recipe import Recipe, StateTask, Tried
from harness.explore.relapses import RECORDINGS_MAX, expected_in, origins_of
from harness.explore.result import Recorded, Surface
from harness.explore.trials_file import TrialsFile
from harness.verdict import Outcome
from tests.unit.explore.recordings import Recording

RECIPE = Recipe(command=("job",))
RECORDED = Recorded(seconds=1.0, operations=9, saves=2)
DIGESTS = {step: {"w": f"{step}"} for step in range(1, 5)}


def recovery(step: int, **fields: object) -> Recovery:
    """The right job, which goes on from a step."""
    own = {"exit_code": 0, "restored_step": step, "final_step": 4, "done": True, "restored_digests": DIGESTS.get(step, {})}
    own["digests"] = {after: DIGESTS[after] for after in DIGESTS if after > step}
    own["saves"] = tuple(SaveSeen(step=after, digests=DIGESTS[after]) for after in (2, 4) if after > step)
    return Recovery(**{**own, **fields})


class Laboratory:
    """An executor in memory, whose job restores the newest checkpoint that is whole; each state takes ``takes_s``."""

    def __init__(self, clock: ManualClock, wrong: object = None) -> None:
        self.tried: list[str] = []
        self.takes_s = 1.0
        self._clock, self._wrong = clock, wrong

    def try_all(self, tasks: Sequence[StateTask], recipe: Recipe, *, deadline_s: float) -> Iterator[Tried]:
        for task in tasks:
            if self._clock.monotonic_s() >= deadline_s:
                return
            self._clock.advance(self.takes_s)
            self.tried.append(task.state)
            paths = {piece.path for piece in task.pieces}
            step = max((int(path[5:]) for path in paths if path in ("step_2", "step_4")), default=0)
            if self._wrong is not None and self._wrong in paths:
                yield Tried(state=task.state, first=Recovery(exit_code=1, detail="ValueError: torn"))
            else:
                yield Tried(state=task.state, first=recovery(step), second=recovery(4))

    def close(self) -> None:
        """Nothing."""


class Listener:
    """A watcher that remembers."""

    def __init__(self) -> None:
        self.plans: list[int] = []
        self.outcomes: list[tuple[str, Outcome]] = []

    def recorded(self, recorded: Recorded) -> None: ...

    def planned(self, states: int) -> None:
        self.plans.append(states)

    def judged(self, surface: str, outcome: Outcome, worst: Broken | None) -> None:
        assert (worst is None) == (outcome is not Outcome.INVALID)
        self.outcomes.append((surface, outcome))


class Stage:
    """A recording of two saves by rename, and a campaign over it."""

    def __init__(
        self, directory: Path, *, names=(("posix", "process"), ("posix", "node"), ("posix-weak", "process")), budget=None, wrong=None
    ):
        job = Recording(directory / "log")
        for step in (2, 4):
            job.say("step", step=step, digests=DIGESTS[step])
            job.say("save.begin", step=step, digests=DIGESTS[step])
            job.save_file("tmp", b"%d" % step, syncs=True)
            job.rename("tmp", f"step_{step}")
            job.sync()
            job.say("save.end", step=step, digests=DIGESTS[step])
        job.say("done", step=4)
        job.end()
        self.clock, self.listener = ManualClock(), Listener()
        self.replayed = job.replay()
        self.data = DataFile(self.replayed.log.data_path)
        self.expected = expect(self.replayed.log.entries, recovery(0, saves=tuple(SaveSeen(step=step) for step in (2, 4))))
        self.frontier = Frontier(self.replayed, self.data, self.expected, names)
        self.trials = TrialsFile(directory / "tried")
        self.laboratory = Laboratory(self.clock, wrong)
        self.campaign = Campaign(
            self.laboratory,
            RECIPE,
            self.trials,
            BlobStore(directory / "blobs"),
            budget=budget or Budget(seconds=None),
            clock=self.clock,
            watcher=self.listener,
        )

    def close(self) -> None:
        self.data.close()
        self.trials.__exit__(None, None, None)

    def judge(self) -> tuple[Surface, ...]:
        for rank in range(RANKS):
            self.campaign.judge(self.frontier, self.data, rank=rank, deadline_s=self.campaign.deadline_s(rank))
        self.campaign.count(self.frontier)
        return self.frontier.surfaces(timeline(self.replayed).strip, run_directory="runs/x")


SetUp = Callable[..., Stage]


@pytest.fixture
def set_up(tmp_path: Path) -> Iterator[SetUp]:
    with contextlib.ExitStack() as stack:

        def make(**options: Any) -> Stage:
            return stack.enter_context(contextlib.closing(Stage(tmp_path, **options)))

        yield make


def test_each_tree_is_tried_once_and_judged_on_every_surface(set_up: SetUp) -> None:
    stage = set_up()

    process, node, weak = stage.judge()

    assert len(stage.laboratory.tried) == len(set(stage.laboratory.tried))
    assert node.same_as == "process"
    assert process.states == weak.states
    assert {state.outcome for state in process.states} == {Outcome.VALID}, process.states
    assert {surface for surface, _ in stage.listener.outcomes} == {"posix × process", "posix-weak × process"}
    assert len(stage.listener.outcomes) == stage.listener.plans[-1] == len(process.states) + len(weak.states)
    assert conclude(RECORDED, (process, node, weak)) == (Outcome.VALID, ())


def test_what_was_tried_already_is_judged_elsewhere_without_being_tried_again(set_up: SetUp) -> None:
    stage = set_up()
    stage.judge()
    tried = len(stage.laboratory.tried)

    stage.frontier = Frontier(stage.replayed, stage.data, stage.expected, (("posix", "process"),))
    (again,) = stage.judge()

    assert len(stage.laboratory.tried) == tried
    assert again.cut == 0


def test_the_same_tree_is_judged_for_each_promise_that_was_made(set_up: SetUp) -> None:
    (process, *_) = set_up().judge()

    names = [state.state for state in process.states]

    assert len(names) > len(set(names))
    assert {state.promised_step for state in process.states if names.count(state.state) > 1} >= {2, 4}


def test_a_wrong_state_is_invalid_and_says_what_must_hold(set_up: SetUp) -> None:
    surfaces = set_up(wrong="tmp").judge()

    outcome, reasons = conclude(RECORDED, surfaces)

    assert outcome is Outcome.INVALID
    assert reasons == ("`create tmp` to `rename tmp` must be atomic",)
    assert surfaces[0].count(Outcome.INVALID) == 4


def test_a_budget_of_states_is_kept_and_what_is_left_is_counted(set_up: SetUp) -> None:
    stage = set_up(budget=read_budget("3"))

    surfaces = stage.judge()

    assert len(stage.laboratory.tried) == 3
    assert surfaces[0].cut > 0
    missing = Missing(states=stage.frontier.unjudged_of(0))
    assert conclude(RECORDED, surfaces, missing=missing)[0] is Outcome.UNKNOWN


def test_a_budget_of_seconds_cuts_the_tail_but_not_the_most_telling_states(set_up: SetUp) -> None:
    names = surfaces_of(MODELS, ())
    stage = set_up(names=names, budget=Budget(seconds=2.0, representatives_s=1000.0))

    surfaces = stage.judge()

    assert stage.frontier.unjudged_of(0) == 0
    assert sum(surface.cut for surface in surfaces) > 0
    assert conclude(RECORDED, surfaces)[0] is Outcome.VALID


def test_a_time_that_was_over_before_all_most_telling_states_were_found_proves_nothing(set_up: SetUp) -> None:
    stage = set_up()
    stage.campaign.judge(stage.frontier, stage.data, rank=0, deadline_s=stage.clock.monotonic_s())
    assert not stage.frontier.has_found(0)
    surfaces = stage.judge()
    assert stage.frontier.has_found(0)

    outcome, (why,) = conclude(RECORDED, surfaces, missing=Missing(is_counted=False))

    assert outcome is Outcome.UNKNOWN
    assert "before all of the most telling states were found" in why


def test_nothing_judged_is_unknown() -> None:
    assert conclude(RECORDED, ()) == (Outcome.UNKNOWN, ("no state was judged",))


@pytest.mark.parametrize(
    ("recorded", "why"),
    [
        (Recorded(seconds=1.0, operations=9, saves=2, blind=("mapped",)), "mapped"),
        (Recorded(seconds=1.0, operations=9, saves=2, differs="two results"), "two results"),
        (Recorded(seconds=1.0, operations=0, saves=2, is_exact=False, why_not="no seccomp"), "no seccomp"),
    ],
)
def test_what_makes_states_prove_nothing_is_unknown_whatever_they_say(set_up: SetUp, recorded: Recorded, why: str) -> None:
    outcome, reasons = conclude(recorded, set_up().judge())

    assert outcome is Outcome.UNKNOWN
    assert why in reasons[0]


def test_the_first_states_are_of_every_kind(set_up: SetUp) -> None:
    stage = set_up(names=(("posix", "process"), ("posix-weak", "node")))

    every = [due.found.crash.cause.kind for due in stage.frontier.look(0, lambda: True)]

    kinds = set(every)
    assert len(kinds) > 1
    assert set(every[: 1 + len(kinds)]) == kinds  # of two surfaces, one has only one kind


def test_recoveries_are_recorded_from_states_that_look_different(set_up: SetUp) -> None:
    stage = set_up()
    stage.judge()

    origins = origins_of(stage.frontier)

    looks = [frozenset(piece.path for piece in origin.task.pieces) for origin in origins]
    assert len(looks) == len(set(looks)) <= RECORDINGS_MAX
    assert frozenset({"tmp"}) in looks
    assert frozenset() not in looks


def test_a_crash_in_recovery_owes_what_was_promised_before_the_first_crash(set_up: SetUp, tmp_path: Path) -> None:
    stage = set_up()
    saved = [step.at for step in stage.replayed.steps if step.save is not None]
    again = Recording(tmp_path / "again")
    again.there("step_2", b"2")
    again.save_file("lock", b"x")
    again.end()

    replayed = again.replay()
    with again.open_data() as data:
        expected = expected_in(replayed, stage.expected, saved[0], RECIPE, data)

    assert [expected.promised_step(at) for at in (0, 1)] == [2, 2]
    assert expected.is_of_recovery
    assert expected.was_begun(2, 0) is True
    assert expected.was_begun(6, 0) is False
    assert expected.digests_at(2, 0) == DIGESTS[2]
