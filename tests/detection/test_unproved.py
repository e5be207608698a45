"""What was not seen is not passed: the faults of chaos tools themselves, each rebuilt as a trial of this one.

A run that proves nothing is unknown, whatever the job made of it. The reports are in public trackers; each test names its own.
"""

import signal
from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from harness.capabilities import Processes
from harness.checkers import judge
from harness.clock import SystemClock
from harness.errors import BrokenHarnessError
from harness.history import AttemptExited, AttemptStarted, Cause, Event, FaultHealed, FaultObserved, History, TaskFinished, read_history
from harness.runner import Options, Run, check_run, run_scenario
from harness.scenario import Expectation, Injection, LogPatterns, Outside, Platform, Scenario, Workload
from harness.scenario.expectations import (
    BitExactResume,
    Completes,
    ExactlyOnceData,
    ExitCodes,
    Goodput,
    GraceConduct,
    IntactCheckpoints,
    NoHang,
    RanksAgree,
    ResumesFromNewestDurable,
    SameResult,
    SavesAtCadence,
    SingleWriter,
    WithinRetries,
)
from harness.scenario.faults import FailWrites, FlipByte, Kill, KillRayProcess, Pause, Terminate
from harness.scenario.triggers import AtMarker, AtStep, OnEffect
from harness.store import RunDirectory, RunStore
from harness.targets import left_behind
from harness.targets.local import LocalTarget
from harness.verdict import Outcome
from tests.detection.trials import RIGHT, SAVE_EVERY, TRIALS

Play = Callable[..., Run]

STEPS = 20
LINEAR = replace(RIGHT["linear"], steps=STEPS, environment={"STEPS": str(STEPS), "STEP_SECONDS": "0.01", "SAVE_EVERY": str(SAVE_EVERY)})
LONGER_THAN_THE_RUN_S = 300.0


def scenario(
    *injections: Injection, workload: Workload = LINEAR, expects: Sequence[Expectation] = (Completes(),), **fields: object
) -> Scenario:
    why = "no evidence, no verdict"
    return Scenario(name="a-run-that-proves-nothing", why=why, workload=workload, injections=injections, expects=tuple(expects), **fields)


def reasons(run: Run) -> dict[str, str]:
    return {finding.checker: finding.reason for finding in run.verdict.worst()}


# ---- faults that did not act -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("injections", "why"),
    [
        pytest.param([Injection(fault=Kill(), at=AtStep(step=99))], "never requested", id="a-step-that-never-comes"),
        pytest.param([Injection(fault=Kill(), at=AtMarker(event="eval"))], "never requested", id="a-marker-that-is-never-said"),
        pytest.param([Injection(fault=Kill(), at=AtStep(step=3), attempts=(1,))], "never requested", id="an-attempt-that-never-was"),
        pytest.param(
            [Injection(fault=Kill(), at=AtStep(step=2), name="kill"), Injection(fault=FlipByte(), at=OnEffect(of="kill"))],
            "could not act",
            id="a-checkpoint-that-is-not-there",
        ),
        pytest.param(
            [Injection(fault=FailWrites(), at=AtMarker(event="done"))], "its effect was never seen", id="storage-that-nobody-uses"
        ),
    ],
)
def test_a_fault_that_did_not_act_is_no_pass(play: Play, injections: list[Injection], why: str) -> None:
    """krkn-chaos/krkn #1006: what an action returned was not looked at, and counted as a success."""
    run = play(scenario(*injections))

    assert run.verdict.outcome is Outcome.UNKNOWN
    assert why in reasons(run)["landed"]


class DeafTarget(LocalTarget):
    """Accepts every signal and sends none, as a tool does that trusts what it asked for."""

    def signal(self, victim: Processes, signal_number: int, *, cause: Cause) -> tuple[int, ...]:
        return self.process_ids(victim)

    def terminate(self, victim: Processes, *, cause: Cause, message: str = "", reason: str = "") -> tuple[int, ...]:
        return self.process_ids(victim)


@pytest.mark.parametrize("fault", [Kill(), Terminate(), Pause()], ids=lambda fault: type(fault).__name__.lower())
def test_a_fault_that_was_asked_for_and_never_seen_is_no_pass(play: Play, fault: Kill | Terminate | Pause) -> None:
    """litmuschaos/litmus-go #405: a stop passed that nobody waited for. chaos-mesh/chaos-mesh #4948: running, and the targets untouched."""
    run = play(scenario(Injection(fault=fault, at=AtStep(step=3))), target=DeafTarget)

    assert run.verdict.outcome is Outcome.UNKNOWN
    assert reasons(run)["landed"].endswith("its effect was never seen")


def test_a_kill_changes_nothing_but_who_is_to_blame(play: Play) -> None:
    """alexei-led/pumba #249: a kill through the platform's own door switched its restarts off, and so tested another platform."""
    suicidal = replace(LINEAR, name="suicidal", command=("{python}", "-m", "tests.detection.jobs.kills_itself"))
    injected = play(scenario(Injection(fault=Kill(), at=AtStep(step=8)), expects=[WithinRetries(attempts_max=2)]))
    own = play(scenario(workload=suicidal, expects=[WithinRetries(attempts_max=2, own_failures_max=1)]))

    assert moves_of_the_platform(injected) == moves_of_the_platform(own)
    assert [run.verdict.measure("ended_from_outside") for run in (injected, own)] == [1, 0]
    assert injected.verdict.is_valid, injected.explain()
    assert own.verdict.is_valid, own.explain()


def test_a_kill_is_charged_to_the_retries_like_any_other_death(play: Play) -> None:
    """alexei-led/pumba #249, from the other side: the restart that is owed after a kill is the platform's, within its own limits."""
    kill = Injection(fault=Kill(), at=AtMarker(event="step", nth=3), attempts=(0, 1))
    run = play(scenario(kill, expects=[WithinRetries(attempts_max=2)], platform=Platform(max_retries=1), within_budget=False))

    assert moves_of_the_platform(run)[-1] == ("task", False, 2)


def moves_of_the_platform(run: Run) -> list[tuple[object, ...]]:
    moves: list[tuple[object, ...]] = []
    for event in run.history.events:
        if isinstance(event, AttemptStarted):
            moves.append(("start", event.attempt))
        elif isinstance(event, AttemptExited):
            moves.append(("exit", event.attempt, event.exit_code, event.signal))
        elif isinstance(event, TaskFinished):
            moves.append(("task", event.succeeded, event.attempts))
    return moves


# ---- undo ------------------------------------------------------------------------------------------------------------

STOPPED = Injection(fault=Pause(duration_s=LONGER_THAN_THE_RUN_S), at=AtStep(step=3), name="stop")


class Ending:
    """What ends a run when it has been told that the fault acts: a moment that no clock decides."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act

    def saw(self, _scenario: Scenario, events: Sequence[Event]) -> None:
        if any(isinstance(event, FaultObserved) for event in events):
            self._act()


class BreakingTarget(LocalTarget):
    """Breaks when it is told to."""

    is_broken = False

    def poll(self) -> Sequence[Event]:
        if self.is_broken:
            raise BrokenHarnessError("the platform does not answer any more")
        return super().poll()


def assert_nothing_is_left(directory: RunDirectory) -> None:
    """The fault was healed and said so, no undo is owed, no process is left, and the run is no pass."""
    owner = directory.owner()
    assert owner is not None
    events = read_history(directory.history_path).events
    assert [event.injection for event in events if isinstance(event, FaultHealed)] == ["stop"]
    assert directory.undo.owed() == []
    assert left_behind(owner.run_id) == []
    assert not check_run(directory).verdict.is_valid


@pytest.mark.parametrize(
    "more",
    [[], [Injection(fault=KillRayProcess(component="head"), at=OnEffect(of="stop"))]],
    ids=["the-deadline-passes", "another-fault-cannot-act"],
)
def test_a_fault_is_undone_when_a_run_does_not_end_well(play: Play, more: list[Injection]) -> None:
    """chaostoolkit/chaostoolkit #195: the undo was skipped when an action failed, and the fault stayed on."""
    run = play(scenario(STOPPED, *more, deadline_s=1.5))

    assert_nothing_is_left(run.directory)


class HalfTarget(LocalTarget):
    """Stops processes, and then cannot say that it did."""

    def signal(self, victim: Processes, signal_number: int, *, cause: Cause) -> tuple[int, ...]:
        pids = super().signal(victim, signal_number, cause=cause)
        if signal_number == signal.SIGSTOP:
            raise LookupError("the host does not answer any more")
        return pids


def test_a_fault_that_failed_half_way_is_undone_at_once(play: Play) -> None:
    """chaostoolkit/chaostoolkit #195: without the undo the job would stand still until the deadline."""
    run = play(scenario(STOPPED), target=HalfTarget)

    assert reasons(run).keys() == {"landed"}
    assert moves_of_the_platform(run) == [("start", 0), ("exit", 0, 0, None), ("task", True, 1)]
    assert run.directory.undo.owed() == []


def test_a_fault_is_undone_when_the_harness_breaks(store: RunStore, request: pytest.FixtureRequest) -> None:
    """chaostoolkit/chaostoolkit #195."""
    clock, opened = SystemClock(), []
    target = BreakingTarget(clock)
    ending = Ending(lambda: setattr(target, "is_broken", True))
    options = Options(root=request.config.rootpath, progress=ending, opened=opened.append)

    with pytest.raises(BrokenHarnessError, match="does not answer"):
        run_scenario(scenario(STOPPED), target=lambda: target, clock=clock, store=store, options=options)

    assert_nothing_is_left(opened[0])


def test_a_fault_is_undone_and_the_run_ends_at_once_when_it_is_interrupted(store: RunStore, request: pytest.FixtureRequest) -> None:
    """krkn-chaos/krkn #1137: an interrupt left the tool stuck. The deadline of this run is a minute away."""
    clock, opened = SystemClock(), []
    options = Options(root=request.config.rootpath, progress=Ending(lambda: signal.raise_signal(signal.SIGINT)), opened=opened.append)
    began_s = clock.monotonic_s()

    with pytest.raises(KeyboardInterrupt):
        run_scenario(scenario(STOPPED), target=lambda: LocalTarget(clock), clock=clock, store=store, options=options)

    assert clock.monotonic_s() - began_s < 30
    assert_nothing_is_left(opened[0])
    assert check_run(opened[0]).verdict.outcome is Outcome.UNKNOWN


# ---- jobs that were not seen -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["text-file", "files"])
@pytest.mark.parametrize("way", ["c", "http"])
def test_a_save_that_nobody_saw_is_unknown(play: Play, way: str, layout: str) -> None:
    """PyPI ckpt-chaos 0.1.8, tried: it passes an overwrite in place when the bytes are written by C code, or come over HTTP."""
    workload = Workload(
        name="unseen-saves",
        command=("{python}", "-m", "tests.detection.jobs.unseen_saves", way),
        steps=STEPS,
        save_every=SAVE_EVERY,
        environment={"STEPS": str(STEPS), "SAVE_EVERY": str(SAVE_EVERY)},
        layout=layout,
    )
    expects = [
        Completes(),
        IntactCheckpoints(),
        ResumesFromNewestDurable(lost_steps_max=SAVE_EVERY),
        SavesAtCadence(every=SAVE_EVERY),
        WithinRetries(attempts_max=2),
    ]
    run = play(scenario(Injection(fault=Kill(), at=AtStep(step=13)), workload=workload, expects=expects))

    assert run.verdict.outcome is Outcome.UNKNOWN, run.explain()
    assert "was recorded" in reasons(run)["recording"] or "ever recorded" in reasons(run)["recording"]


SAID_BY_THE_JOB = (
    Completes(),
    ExitCodes(),
    IntactCheckpoints(),
    ResumesFromNewestDurable(lost_steps_max=SAVE_EVERY),
    BitExactResume(),
    ExactlyOnceData(),
    GraceConduct(),
    SingleWriter(),
    NoHang(),
    Goodput(),
    SavesAtCadence(every=SAVE_EVERY),
    SameResult(),
    RanksAgree(),
)


@pytest.mark.parametrize("speaks_protocol", [True, False], ids=["supposed-to-speak", "silent"])
def test_a_job_that_says_nothing_proves_nothing(play: Play, speaks_protocol: bool) -> None:
    """It ends at once with exit code 0: what every tool that looks at exit codes alone calls a success."""
    workload = Workload(name="mute", command=("{python}", "-c", "pass"), speaks_protocol=speaks_protocol)
    run = play(scenario(workload=workload, expects=SAID_BY_THE_JOB))

    assert run.verdict.outcome is Outcome.UNKNOWN, run.explain()
    assert reasons(run).keys() >= {promise.__struct_config__.tag for promise in SAID_BY_THE_JOB}


def test_patterns_that_match_no_line_prove_nothing(play: Play) -> None:
    logs = LogPatterns(step=r"step (?P<step>\d+)", saved=r"saved (?P<step>\d+)", done=r"done")
    workload = Workload(name="mumbling", command=("{python}", "-c", "print('hm')"), speaks_protocol=False, outside=Outside(logs=logs))
    run = play(scenario(workload=workload, expects=[Completes(), Goodput(), SavesAtCadence(every=SAVE_EVERY)]))

    assert not run.verdict.is_valid
    assert {"goodput", "saves-at-cadence"} <= {finding.checker for finding in run.verdict.findings if finding.outcome is Outcome.UNKNOWN}


def test_a_word_of_the_job_that_cannot_be_read_is_a_gap(play: Play) -> None:
    program = "import os, runpy; os.write(os.open(os.environ['HARNESS_EVENTS'], os.O_WRONLY | os.O_APPEND), b'\\0\\xff not an event\\n');"
    command = ("{python}", "-c", f"{program} runpy.run_module('workloads.linear.train', run_name='__main__')")
    run = play(scenario(workload=replace(LINEAR, name="garbling", command=command)))

    assert run.verdict.outcome is Outcome.UNKNOWN
    assert "1 events were not recorded" in reasons(run)["recording"]


@pytest.mark.parametrize("name", ["counter", "linear"])
def test_a_history_that_was_cut_short_neither_proves_nor_accuses(play: Play, name: str) -> None:
    """The harness may die after any event: what it has written by then is judged as what it is, the beginning of a right run."""
    trial = next(trial for trial in TRIALS if trial.name == "when-killed-twice")
    run = play(trial.scenario(RIGHT[name]))
    golden = read_history(run.directory.golden_path)
    assert run.verdict.is_valid, run.explain()

    for length in range(1, len(run.history.events)):
        beginning = History(events=run.history.events[:length], is_torn=False)
        verdict = judge(run.scenario, beginning, golden)
        assert verdict.outcome is Outcome.UNKNOWN, (length, verdict.worst())
