"""Pods are heard by their files, their logs and at the barrier, where the process that asks says which pod it is of."""

import json
import os
import selectors
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.capabilities import Launch
from harness.history import BarrierReached, LogLine, ObservationLost, StepDone
from harness.process_table import inside_id
from harness.protocol.attempt_key import AttemptKey
from harness.targets.kubernetes.api import ApiError
from harness.targets.kubernetes.pod_log import PodLog
from harness.targets.kubernetes.pod_processes import PodProcesses, pod_uid_of, send_all, states_of
from harness.targets.kubernetes.voices import Voices
from tests.unit.targets.kubernetes.fake_api import FakeApi

KEY = AttemptKey(0, 0)
PATIENCE_S = 10.0


class Room:
    """Voices of a run, and pods that are files and processes of this machine."""

    def __init__(self, directory: Path, **launch: Any) -> None:
        self.directory = directory
        self.selector = selectors.DefaultSelector()
        fields = {"environment": {}, "checkpoint_dir": directory, "logs_dir": directory, "directory": directory, **launch}
        self.launch = Launch(run_id="run-voices", job="job", command=("job",), **fields)
        self.processes = PodProcesses(self.launch.run_id)
        self.voices = Voices(self.launch, directory, processes=self.processes, selector=self.selector)
        self.started: list[subprocess.Popen[bytes]] = []

    def write(self, pod: str, *events: dict[str, Any]) -> None:
        with (self.directory / f"{pod}.jsonl").open("a") as file:
            file.writelines(json.dumps(event) + "\n" for event in events)

    def process(self, uid: str, code: str) -> subprocess.Popen[bytes]:
        """A process that has the environment of a pod's."""
        environment = {**os.environ, "HARNESS_RUN_ID": self.launch.run_id, "POD_UID": uid}
        self.started.append(subprocess.Popen([sys.executable, "-S", "-c", code], env=environment, stdout=subprocess.PIPE))
        return self.started[-1]

    def end(self) -> None:
        for process in self.started:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()
        self.voices.close(0.0)
        self.selector.close()


@pytest.fixture
def room(tmp_path: Path) -> Iterator[Room]:
    room = Room(tmp_path, armed=("step:after",))
    yield room
    room.end()


def step(number: int, **fields: Any) -> dict[str, Any]:
    return {"event": "step", "step": number, "rank": 0, **fields}


def test_what_pods_write_is_told_by_time_each_under_its_own_attempt(room):
    room.voices.add("uid-a", "a", AttemptKey(0, 0), None)
    room.voices.add("uid-b", "b", AttemptKey(0, 1), None)
    room.write("a", step(1, t=2.0), step(2, t=4.0))
    room.write("b", step(3, t=3.0))

    said = room.voices.listen(9.0)

    assert [(event.t_s, event.attempt, event.step) for event in said if isinstance(event, StepDone)] == [
        (2.0, 0, 1),
        (3.0, 1, 3),
        (4.0, 0, 2),
    ]


def test_a_pod_that_has_written_something_has_spoken(room):
    assert not room.voices.has_spoken("a")
    room.write("a")
    assert not room.voices.has_spoken("a")
    room.write("a", step(1))
    assert room.voices.has_spoken("a")


def test_a_pod_that_was_given_up_is_heard_on(room):
    room.voices.add("uid-a", "a", KEY, None)
    room.voices.listen(1.0)
    assert room.voices.has_said_all("uid-a")

    room.write("a", step(7))

    assert [event.step for event in room.voices.listen(2.0)] == [7]


ASK = """
import socket, sys
with socket.socket(socket.AF_UNIX) as barrier:
    barrier.connect(sys.argv[1] if len(sys.argv) > 1 else {path!r})
    barrier.sendall(b'{{"event": "step", "step": 5, "rank": 1, "pid": 1, "when": "after"}}\\n')
    barrier.recv(1)
print("went on")
"""


def until(room: Room, kind: type, now_s: float = 5.0) -> Any:
    for _ in range(int(PATIENCE_S / 0.02)):
        room.selector.select(0.02)
        room.voices.receive(now_s)
        found = [event for event in room.voices.listen(now_s) if isinstance(event, kind)]
        if found:
            return found[0]
    raise AssertionError(f"no {kind.__name__} in {PATIENCE_S} s")


def test_who_asks_at_the_barrier_is_known_by_the_process_that_asks(room):
    asked: list[str] = []

    def key_of(uid: str) -> AttemptKey | None:
        asked.append(uid)
        return AttemptKey(0, 3) if len(asked) > 2 else None  # the pod is not known at first

    path = room.directory / "b"
    room.voices.open_barrier(path, key_of)
    process = room.process("uid-of-this-pod", ASK.format(path=str(path)))

    reached = until(room, BarrierReached)

    assert set(asked) == {"uid-of-this-pod"}
    assert (reached.task, reached.attempt, reached.rank, reached.step) == (0, 3, 1, 5)
    assert process.poll() is None

    room.voices.release(reached)
    assert process.stdout is not None
    assert process.stdout.read() == b"went on\n"


def test_one_that_dies_before_it_is_known_wakes_nobody_for_ever(room):
    path = room.directory / "b"
    room.voices.open_barrier(path, lambda _uid: None)
    process = room.process("uid", ASK.format(path=str(path)))
    room.selector.select(PATIENCE_S)
    room.voices.receive(1.0)
    process.kill()
    process.wait()

    for _ in range(int(PATIENCE_S / 0.02)):  # what it has said and its end may come one after the other
        room.voices.receive(2.0)
        if room.selector.select(0.02) == []:
            return
    pytest.fail("it is never let go")


def test_a_log_is_followed_to_its_end_and_read_by_patterns(tmp_path):
    api = FakeApi()
    api.logs["a"] = b"loading\nresumed from step 4\nlast words"
    room = Room(tmp_path, log_patterns={"resumed": r"resumed from step (?P<step>\d+)"})
    room.voices.add("uid-a", "a", KEY, PodLog(api, pod="a", namespace="n", container="host"))

    events = []
    while not room.voices.has_said_all("uid-a"):
        room.selector.select(1.0)
        events += room.voices.listen(1.0)
    events += room.voices.close(2.0)
    room.end()

    assert [event.text for event in events if isinstance(event, LogLine)] == ["loading", "resumed from step 4", "last words"]
    assert [event.step for event in events if event.__class__.__name__ == "Restored"] == [4]
    assert not [event for event in events if isinstance(event, ObservationLost)]


class BreakingApi(FakeApi):
    """The connection breaks after some bytes, and the log begins anew each time it is asked for."""

    def __init__(self, text: bytes, breaks_after: list[int]) -> None:
        super().__init__()
        self.text, self.breaks_after = text, breaks_after

    def log(self, pod: str, namespace: str, container: str, *, follows: bool = True) -> Any:
        import urllib3

        text, breaks_after = self.text, self.breaks_after

        class Stream:
            def __init__(self) -> None:
                self.left = breaks_after.pop(0) if breaks_after else None
                self.offset = 0

            def read1(self, size: int) -> bytes:
                if self.left is not None and self.offset >= self.left:
                    raise urllib3.exceptions.ProtocolError("broken")
                data = text[self.offset : self.offset + 3]
                self.offset += len(data)
                return data

            def shutdown(self) -> None:
                pass

            def close(self) -> None:
                pass

        return Stream()


def test_a_broken_log_goes_on_where_it_was(monkeypatch):
    monkeypatch.setattr("harness.targets.kubernetes.pod_log.RETRY_S", 0.01)
    log = PodLog(BreakingApi(b"one\ntwo\nthree\n", [6, 3]), pod="a", namespace="n", container="host")
    log.start()
    log.join(PATIENCE_S)

    assert b"".join(log.source.read(1000)) == b"one\ntwo\nthree\n"
    log.close()


def test_a_log_that_was_rotated_meanwhile_is_read_from_its_beginning_and_that_is_told(room, monkeypatch):
    monkeypatch.setattr("harness.targets.kubernetes.pod_log.RETRY_S", 0.01)
    api = BreakingApi(b"one\ntwo\nthree\n", [6])
    opened = api.log
    texts = [b"one\ntwo\nthree\n", b"four\nfive\n"]

    def log(*place: Any, **more: Any) -> Any:
        api.text = texts.pop(0)
        return opened(*place, **more)

    monkeypatch.setattr(api, "log", log)
    room.voices.add("uid-a", "a", KEY, PodLog(api, pod="a", namespace="n", container="host"))
    events: list[Any] = []
    while not room.voices.has_said_all("uid-a"):
        room.selector.select(1.0)
        events += room.voices.listen(1.0)
    events += room.voices.close(2.0)

    assert "".join(event.text for event in events if isinstance(event, LogLine)) == "one" + "twfour" + "five"
    (lost,) = [event for event in events if isinstance(event, ObservationLost)]
    assert (lost.what, lost.count) == ("logs", 1)
    assert "log of a was rotated" in lost.detail


class CutOffApi(FakeApi):
    """The log breaks after what it has said, and cannot be opened again, for this reason."""

    def __init__(self, again: Exception) -> None:
        super().__init__()
        self.again, self.asked = again, 0

    def log(self, pod: str, namespace: str, container: str, *, follows: bool = True) -> Any:
        self.asked += 1
        if self.asked > 1:
            raise self.again
        return BreakingApi(b"one\ntwo\n", [4]).log(pod, namespace, container)


def refused(status: int) -> ApiError:
    return ApiError(attempted="read the log of", what="pods/a", status=status, reason="as a test wants it")


def unread(room: Room, again: Exception, *, ended: set[str], is_closed: bool) -> list[str]:
    """What is told of a log that breaks, when the run is over."""
    api = CutOffApi(again)
    log = PodLog(api, pod="a", namespace="n", container="host")
    room.voices.add("uid-a", "a", KEY, log)
    events: list[Any] = []
    for _ in range(int(PATIENCE_S / 0.02)):
        room.selector.select(0.02)
        events += room.voices.listen(1.0)
        if api.asked > 1 and room.voices.has_said_all("uid-a") == is_closed:
            break
    events += room.voices.close(2.0, ended=ended)
    assert next(event.text for event in events if isinstance(event, LogLine)) == "one"
    assert {event.what for event in events if isinstance(event, ObservationLost)} <= {"logs"}
    return [event.detail for event in events if isinstance(event, ObservationLost)]


@pytest.fixture
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harness.targets.kubernetes.pod_log.RETRY_S", 0.01)


@pytest.mark.usefixtures("_soon")
def test_a_log_that_never_comes_to_its_end_is_told_as_lost_once_its_pod_has_ended(room):
    told = unread(room, refused(500), ended={"uid-a"}, is_closed=False)

    assert told == ["the log of a was not read to its end: it had not come to its end when we stopped reading"]


@pytest.mark.usefixtures("_soon")
def test_a_log_whose_pod_is_gone_before_it_was_read_is_told_as_lost(room):
    told = unread(room, refused(404), ended={"uid-a"}, is_closed=True)

    assert told == ["the log of a was not read to its end: its pod was gone first"]


@pytest.mark.usefixtures("_soon")
@pytest.mark.parametrize(("status", "is_closed"), [(500, False), (404, True)])
def test_a_log_that_we_cut_off_with_its_pod_is_not_lost(room, status, is_closed):
    assert unread(room, refused(status), ended=set(), is_closed=is_closed) == []


@pytest.mark.usefixtures("_soon")
def test_a_log_whose_thread_fails_is_told_as_lost(room):
    assert unread(room, KeyError("items"), ended=set(), is_closed=True) == ["the log of a was not read to its end: KeyError: 'items'"]


def test_a_log_that_nobody_reads_can_be_closed():
    api = FakeApi()
    api.logs["a"] = b"x" * 1_000_000
    log = PodLog(api, pod="a", namespace="n", container="host")
    log.start()

    log.close()

    log.join(PATIENCE_S)
    assert not log.is_alive()


# ---- processes -------------------------------------------------------------------------------------------------------


def pod_object(uid: str) -> dict[str, Any]:
    return {"metadata": {"name": "a", "uid": uid}}


def test_processes_of_a_pod_are_known_by_their_environment(room):
    process = room.process("uid-a", "import time; time.sleep(60)")

    (found,) = room.processes.of(pod_object("uid-a"))
    assert (found.pid, found.pod_uid, found.is_first) == (process.pid, "uid-a", False)
    assert room.processes.of(pod_object("uid-b")) == ()
    assert [row.pid for row in room.processes.left()] == [process.pid]
    assert pod_uid_of(process.pid) == "uid-a"
    assert states_of([found]) == {process.pid: "running"}
    assert send_all([found], 9) == (found,)
    process.wait()
    assert states_of([found]) == {process.pid: "gone"}
    with pytest.raises(LookupError, match="have ended"):
        send_all([found], 9)


def test_a_pod_whose_first_process_is_not_seen_here_cannot_be_signalled(room):
    room.process("uid-a", "import time; time.sleep(60)")  # no namespace of its own: it is nobody's first

    with pytest.raises(LookupError, match="no process of a runs, as far as this machine sees"):
        room.processes.firsts_of([pod_object("uid-a")])


def test_the_id_that_a_pod_says_is_looked_up_in_that_pod(room):
    process = room.process("uid-a", "import time; time.sleep(60)")

    assert room.processes.here("uid-a", inside_id(process.pid), 1.0) == process.pid
    assert room.processes.here("uid-b", inside_id(process.pid), 1.0) == 0
    assert room.processes.here("uid-a", 0, 1.0) == 0


def test_a_pod_that_names_ids_that_are_not_there_does_not_keep_us_busy(room, monkeypatch):
    looks: list[float] = []
    monkeypatch.setattr(
        "harness.targets.kubernetes.pod_processes.read_table",
        lambda: looks.append(1.0) or __import__("harness.process_table").process_table.ProcessTable(()),
    )

    for number in range(100):
        room.processes.here("uid-a", 1_000_000 + number, 1.0)

    assert len(looks) == 8


def test_a_rank_is_the_process_that_it_last_said_it_is(room):
    process = room.process("uid-a", "import time; time.sleep(60)")
    room.voices.add("uid-a", "a", KEY, None)
    room.write("a", {"event": "boot", "rank": 2, "pid": inside_id(process.pid)})

    with pytest.raises(LookupError, match="rank 2 of task 0 attempt 0 has not said"):
        room.voices.process_of(KEY, 2)
    room.voices.listen(1.0)

    assert room.voices.process_of(KEY, 2).pid == process.pid
