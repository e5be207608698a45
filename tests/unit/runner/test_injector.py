"""Injections act one after the other, and what one did is known before the next acts."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest

from harness.clock import ManualClock
from harness.errors import BrokenHarnessError, HealError, StoreError, UndoError
from harness.history import (
    AttemptExited,
    Event,
    ExecutionStarted,
    FaultFailed,
    FaultHealed,
    FaultObserved,
    FaultRequested,
    LogLine,
    OperationReached,
    StepDone,
)
from harness.history.cluster import ConditionState, NodeSeen, PodSeen, WorkloadSeen
from harness.runner.injector import Injector
from harness.scenario import Injection, Scenario, Workload
from harness.scenario.cluster_faults import (
    BreakNode,
    CordonNode,
    DeletePods,
    DrainNode,
    EvictWorkload,
    InterruptNode,
    LimitNamespace,
    LoseNode,
    LosePool,
    LowerQuota,
    OccupyCapacity,
    RestartComponent,
)
from harness.scenario.expectations import Completes
from harness.scenario.faults import DeletePath, DrainRayNode, Kill, Pause, TruncateFile
from harness.scenario.triggers import AtOperation, AtStep, AtSubmission, OnCondition, OnEffect, OnLog
from harness.undo import MendNode, RestoreCluster, Undo, UndoJournal
from tests.unit.faults.conftest import FullTarget

WORKLOAD = Workload(name="job", command=("job",), steps=20, layout="step-directories")
STEP = StepDone(t_s=0.0, step=5)
PAUSE = Injection(fault=Pause(duration_s=1.0), at=AtStep(step=5), name="pause")
KILL = Injection(fault=Kill(), at=AtStep(step=5), name="kill")
EXIT = AttemptExited(t_s=0.0, signal=9, cause="fault")


class Stand:
    """An injector with a target in memory, and all that it recorded; ``now_s`` is the time."""

    def __init__(self, directory: Path, *injections: Injection) -> None:
        self.target = FullTarget(directory=directory / "checkpoints")
        self.target.directory.mkdir()
        self.recorded: list[Event] = []
        self.told: Callable[[Event], None] = lambda _event: None
        self.now_s = 0.0
        scenario = Scenario(name="a-job-is-hit", why="a test", workload=WORKLOAD, injections=injections, expects=(Completes(),))
        self.journal = UndoJournal(directory / "undo.jsonl")
        self.injector = Injector(
            scenario=scenario,
            target=self.target,
            journal=self.journal,
            kept_dir=directory / "kept",
            clock=ManualClock(),
            now_s=lambda: self.now_s,
            record=self._record,
        )

    def _record(self, events: Sequence[Event]) -> None:
        for event in events:
            self.told(event)
            self.recorded.append(event)

    @property
    def acts(self) -> list[tuple[type[Event], str]]:
        """What was recorded: of what kind, of which injection."""
        return [(type(event), getattr(event, "injection", "")) for event in self.recorded]

    def save(self) -> Path:
        """A checkpoint lies there."""
        path = self.target.directory / "step_00000005"
        path.mkdir()
        for name in ("a.bin", "b.bin"):
            (path / name).write_bytes(b"0123")
        (path / "manifest.json").write_text('{"step": 5, "files": {}}')
        return path


class OwnedTarget(FullTarget):
    """Somebody's, who allows one fault more."""

    allowed: int = 1

    def require_permission(self) -> None:
        self.allowed -= 1
        if self.allowed < 0:
            raise BrokenHarnessError("its owner wants no faults on it")


def test_each_fault_is_permitted_right_before_it_acts(tmp_path: Path):
    stand = Stand(tmp_path, KILL, Injection(fault=Pause(duration_s=1.0), at=OnEffect(of="kill"), name="pause"))
    stand.target = stand.injector.target = OwnedTarget(directory=stand.target.directory)

    stand.injector.tick([STEP])
    with pytest.raises(BrokenHarnessError, match="wants no faults"):
        stand.injector.tick([EXIT])

    assert stand.acts == [(FaultRequested, "kill"), (FaultObserved, "kill")]
    assert [entry.injection for entry in stand.journal.owed()] == ["kill@0"]  # of the other there is nothing to be undone


def test_damage_that_fails_half_way_was_requested(tmp_path: Path, monkeypatch):
    stand = Stand(tmp_path, KILL, Injection(fault=DeletePath(path_class="step"), at=OnEffect(of="kill"), name="damage"))
    path = stand.save()

    def remove_half(tree: Path) -> None:
        (tree / "a.bin").unlink()
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(shutil, "rmtree", remove_half)
    stand.injector.tick([STEP])
    stand.injector.tick([EXIT])

    assert not (path / "a.bin").exists()
    damage = [event for event in stand.recorded if getattr(event, "injection", "") == "damage"]
    assert [type(event) for event in damage] == [FaultRequested, FaultFailed]
    assert isinstance(damage[0], FaultRequested)
    assert damage[0].fault == "delete-path"
    assert [entry.injection for entry in stand.journal.owed()] == ["kill@0"]
    assert not any(active.name == "damage" for active in stand.injector._active)


def test_damage_that_is_interrupted_was_requested(tmp_path: Path, monkeypatch):
    stand = Stand(tmp_path, KILL, Injection(fault=DeletePath(path_class="step"), at=OnEffect(of="kill"), name="damage"))
    stand.save()

    def interrupt(_tree: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(shutil, "rmtree", interrupt)
    stand.injector.tick([STEP])
    with pytest.raises(KeyboardInterrupt):
        stand.injector.tick([EXIT])

    assert stand.acts[-1] == (FaultRequested, "damage")
    assert [entry.injection for entry in stand.journal.owed()] == ["kill@0", "damage@0"]


def test_where_nothing_was_to_be_found_nothing_was_requested(tmp_path: Path):
    stand = Stand(tmp_path, KILL, Injection(fault=TruncateFile(), at=OnEffect(of="kill"), name="damage"))

    stand.injector.tick([STEP])
    stand.injector.tick([EXIT])

    assert stand.acts == [(FaultRequested, "kill"), (FaultObserved, "kill"), (FaultFailed, "damage")]


def test_a_fault_is_recorded_and_looked_at_before_the_next_one_acts(tmp_path: Path):
    stand = Stand(tmp_path, PAUSE, KILL)
    asked: dict[str, int] = {}
    stand.told = lambda event: asked.setdefault(f"{type(event).__name__} {getattr(event, 'injection', '')}", len(stand.target.asked))

    stand.injector.tick([STEP])

    assert stand.acts == [(FaultRequested, "pause"), (FaultObserved, "pause"), (FaultRequested, "kill")]
    killed = next(index for index, what in enumerate(stand.target.asked) if what[:2] == ("signal", 9))
    assert asked["FaultRequested pause"] <= killed
    assert asked["FaultObserved pause"] <= killed
    assert asked["FaultRequested kill"] > killed


def test_two_injections_that_wait_for_one_effect_act_once_each(tmp_path: Path):
    pauses = Injection(fault=Pause(duration_s=1.0), at=AtStep(step=5), name="pause", attempts=(0, 1))
    after = [Injection(fault=Kill(), at=OnEffect(of="pause"), name=name) for name in ("one", "two")]
    stand = Stand(tmp_path, pauses, *after)

    stand.injector.tick([STEP, StepDone(t_s=0.0, step=5, attempt=1)])

    assert [name for kind, name in stand.acts if kind is FaultRequested] == ["pause", "one", "two", "pause"]


def test_what_could_not_be_healed_in_time_is_healed_at_the_end(tmp_path: Path):
    stand = Stand(tmp_path, PAUSE)
    stand.injector.tick([STEP])
    stand.target.ignores_continue = True
    stand.now_s = 1.0

    with pytest.raises(HealError):
        stand.injector.tick([])
    stand.target.ignores_continue = False
    healed, failures = stand.injector.heal_all()

    assert not failures
    assert [type(event) for event in healed] == [FaultHealed]
    assert not stand.journal.owed()


def test_what_could_not_be_recorded_is_healed_all_the_same(tmp_path: Path):
    stand = Stand(tmp_path, PAUSE)

    def refuse(_event: Event) -> None:
        raise StoreError(path=tmp_path, attempted="append to the history", reason="No space left on device")

    stand.told = refuse
    with pytest.raises(StoreError):
        stand.injector.tick([STEP])
    healed, _ = stand.injector.heal_all()

    assert [type(event) for event in healed] == [FaultObserved, FaultHealed]
    assert set(stand.target.states.values()) == {"running"}


def test_an_effect_that_will_not_come_is_a_failure_and_asked_for_no_more(tmp_path: Path):
    drain = Injection(fault=DrainRayNode(), at=AtStep(step=5), name="drain")
    stand = Stand(tmp_path, drain, Injection(fault=Kill(), at=OnEffect(of="drain"), name="kill"))

    stand.injector.tick([STEP])
    stand.target.absent = "Ray refused to drain the node"
    stand.injector.tick([])
    stand.injector.tick([])

    assert stand.acts == [(FaultRequested, "drain"), (FaultFailed, "drain")]


def test_a_line_is_searched_as_far_as_a_person_would_read(tmp_path: Path):
    stand = Stand(tmp_path, Injection(fault=Kill(), at=OnLog(pattern="needle"), name="kill"))

    stand.injector.tick([LogLine(t_s=0.0, stream="stdout", text="x" * 4096 + "needle")])
    assert stand.acts == []
    stand.injector.tick([LogLine(t_s=0.0, stream="stdout", text="x" * 4000 + "needle")])
    assert stand.acts == [(FaultRequested, "kill")]


def test_a_fault_acts_at_the_operation_that_it_names_and_at_no_other(tmp_path: Path):
    at = AtOperation(operation="rename", path="step_*", nth=2, after="save.begin", after_nth=3, when="before")
    stand = Stand(tmp_path, Injection(fault=Kill(), at=at, attempts=(1,), name="kill"))
    there = OperationReached(
        t_s=0.0, attempt=1, operation="rename", path="step_*", nth=2, after="save.begin", after_nth=3, when="before", pid=7
    )
    others = {
        "attempt": 0,
        "task": 1,
        "rank": 1,
        "operation": "sync",
        "path": "latest",
        "nth": 1,
        "after": "",
        "after_nth": 2,
        "when": "after",
    }

    for name, value in others.items():
        stand.injector.tick([msgspec.structs.replace(there, **{name: value})])
    assert stand.acts == []
    stand.injector.tick([there])
    stand.injector.tick([there])
    assert stand.acts == [(FaultRequested, "kill")]


# ---- clusters ------------------------------------------------------------------------------------------------------------

STARTED = ExecutionStarted(t_s=0.0, execution="e", tasks=1, max_retries=3, timeout_s=600.0, grace_s=10.0)
LOSS = Injection(fault=LoseNode(duration_s=5.0), at=AtStep(step=5), name="loss")


@pytest.fixture
def performed(monkeypatch: pytest.MonkeyPatch) -> list[Undo]:
    """The undos that were performed; nothing else comes of them."""
    done: list[Undo] = []

    def perform(undo: Undo, _clock: ManualClock, *, is_ours: bool) -> str:
        assert is_ours
        done.append(undo)
        return "performed"

    monkeypatch.setattr("harness.runner.injector.perform", perform)
    return done


def lost(*names: str) -> list[Event]:
    return [NodeSeen(t_s=0.0, name=name, uid=name, pool="on-demand-pool", state="Deleted") for name in names]


def admitted(*, attempt: int = 0, status: str = "True") -> WorkloadSeen:
    return WorkloadSeen(t_s=0.0, attempt=attempt, name="w", uid="w", conditions=(ConditionState(type="Admitted", status=status),))


def test_what_is_to_be_so_from_the_start_acts_when_the_execution_starts(tmp_path: Path):
    stand = Stand(tmp_path, Injection(fault=LowerQuota(to=0), at=AtSubmission(), name="quota"))
    stand.injector.tick([])
    assert stand.acts == []
    stand.injector.tick([STARTED])
    stand.injector.tick([STARTED])

    assert stand.target.done == [("set_quota", "on-demand", 0)]
    assert stand.acts == [(FaultRequested, "quota")]


def test_a_condition_hits_the_attempt_in_which_it_was_seen(tmp_path: Path):
    at = OnCondition(of="workload", condition="Admitted", nth=2)
    stand = Stand(tmp_path, Injection(fault=EvictWorkload(), at=at, name="evict"))
    stand.injector.tick([admitted(), admitted()])
    stand.injector.tick([admitted(status="False")])
    assert stand.acts == []
    stand.injector.tick([admitted(attempt=1), admitted(attempt=1)])

    assert stand.acts == [(FaultRequested, "evict")]
    assert [event.attempt for event in stand.recorded if isinstance(event, FaultRequested)] == [1]


def test_the_undo_is_durable_before_a_cluster_is_hurt(tmp_path: Path, performed):
    stand = Stand(tmp_path, LOSS)
    owed: list[object] = []
    lose = stand.target.lose_nodes

    def look(nodes: Sequence[str]) -> None:
        owed.extend(entry.undo for entry in stand.journal.owed())
        lose(nodes)

    stand.target.lose_nodes = look  # type: ignore[method-assign]
    stand.injector.tick([STEP])

    assert owed == [
        RestoreCluster(cluster="chaos-harness", uid="uid-of-cluster", actions=(MendNode(node="node-1"), MendNode(node="node-2")))
    ]
    assert not performed


def test_what_takes_a_while_to_heal_is_asked_for_until_it_is_seen(tmp_path: Path, performed):
    stand = Stand(tmp_path, LOSS)
    stand.injector.tick([STEP])
    stand.injector.tick(lost("node-1", "node-2"))
    for stand.now_s in (5.0, 6.0, 7.0):
        stand.injector.tick([])
    assert stand.acts == [(FaultRequested, "loss"), (FaultObserved, "loss")]
    assert len(stand.journal.owed()) == 1
    stand.target.whole = True
    stand.injector.tick([])

    assert stand.acts[2:] == [(FaultHealed, "loss")]
    assert not stand.journal.owed()
    assert stand.target.names().count("mend_nodes") == 1
    assert not performed


@pytest.mark.parametrize("is_due", [True, False])
def test_what_is_not_healed_when_the_run_ends_is_undone_and_waited_for(tmp_path: Path, performed, is_due):
    stand = Stand(tmp_path, LOSS)
    stand.injector.tick([STEP])
    stand.injector.tick(lost("node-1", "node-2"))
    if is_due:
        stand.now_s = 5.0
        stand.injector.tick([])
    healed, failures = stand.injector.heal_all()

    assert not failures
    assert [event.evidence for event in healed if isinstance(event, FaultHealed)] == ["performed"]
    assert performed == [
        RestoreCluster(cluster="chaos-harness", uid="uid-of-cluster", actions=(MendNode(node="node-1"), MendNode(node="node-2")))
    ]
    assert not stand.journal.owed()


def test_an_undo_that_is_not_done_stays_owed_and_keeps_no_other_from_being_done(tmp_path: Path, monkeypatch):
    def perform(undo: Undo, _clock: ManualClock, *, is_ours: bool) -> str:
        if isinstance(undo, RestoreCluster) and len(undo.actions) == 2:
            raise UndoError(attempted="restore the cluster", reason="it does not answer")
        return "performed"

    monkeypatch.setattr("harness.runner.injector.perform", perform)
    stand = Stand(tmp_path, Injection(fault=BreakNode(), at=AtSubmission(), name="break"), LOSS)
    stand.injector.tick([STARTED])
    stand.target.pods_of = lambda victim, part: (stand.target.pod(2),)  # type: ignore[method-assign]
    stand.injector.tick([STEP])
    healed, failures = stand.injector.heal_all()

    assert [(type(event), event.injection) for event in healed] == [(FaultHealed, "loss")]  # type: ignore[attr-defined]
    assert [str(failure) for failure in failures] == [
        "injection 'break' could not be healed: cannot restore the cluster: it does not answer; it stays owed; run `harness clean`"
    ]
    assert [entry.injection for entry in stand.journal.owed()] == ["break@0"]


def test_what_acted_in_part_is_undone_at_once(tmp_path: Path, performed):
    stand = Stand(tmp_path, LOSS)
    stand.target.refuses["lose_nodes"] = "node-2 could not be killed"
    stand.injector.tick([STEP])

    assert stand.acts == [(FaultRequested, "loss"), (FaultFailed, "loss")]
    assert len(performed) == 1
    assert not stand.journal.owed()
    assert stand.injector.heal_all() == ([], [])


def test_what_could_not_be_mended_once_is_undone_at_the_end(tmp_path: Path, performed):
    """A command in a node took too long, once: the run is broken, and the node is not left so."""
    stand = Stand(tmp_path, LOSS)
    stand.injector.tick([STEP])
    stand.injector.tick(lost("node-1", "node-2"))
    stand.now_s = 5.0
    stand.injector.tick([])
    stand.target.refuses["are_whole"] = "docker exec did not end within 60 s"
    with pytest.raises(HealError, match="did not end within 60 s"):
        stand.injector.tick([])
    healed, failures = stand.injector.heal_all()

    assert not failures
    assert [event.evidence for event in healed if isinstance(event, FaultHealed)] == ["performed"]
    assert len(performed) == 1
    assert not stand.journal.owed()


def test_a_process_that_stays_stopped_is_not_called_healed_by_an_undo_that_does_not_look(tmp_path: Path, performed):
    stand = Stand(tmp_path, PAUSE)
    stand.injector.tick([STEP])
    stand.target.ignores_continue = True
    healed, failures = stand.injector.heal_all()

    assert not healed
    assert [type(failure) for failure in failures] == [HealError]
    assert len(performed) == 1
    assert [entry.injection for entry in stand.journal.owed()] == ["pause@0"]


def test_what_was_interrupted_while_it_acted_is_undone_at_the_end(tmp_path: Path, performed):
    stand = Stand(tmp_path, LOSS)

    def lose(_nodes: Sequence[str]) -> None:
        raise StoreError(path=tmp_path, attempted="delete node-1", reason="no answer")

    stand.target.lose_nodes = lose  # type: ignore[method-assign]
    with pytest.raises(StoreError):
        stand.injector.tick([STEP])
    healed, failures = stand.injector.heal_all()

    assert [type(event) for event in healed] == [FaultHealed]
    assert not failures
    assert len(performed) == 1
    assert "mend_nodes" not in stand.target.names()
    assert not stand.journal.owed()


def test_what_could_not_be_taken_back_at_once_is_undone_at_the_end(tmp_path: Path, monkeypatch):
    answers: list[object] = [UndoError(attempted="restore the cluster", reason="it does not answer"), "performed"]

    def perform(_undo: Undo, _clock: ManualClock, *, is_ours: bool) -> str:
        answer = answers.pop(0)
        if isinstance(answer, UndoError):
            raise answer
        return str(answer)

    monkeypatch.setattr("harness.runner.injector.perform", perform)
    stand = Stand(tmp_path, LOSS)
    stand.target.refuses["lose_nodes"] = "node-2 could not be killed"
    with pytest.raises(HealError, match="it does not answer"):
        stand.injector.tick([STEP])

    assert stand.acts == [(FaultRequested, "loss"), (FaultFailed, "loss")]
    healed, failures = stand.injector.heal_all()
    assert ([type(event) for event in healed], failures, answers) == ([FaultHealed], [], [])
    assert not stand.journal.owed()


# ---- faults on one thing -----------------------------------------------------------------------------------------------

FIRST = Injection(fault=LowerQuota(to=8, duration_s=10.0), at=AtSubmission(), name="first")


def refusals(stand: Stand) -> list[str]:
    return [event.detail for event in stand.recorded if isinstance(event, FaultFailed)]


def test_a_fault_on_what_another_holds_is_refused_and_each_thing_is_as_before(tmp_path: Path, performed):
    second = Injection(fault=LowerQuota(to=0, duration_s=20.0), at=AtStep(step=5), name="second")
    stand = Stand(tmp_path, FIRST, second)
    stand.injector.tick([STARTED])
    stand.injector.tick([STEP])

    (refusal,) = refusals(stand)
    assert refusal.startswith(
        "the quota of google.com/tpu of flavor on-demand in queue queue is in the hands of 'first' until that is healed"
    )
    stand.now_s = 10.0
    stand.target.counted["on-demand"] = 8
    stand.injector.tick([])
    stand.target.counted["on-demand"] = 16
    stand.now_s = 11.0
    stand.injector.tick([])
    assert stand.target.quotas["on-demand"] == 16
    assert not stand.journal.owed()


def test_a_fault_may_follow_another_on_the_same_thing(tmp_path: Path, performed):
    second = Injection(fault=LowerQuota(to=0, duration_s=20.0), at=AtStep(step=5), name="second")
    stand = Stand(tmp_path, FIRST, second)
    stand.target.counted["on-demand"] = 8
    stand.injector.tick([STARTED])
    stand.target.counted["on-demand"] = 16
    stand.now_s = 10.0
    stand.injector.tick([])
    stand.injector.tick([STEP])

    assert refusals(stand) == []
    assert stand.target.quotas["on-demand"] == 0


@pytest.mark.parametrize(
    ("one", "other", "is_refused"),
    [
        (CordonNode(), DrainNode(), True),
        (BreakNode(), LoseNode(), True),
        (LoseNode(), LosePool(pool="dws-pool"), False),
        (CordonNode(), BreakNode(), False),
        (LimitNamespace(), LimitNamespace(chips=4), True),
        (EvictWorkload(), EvictWorkload(), True),
        (OccupyCapacity(), OccupyCapacity(flavor="dws"), False),
        (RestartComponent(), RestartComponent(component="kueue"), False),
    ],
    ids=lambda value: getattr(value, "pool", None) or (type(value).__name__ if not isinstance(value, bool) else str(value)),
)
def test_what_two_faults_may_not_share_is_what_they_put_back(tmp_path: Path, performed, one, other, is_refused):
    stand = Stand(tmp_path, Injection(fault=one, at=AtStep(step=5), name="one"), Injection(fault=other, at=AtStep(step=6), name="other"))
    stand.injector.tick([STEP])
    stand.injector.tick([StepDone(t_s=0.0, step=6)])

    assert bool(refusals(stand)) is is_refused
    assert ((FaultRequested, "other") in stand.acts) is not is_refused


def test_a_fault_with_stages_goes_on_until_it_is_seen(tmp_path: Path, performed):
    fault = InterruptNode(notice_s=3.0, duration_s=10.0)
    stand = Stand(tmp_path, Injection(fault=fault, at=AtStep(step=5), name="gke"))
    gone = [PodSeen(t_s=0.0, name=f"host-{rank}", uid=f"uid-{rank}", rank=rank, phase="Deleted") for rank in range(2)]
    stand.injector.tick([STEP])
    stand.now_s = 3.0
    stand.injector.tick([])
    stand.injector.tick(gone)
    assert stand.target.names()[-1] == "lose_nodes"
    stand.now_s = 4.0
    stand.injector.tick(lost("node-1", "node-2"))
    assert stand.acts == [(FaultRequested, "gke"), (FaultObserved, "gke")]
    stand.now_s = 12.9
    stand.injector.tick([])
    assert "mend_nodes" not in stand.target.names()
    stand.now_s = 13.0
    stand.injector.tick([])

    assert "mend_nodes" in stand.target.names()


def test_an_effect_on_a_pod_lets_the_next_fault_act(tmp_path: Path):
    stand = Stand(
        tmp_path,
        Injection(fault=DeletePods(), at=AtStep(step=5), name="delete"),
        Injection(fault=EvictWorkload(), at=OnEffect(of="delete"), name="evict"),
    )
    stand.injector.tick([STEP])
    stand.injector.tick([PodSeen(t_s=0.0, name=f"host-{rank}", uid=f"uid-{rank}", rank=rank, phase="Deleted") for rank in range(2)])

    assert stand.acts == [(FaultRequested, "delete"), (FaultObserved, "delete"), (FaultRequested, "evict")]
