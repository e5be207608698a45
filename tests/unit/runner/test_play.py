"""The tick loop: in which order things happen, and that every ending is a whole one."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.clock import ManualClock
from harness.errors import BrokenHarnessError, InjectionError, StoreError
from harness.history import (
    AttemptExited,
    AttemptStarted,
    BarrierReached,
    CheckpointsSeen,
    Event,
    FaultFailed,
    FaultHealed,
    FaultObserved,
    FaultRequested,
    GoldenKnown,
    HangCalled,
    HistoryWriter,
    JobEvent,
    ObservationLost,
    RunClosed,
    RunOpened,
    StepDone,
    TaskFinished,
    read_history,
)
from harness.runner.injector import Injector
from harness.runner.play import Stage, play
from harness.scenario import Injection, Platform, Scenario, Trigger, Workload, read_schedule
from harness.scenario.expectations import Completes, NoHang
from harness.scenario.faults import Fault, Kill, Pause, Terminate, TruncateFile
from harness.scenario.triggers import AfterSeconds, AtMarker, AtOperation, AtStep, OnEffect, OnLog
from harness.store import RunDirectory, RunStore
from tests.unit.runner.fake_target import FakeTarget, StoppingTarget

JOB = Workload(name="job", command=("job",), steps=10, save_every=5, layout="text-file")


def scenario(*injections: Injection, **fields: object) -> Scenario:
    made = {"name": "a-job-is-hit", "why": "a test", "workload": JOB, "expects": (Completes(),), "deadline_s": 20.0} | fields
    return Scenario(injections=injections, **made)


class Theatre:
    """A fake target on a stage of its own, and the history that it left."""

    def __init__(self, root: Path, **fields: object) -> None:
        self.clock = ManualClock(monotonic_s=1000.0)
        self.target = FakeTarget(clock=self.clock, **fields)
        self.directory: RunDirectory = RunStore(root, self.clock).create("a-job-is-hit", 3)[0]
        self.root = root

    def play(self, played: Scenario, **fields: object) -> tuple[Event, ...]:
        stage = Stage(directory=self.directory, run_id="r1", target=self.target, clock=self.clock, root=self.root, seed=3, **fields)
        try:
            play(played, stage)
        finally:
            self.events = read_history(self.directory.history_path).events
        return self.events

    @property
    def asked(self) -> list[str]:
        """What the target was asked, but for polls that brought nothing to do."""
        return [what for what in self.target.asked if what != "poll"]


@pytest.fixture
def theatre(tmp_path: Path) -> Theatre:
    return Theatre(tmp_path)


def of_type(events: tuple[Event, ...], kind: type[Event]) -> list[Event]:
    return [event for event in events if isinstance(event, kind)]


def acts(events: tuple[Event, ...]) -> list[tuple[str, str, int]]:
    """What was recorded of faults: what, of which injection, in which attempt."""
    kinds = (FaultRequested, FaultObserved, FaultHealed, FaultFailed)
    return [(type(event).__name__.removeprefix("Fault"), event.injection, event.attempt) for event in events if isinstance(event, kinds)]


# ---- the order of things ---------------------------------------------------------------------------------------------


def test_a_run_left_alone_is_recorded_from_header_to_close(theatre: Theatre):
    golden = GoldenKnown(t_s=0.0, key="k", equal=True)
    events = theatre.play(scenario(), golden=golden)
    opened = events[0]
    assert isinstance(opened, RunOpened)
    assert (opened.run_id, opened.scenario, opened.target, opened.seed) == ("r1", "a-job-is-hit", "fake", 3)
    assert events[1] == golden
    assert [event.step for event in of_type(events, StepDone)] == list(range(1, 11))
    assert isinstance(events[-1], RunClosed)
    assert (events[-1].reason, events[-1].detail) == ("finished", "")
    assert theatre.asked == ["start", "stop"]
    assert read_schedule(theatre.directory.schedule_path).injections == ()
    assert theatre.directory.manifest_path.exists()
    assert theatre.directory.fidelity_path.exists()


def test_storage_is_looked_at_after_a_save_after_an_attempt_and_at_the_end(theatre: Theatre):
    events = theatre.play(scenario(Injection(fault=Kill(), at=AtStep(step=7))))
    seen = [(event.occasion, event.attempt, event.is_whole) for event in of_type(events, CheckpointsSeen)]
    assert seen == [
        ("save-end", 0, False),
        ("attempt-end", 0, True),
        ("save-end", 1, False),
        ("attempt-end", 1, True),
        ("end", 0, True),
    ]
    kinds = [type(event) for event in events]
    assert kinds[kinds.index(AttemptExited) + 1] is CheckpointsSeen


def test_a_kill_at_a_step_is_exact_and_the_barrier_opens_only_after_it(theatre: Theatre):
    events = theatre.play(scenario(Injection(fault=Kill(), at=AtStep(step=3))))
    assert [event.step for event in of_type(events, StepDone) if event.attempt == 0] == [1, 2, 3]
    assert theatre.asked[:5] == ["start", "release step:after 1", "release step:after 2", "signal 9 attempt 0", "release step:after 3"]
    kinds = [type(event) for event in events]
    assert kinds.index(FaultRequested) > max(
        index for index, kind in enumerate(kinds[: kinds.index(FaultRequested)]) if kind is BarrierReached
    )
    assert acts(events) == [("Requested", "1-kill", 0), ("Observed", "1-kill", 0), ("Healed", "1-kill", 0)]


@pytest.mark.parametrize(
    "at",
    [
        AtMarker(event="boot"),
        AtMarker(event="step", nth=2),
        OnLog(pattern=r"from step \d"),
        AfterSeconds(seconds=0.0),
        AfterSeconds(seconds=0.2),
    ],
    ids=str,
)
def test_an_injection_acts_once_in_each_of_its_attempts_and_in_no_other(theatre: Theatre, at: Trigger):
    between = Injection(fault=Terminate(), at=AtMarker(event="boot"), attempts=(1,), name="between")
    events = theatre.play(scenario(Injection(fault=Kill(), at=at, attempts=(0, 2), name="kill"), between))
    assert [event.attempt for event in of_type(events, FaultRequested) if event.injection == "kill"] == [0, 2]
    assert [event.attempt for event in of_type(events, AttemptStarted)] == [0, 1, 2, 3]
    assert of_type(events, RunClosed)[0].reason == "finished"


def test_the_same_injection_in_every_attempt_spends_every_retry(theatre: Theatre):
    hit = Injection(fault=Kill(), at=AtMarker(event="step", nth=2), attempts=(0, 1, 2, 3))
    events = theatre.play(scenario(hit, platform=Platform(max_retries=3), within_budget=False))
    assert [event.attempt for event in of_type(events, FaultRequested)] == [0, 1, 2, 3]
    assert [event.attempt for event in of_type(events, AttemptStarted)] == [0, 1, 2, 3]
    assert of_type(events, AttemptExited)[-1].retried is False


def test_what_waits_for_an_effect_acts_before_the_platform_moves_again(theatre: Theatre):
    damage = Injection(fault=TruncateFile(keep_fraction=0.0), at=OnEffect(of="kill"), name="damage")
    events = theatre.play(scenario(Injection(fault=Kill(), at=AtStep(step=7), name="kill"), damage))
    kinds = [(type(event), getattr(event, "injection", "")) for event in events]
    exited, damaged = kinds.index((AttemptExited, "")), kinds.index((FaultRequested, "damage"))
    restarted = next(index for index, event in enumerate(events) if isinstance(event, AttemptStarted) and event.attempt == 1)
    assert exited < kinds.index((FaultObserved, "kill")) < damaged < restarted
    assert next(event for event in events if isinstance(event, JobEvent) and event.attempt == 1).t_s >= events[damaged].t_s
    assert [event.restored_step for event in events if hasattr(event, "restored_step")] == [0, 0]  # the damage was there in time
    looks = [event.occasion for event in of_type(events, CheckpointsSeen)]
    assert looks[1:3] == ["attempt-end", "after-fault"]


def test_an_effect_names_the_attempt_in_which_it_was_seen(theatre: Theatre):
    hits = (Injection(fault=Kill(), at=AtMarker(event="step", nth=1), attempts=(1,), name="kill"),)
    first = Injection(fault=Terminate(), at=AtStep(step=2), name="notice")
    damage = Injection(fault=TruncateFile(), at=OnEffect(of="kill"), name="damage")
    events = theatre.play(scenario(first, *hits, damage))
    assert ("Requested", "damage", 1) in acts(events)


def test_a_kill_at_an_operation_is_exact_and_the_job_is_let_go_only_after_it(theatre: Theatre):
    theatre.target = StoppingTarget(clock=theatre.clock)
    at = AtOperation(operation="sync", path="*", after="save.begin")
    events = theatre.play(scenario(Injection(fault=Kill(), at=at)))
    assert [event.step for event in of_type(events, StepDone) if event.attempt == 0] == [1, 2, 3, 4, 5]
    assert theatre.asked[:3] == ["start", "signal 9 attempt 0", "resume sync 1"]
    assert acts(events)[:2] == [("Requested", "1-kill", 0), ("Observed", "1-kill", 0)]


def test_a_notice_is_seen_when_the_job_says_so(theatre: Theatre):
    events = theatre.play(scenario(Injection(fault=Terminate(), at=AtStep(step=7))))
    assert acts(events)[:2] == [("Requested", "1-terminate", 0), ("Observed", "1-terminate", 0)]
    assert of_type(events, AttemptExited)[0].exit_code == 143


def test_two_faults_in_one_tick_act_in_the_order_of_the_schedule(theatre: Theatre):
    pause = Injection(fault=Pause(duration_s=0.5), at=AtStep(step=3), name="pause")
    notice = Injection(fault=Terminate(), at=AtStep(step=3), name="notice")
    theatre.play(scenario(pause, notice))
    assert theatre.asked[3:6] == ["signal 19 attempt 0", "terminate attempt 0", "release step:after 3"]


def test_a_pause_is_healed_when_its_time_is_over_and_the_job_goes_on(theatre: Theatre):
    events = theatre.play(scenario(Injection(fault=Pause(duration_s=2.0), at=AtStep(step=3))))
    requested, healed = of_type(events, FaultRequested)[0], of_type(events, FaultHealed)[0]
    assert 2.0 <= healed.t_s - requested.t_s <= 2.2
    assert healed.evidence == "SIGCONT: 1 running, 0 gone"
    assert of_type(events, RunClosed)[0].reason == "finished"
    assert theatre.directory.undo.owed() == []


@settings(max_examples=20)
@given(steps=st.lists(st.integers(1, 9), min_size=1, max_size=3, unique=True))
def test_every_kill_is_seen_and_the_job_ends_whatever_the_steps(steps: list[int], tmp_path_factory: pytest.TempPathFactory):
    theatre = Theatre(tmp_path_factory.mktemp("play"))
    hits = [Injection(fault=Kill(), at=AtMarker(event="step", nth=step), attempts=(number,)) for number, step in enumerate(sorted(steps))]
    events = theatre.play(scenario(*hits))
    known = acts(events)
    assert of_type(events, RunClosed)[0].reason == "finished"
    for number in range(len(hits)):
        mine = [what for what, name, _ in known if name == f"{number + 1}-kill"]
        assert mine in ([], ["Requested", "Observed", "Healed"])  # a later attempt may be done before its kill comes
    assert ("Requested", "1-kill", 0) in known


# ---- endings ---------------------------------------------------------------------------------------------------------

HOLD = Injection(fault=Pause(duration_s=1000.0), at=AtStep(step=3))


def raise_at(poll: int, error: BaseException) -> Callable[[int], None]:
    def raise_error(number: int) -> None:
        if number == poll:
            raise error

    return raise_error


def closed(events: tuple[Event, ...]) -> RunClosed:
    (found,) = of_type(events, RunClosed)
    assert events[-1] is found
    return found


def assert_whole(theatre: Theatre) -> None:
    """Healed before it was stopped, stopped once, nothing owed, and the last look at storage taken."""
    assert theatre.asked[-2:] == ["signal 18 attempt 0", "stop"]
    assert ("Healed", "1-pause", 0) in acts(theatre.events)
    assert theatre.directory.undo.owed() == []
    assert [event.occasion for event in of_type(theatre.events, CheckpointsSeen)][-1] == "end"


def test_a_deadline_ends_a_run_whole(theatre: Theatre):
    end = closed(theatre.play(scenario(HOLD, deadline_s=5.0)))
    assert (end.reason, end.detail) == ("deadline", "")
    assert 5.0 <= end.t_s <= 5.2
    assert end.ended_s is not None
    (healed,) = of_type(theatre.events, FaultHealed)
    assert 5.0 <= end.ended_s <= healed.t_s
    assert_whole(theatre)


def test_a_deadline_counts_from_the_start_of_the_execution_and_not_while_the_target_sets_up(tmp_path: Path):
    theatre = Theatre(tmp_path, sets_up_s=40.0)
    end = closed(theatre.play(scenario(HOLD, deadline_s=5.0)))
    assert end.reason == "deadline"
    assert 45.0 <= end.t_s <= 45.2


class SlowStartingTarget(FakeTarget):
    """Its containers take 40 s to start."""

    def startup_s(self) -> float:
        return 40.0


def test_a_deadline_does_not_count_while_the_platform_starts_containers(tmp_path: Path):
    theatre = Theatre(tmp_path)
    theatre.target = SlowStartingTarget(clock=theatre.clock)
    end = closed(theatre.play(scenario(HOLD, deadline_s=5.0)))
    assert end.reason == "deadline"
    assert 45.0 <= end.t_s <= 45.2


class SettlingTarget(FakeTarget):
    """Hears of the end of its job 40 s after its execution has ended, as by a log that comes late."""

    _ended_s = float("inf")
    _late: tuple[Event, ...] = ()

    def poll(self) -> Sequence[Event]:
        events = super().poll()
        if self._ended_s == float("inf") and any(isinstance(event, AttemptExited) for event in events):
            self._ended_s, self._late, events = self.now_s, tuple(events), []
        if not self.is_settling:
            self._late, events = (), [*self._late, *events]
        return events

    @property
    def is_settling(self) -> bool:
        return self._ended_s <= self.now_s < self._ended_s + 40.0

    def has_ended(self) -> bool:
        return self._ended_s < float("inf")

    def is_finished(self) -> bool:
        return super().is_finished() and not self._late


def test_what_is_waited_for_after_the_end_is_charged_neither_to_the_deadline_nor_to_a_silent_job(tmp_path: Path):
    theatre = Theatre(tmp_path)
    theatre.target = SettlingTarget(clock=theatre.clock)
    end = closed(theatre.play(scenario(deadline_s=5.0, expects=(Completes(), NoHang(quiet_s=3.0)))))
    assert end.reason == "finished"
    assert end.t_s > 40.0
    assert of_type(theatre.events, TaskFinished)


def test_what_has_not_ended_by_its_deadline_is_late_however_its_target_settles(tmp_path: Path):
    theatre = Theatre(tmp_path)
    theatre.target = SettlingTarget(clock=theatre.clock)
    assert closed(theatre.play(scenario(HOLD, deadline_s=5.0))).reason == "deadline"


def test_a_target_that_never_begins_breaks_the_run(tmp_path: Path):
    theatre = Theatre(tmp_path, sets_up_s=1e9)
    with pytest.raises(BrokenHarnessError, match="target fake has begun no execution for 600 s"):
        theatre.play(scenario(deadline_s=5.0))
    assert closed(theatre.events).reason == "error"
    assert theatre.asked[-1] == "stop"


def test_a_hang_ends_a_run_and_is_recorded(tmp_path: Path):
    theatre = Theatre(tmp_path, silent_from=4)
    events = theatre.play(scenario(expects=(Completes(), NoHang(quiet_s=3.0))))
    assert closed(events).reason == "hang"
    (hang,) = of_type(events, HangCalled)
    assert (hang.ranks, hang.attempt) == ((0,), 0)
    assert 3.0 <= hang.quiet_s <= 3.2
    assert theatre.asked[-1] == "stop"


def test_silence_that_is_ours_is_no_hang(theatre: Theatre):
    events = theatre.play(scenario(HOLD, deadline_s=9.0, expects=(Completes(), NoHang(quiet_s=1.0))))
    assert closed(events).reason == "deadline"


@pytest.mark.parametrize(("slow_s", "count"), [(0.5, 0), (3.0, 1)])
def test_a_fault_that_acts_for_long_is_told_for_nobody_looked_meanwhile(theatre: Theatre, monkeypatch, slow_s: float, count: int):
    signal = theatre.target.signal

    def slow(*arguments: object, **more: object) -> object:
        theatre.clock.advance(slow_s)
        return signal(*arguments, **more)

    monkeypatch.setattr(theatre.target, "signal", slow)
    lost = of_type(theatre.play(scenario(Injection(fault=Kill(), at=AtStep(step=3)))), ObservationLost)

    assert [(event.what, event.count) for event in lost] == [("moments", 1)] * count


def test_an_interrupt_ends_a_run_whole_and_is_raised_again(tmp_path: Path):
    theatre = Theatre(tmp_path, before_poll=raise_at(9, KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        theatre.play(scenario(HOLD))
    assert closed(theatre.events).reason == "interrupted"
    assert_whole(theatre)


def interruptible(theatre: Theatre) -> None:
    """Have the target say when it is told that nothing will be judged."""
    theatre.target.interrupt = lambda: theatre.target.asked.append("interrupt")  # type: ignore[attr-defined]


def test_a_target_that_would_read_for_long_is_told_of_an_interrupt_before_it_is_stopped(theatre: Theatre):
    interruptible(theatre)
    theatre.target.before_poll = raise_at(9, KeyboardInterrupt())
    with pytest.raises(KeyboardInterrupt):
        theatre.play(scenario(HOLD))
    assert theatre.asked[-2:] == ["interrupt", "stop"]


def test_an_interrupt_while_faults_are_healed_is_told_it_too(theatre: Theatre, monkeypatch: pytest.MonkeyPatch):
    interruptible(theatre)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Injector, "heal_all", interrupt)
    with pytest.raises(KeyboardInterrupt):
        theatre.play(scenario())
    assert theatre.asked[-2:] == ["interrupt", "stop"]


def test_a_run_that_is_judged_is_read_to_its_end(theatre: Theatre):
    interruptible(theatre)
    theatre.play(scenario(HOLD, deadline_s=2.0))
    assert "interrupt" not in theatre.asked


@pytest.mark.parametrize("error", [StoreError(path=Path("x"), attempted="write", reason="full"), RuntimeError("a mistake of ours")])
def test_an_error_ends_a_run_whole_and_is_raised_again(tmp_path: Path, error: Exception):
    theatre = Theatre(tmp_path, before_poll=raise_at(9, error))
    with pytest.raises(type(error)) as caught:
        theatre.play(scenario(HOLD))
    assert caught.value is error
    assert closed(theatre.events).reason == "error"
    assert closed(theatre.events).detail == f"{type(error).__name__}: {error}"
    assert_whole(theatre)


def test_a_second_interrupt_while_ending_stops_what_runs_all_the_same(theatre: Theatre, monkeypatch: pytest.MonkeyPatch):
    theatre.target.before_poll = raise_at(9, KeyboardInterrupt())

    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(FakeTarget, "process_states", interrupt)
    with pytest.raises(KeyboardInterrupt):
        theatre.play(scenario(HOLD))
    assert theatre.asked[-1] == "stop"
    assert closed(theatre.events).reason == "interrupted"


def test_a_target_that_cannot_start_ends_a_run_before_it_began(theatre: Theatre, monkeypatch: pytest.MonkeyPatch):
    def refuse(_self: FakeTarget, _launch: object) -> None:
        raise InjectionError(injection="x", fault="y", reason="z")

    monkeypatch.setattr(FakeTarget, "start", refuse)
    with pytest.raises(InjectionError):
        theatre.play(scenario())
    assert theatre.asked == ["stop"]
    assert closed(theatre.events).reason == "error"


# ---- what goes wrong with us -----------------------------------------------------------------------------------------


def test_a_fault_that_cannot_act_is_recorded_and_the_run_goes_on(tmp_path: Path):
    theatre = Theatre(tmp_path, absent="rank 0 has not said its process id")
    events = theatre.play(scenario(Injection(fault=Kill(), at=AtStep(step=3))))
    (failed,) = of_type(events, FaultFailed)
    assert (failed.injection, failed.detail) == ("1-kill", "rank 0 has not said its process id")
    assert closed(events).reason == "finished"


@pytest.fixture
def fill_disk_after(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """From the given number of appends on, the history cannot be written."""

    def fill(appends: int) -> None:
        real, count = HistoryWriter.append, [0]

        def append(self: HistoryWriter, events: object) -> None:
            count[0] += 1
            if count[0] > appends:
                raise StoreError(path=Path("history.jsonl"), attempted="append to the history", reason="No space left on device")
            real(self, events)

        monkeypatch.setattr(HistoryWriter, "append", append)

    return fill


@pytest.mark.parametrize("appends", range(11))
def test_a_full_disk_at_any_moment_stops_and_heals_everything(theatre: Theatre, fill_disk_after: Callable[[int], None], appends: int):
    fill_disk_after(appends)
    with pytest.raises(StoreError, match="append to the history"):
        theatre.play(scenario(HOLD))
    assert theatre.asked[-1] == "stop"
    assert theatre.target.state != "stopped"
    assert theatre.directory.undo.owed() == []


def test_what_breaks_while_a_run_is_ended_is_noted_on_what_broke_first(theatre: Theatre, fill_disk_after: Callable[[int], None]):
    first = RuntimeError("a mistake of ours")

    def break_disk(number: int) -> None:
        if number == 9:
            fill_disk_after(0)
            raise first

    theatre.target.before_poll = break_disk
    with pytest.raises(RuntimeError) as caught:
        theatre.play(scenario(HOLD))
    assert caught.value is first
    assert len(first.__notes__) == 1
    assert first.__notes__[0].startswith("and while ending the run: StoreError: cannot append to the history history.jsonl: No space left")
    assert theatre.asked[-2:] == ["signal 18 attempt 0", "stop"]


def test_what_cannot_be_healed_is_raised_when_all_else_is_done(theatre: Theatre, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(FakeTarget, "process_states", lambda _self, pids: dict.fromkeys(pids, "stopped"))
    with pytest.raises(Exception, match="could not be healed: process 100 still stopped after SIGCONT"):
        theatre.play(scenario(HOLD, deadline_s=5.0))
    assert closed(theatre.events).reason == "error"
    assert "could not be healed: process 100 still stopped after SIGCONT" in closed(theatre.events).detail
    assert theatre.asked[-1] == "stop"
    assert [entry.injection for entry in theatre.directory.undo.owed()] == ["1-pause@0"]


def test_an_undo_that_cannot_be_written_keeps_the_fault_from_acting(theatre: Theatre):
    theatre.directory.undo_path.mkdir()
    with pytest.raises(StoreError, match="undo journal"):
        theatre.play(scenario(HOLD))
    assert not [what for what in theatre.asked if what.startswith("signal")]
    assert closed(theatre.events).reason == "error"


@pytest.mark.parametrize("fault", [Kill(), Terminate()])
def test_progress_is_told_of_every_event_once(theatre: Theatre, fault: Fault):
    told: list[Event] = []

    class Listener:
        def saw(self, _scenario: Scenario, events: list[Event]) -> None:
            told.extend(events)

    events = theatre.play(scenario(Injection(fault=fault, at=AtStep(step=3))), progress=Listener())
    assert tuple(told) == events


def test_a_run_waits_for_its_turn_before_its_clock_starts_and_says_so(theatre: Theatre, monkeypatch: pytest.MonkeyPatch):
    waited: list[str] = []

    def take_turn(self: FakeTarget, say: Callable[[str], None]) -> float:
        say("somebody else is at it")
        self.clock.advance(50.0)
        return 50.0

    class Listener:
        def saw(self, _scenario: Scenario, _events: list[Event]) -> None: ...

        def waits(self, scenario: Scenario, why: str) -> None:
            waited.append(f"{scenario.name}: {why}")

    monkeypatch.setattr(FakeTarget, "take_turn", take_turn, raising=False)
    events = theatre.play(scenario(deadline_s=5.0), progress=Listener())

    assert [line.partition(": ")[2] for line in waited] == ["somebody else is at it"]
    assert closed(events).reason == "finished"


@pytest.mark.parametrize("what", ["scenario", "turn"])
def test_what_was_taken_before_a_run_could_begin_is_given_back(theatre: Theatre, monkeypatch: pytest.MonkeyPatch, what: str):
    full = StoreError(path=Path("x"), attempted="write", reason="No space left on device")

    def refuse(*_: object) -> None:
        raise full

    taken: list[str] = []
    monkeypatch.setattr(FakeTarget, "take_turn", refuse if what == "turn" else lambda *_: taken.append("turn"), raising=False)
    monkeypatch.setattr(RunDirectory, "write", refuse)

    stage = Stage(directory=theatre.directory, run_id="r1", target=theatre.target, clock=theatre.clock, root=theatre.root, seed=3)
    with pytest.raises(StoreError) as caught:
        play(scenario(), stage)

    assert caught.value is full
    assert theatre.asked == ["stop"]


def test_what_was_seen_before_the_end_of_a_run_failed_is_recorded_and_the_run_is_not_closed_as_finished(
    theatre: Theatre, monkeypatch: pytest.MonkeyPatch
):
    seen = ObservationLost(t_s=1.0, what="cluster", count=3, detail="a gap")
    calls: list[str] = []

    def stop(_self: FakeTarget) -> tuple[Event, ...]:
        calls.append("stop")
        if len(calls) == 1:
            raise BrokenHarnessError("the namespace is still terminating")
        return (seen,)

    monkeypatch.setattr(FakeTarget, "stop", stop)
    with pytest.raises(BrokenHarnessError, match="is still terminating"):
        theatre.play(scenario())

    assert of_type(theatre.events, ObservationLost) == [seen]
    end = closed(theatre.events)
    assert (end.reason, end.detail) == ("error", "BrokenHarnessError: the namespace is still terminating")
    assert end.ended_s is not None


def test_all_that_failed_is_told_at_the_close(theatre: Theatre, monkeypatch: pytest.MonkeyPatch):
    def stop(_self: FakeTarget) -> tuple[Event, ...]:
        raise BrokenHarnessError("the namespace is still terminating")

    monkeypatch.setattr(FakeTarget, "stop", stop)
    theatre.target.before_poll = raise_at(9, RuntimeError("a mistake of ours"))
    with pytest.raises(RuntimeError):
        theatre.play(scenario())

    told = "RuntimeError: a mistake of ours; and while ending the run: BrokenHarnessError: the namespace is still terminating"
    assert closed(theatre.events).detail == told
