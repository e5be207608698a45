"""A signal reaches the process that it is meant for, or nobody: not its successor, and not whoever has its id by now."""

import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.capabilities import Processes
from harness.clock import ManualClock
from harness.history import SignalSent
from harness.process_table import inside_id, read_row
from harness.targets.kubernetes import pod_processes
from harness.targets.kubernetes.execution import ClusterExecution
from harness.targets.kubernetes.grounds import Grounds
from harness.targets.kubernetes.pod_processes import PodProcess, send_all, states_of
from harness.targets.kubernetes.signalling import ProcessHosting
from tests.unit.targets.kubernetes.test_voices import KEY, PATIENCE_S, Room

DEAF = "import signal, sys, time; signal.signal(15, signal.SIG_IGN); sys.stdout.write('.'); sys.stdout.flush(); time.sleep(60)"
GRACE_S = 30.0
RANK = Processes(task=0, attempt=0, rank=1)


class Target(ProcessHosting):
    """The part of the target that signals, with real processes that say which rank they are."""

    def __init__(self, room: Room) -> None:
        self.room = room
        self.clock = ManualClock()
        self.notes: list[tuple[list[str], str]] = []
        self.pods: list[dict[str, Any]] = []
        inventory = SimpleNamespace(pods=lambda *_: self.pods)
        launch = SimpleNamespace(grace_s=GRACE_S)
        self._grounds = SimpleNamespace(clock=self.clock, launch=launch, inventory=inventory, t_s=self.clock.monotonic_s)
        attempts = SimpleNamespace(
            pods_of=lambda _: [SimpleNamespace(uid=pod["metadata"]["uid"], end=None) for pod in self.pods],
            note_signal=lambda uids, cause: self.notes.append((list(uids), cause)),
        )
        self._execution = SimpleNamespace(
            grounds=self._grounds, attempts=attempts, voices=room.voices, processes=room.processes, pending=[]
        )

    @property
    def grounds(self) -> Grounds:
        return cast("Grounds", self._grounds)

    @property
    def execution(self) -> ClusterExecution:
        return cast("ClusterExecution", self._execution)

    def begin(self, uid: str, rank: int = 1) -> subprocess.Popen[bytes]:
        """A process of a pod, deaf to SIGTERM, says which rank it is."""
        process = self.room.process(uid, DEAF)
        assert process.stdout is not None
        assert process.stdout.read(1) == b"."
        if not any(pod["metadata"]["uid"] == uid for pod in self.pods):
            self.pods.append({"metadata": {"name": uid, "uid": uid}})
            self.room.voices.add(uid, uid, KEY, None)
        self.room.write(uid, {"event": "boot", "rank": rank, "pid": inside_id(process.pid)})
        self.clock.advance(1.0)
        self.room.voices.listen(self.clock.monotonic_s())
        return process

    def sent(self) -> list[tuple[str, str, tuple[int, ...]]]:
        events = [event for event in self.execution.pending if isinstance(event, SignalSent)]
        return [(event.signal, event.cause, event.pids) for event in events]


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    room = Room(tmp_path)
    yield Target(room)
    room.end()


def found(target: Target, uid: str) -> PodProcess:
    (process,) = target.room.processes.of({"metadata": {"name": uid, "uid": uid}})
    return process


def test_the_end_of_a_ranks_notice_does_not_reach_its_successor(target: Target) -> None:
    old = target.begin("pod")
    assert target.terminate(RANK, cause="fault") == (old.pid,)
    old.kill()
    old.wait(PATIENCE_S)
    new = target.begin("pod")

    target.clock.advance(GRACE_S)
    target.end_notices()

    assert target.sent() == [("SIGTERM", "fault", (old.pid,))]
    assert ("grace" in [cause for _, cause in target.notes], new.poll()) == (False, None)
    assert target.signal(RANK, signal.SIGKILL, cause="fault") == (new.pid,)


def test_what_outlives_its_notice_is_killed_also_when_another_has_said_to_be_that_rank(target: Target) -> None:
    old = target.begin("old")
    target.terminate(RANK, cause="fault")
    new = target.begin("new")

    target.clock.advance(GRACE_S)
    target.end_notices()

    assert old.wait(PATIENCE_S) == -signal.SIGKILL
    assert new.poll() is None
    assert target.sent()[-1] == ("SIGKILL", "grace", (old.pid,))


def test_the_end_of_a_notice_is_laid_at_the_door_of_pods_whose_first_process_it_kills(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = target.begin("other", rank=0)
    monkeypatch.setattr(pod_processes, "inside_id", lambda pid: 2 if pid == other.pid else 1)
    first = target.room.process("pod", DEAF)
    target.pods.append({"metadata": {"name": "pod", "uid": "pod"}})
    assert first.stdout is not None
    assert first.stdout.read(1) == b"."
    target.pods = target.pods[1:]

    target.terminate(Processes(task=0, attempt=0), cause="fault")
    target.clock.advance(GRACE_S)
    target.end_notices()

    assert first.wait(PATIENCE_S) == -signal.SIGKILL
    assert target.notes == [(["pod"], "fault"), (["pod"], "grace")]
    assert other.poll() is None


def test_whoever_has_the_id_of_a_process_by_now_gets_no_signal_and_is_not_taken_for_it(target: Target) -> None:
    stranger = target.begin("pod")
    gone = replace(found(target, "pod"), row=replace(found(target, "pod").row, started=0.0))

    with pytest.raises(LookupError, match="have ended"):
        send_all([gone], signal.SIGKILL)
    assert states_of([gone]) == {stranger.pid: "gone"}
    assert stranger.poll() is None

    target.execution.voices._said[KEY, 1] = gone
    with pytest.raises(LookupError, match="have ended"):
        target.signal(RANK, signal.SIGKILL, cause="fault")
    assert (stranger.poll(), target.notes, target.sent()) == (None, [], [])


def test_a_rank_of_a_pod_that_has_ended_is_not_there(target: Target) -> None:
    process = target.begin("old")
    target.begin("new", rank=0)
    target.pods = target.pods[1:]

    with pytest.raises(LookupError, match=f"process {process.pid}, which rank 1 said it is, was of a pod that does not run any more"):
        target.signal(RANK, signal.SIGKILL, cause="fault")
    assert process.poll() is None


def test_states_are_those_of_processes_that_were_signalled(target: Target) -> None:
    process = target.begin("pod")
    (pid,) = target.signal(RANK, signal.SIGSTOP, cause="fault")

    target.clock.advance(1.0)
    while target.process_states([pid]) != {pid: "stopped"}:
        assert process.poll() is None
    assert target.process_states([1]) == {1: "gone"}  # there, and none of ours
    target.signal(RANK, signal.SIGCONT, cause="fault")


def test_a_container_that_is_started_again_counts_anew(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    old = target.begin("pod")
    monkeypatch.setattr(pod_processes, "inside_id", lambda _: 1)
    assert target.room.processes.here("pod", 1, 10.0) == old.pid
    old.kill()
    old.wait(PATIENCE_S)
    assert target.room.processes.here("pod", 1, 11.0) == old.pid  # nobody has taken its place: what it still says is its own

    new = target.begin("pod")

    assert target.room.processes.here("pod", 1, 20.0) == new.pid
    heard = target.room.processes.heard(new.pid)
    assert heard is not None
    assert heard.row == replace(heard.row, started=getattr(read_row(new.pid), "started", -1.0))
