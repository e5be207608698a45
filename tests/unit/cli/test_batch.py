"""A batch survives its workers, whatever they say."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec
import pytest

from harness.cli.batch import Batch
from harness.cli.standing_index import StandingIndex
from harness.cli.worker import Finished, Job, Message, Progressed, Refused, Waiting
from harness.clock import ManualClock, SystemClock
from harness.scenario import Scenario, Workload
from harness.scenario.expectations import Completes
from harness.store import RunStore

REFUSAL = """{"type": "refused", "scenario": "a-job-two", "exit_code": 64, "message": "no"}"""
SAYS_GARBAGE = "import sys; sys.stdin.readline(); print('moon', flush=True); print({refusal!r}, flush=True); sys.stdin.read()"
REFUSES = "import sys; sys.stdin.readline(); print({refusal!r}, flush=True); sys.stdin.read()"


class Silence:
    """Shows nothing."""

    def began(self, scenario: str) -> None:
        pass

    def progressed(self, message: Progressed) -> None:
        pass

    def waiting(self, message: Waiting) -> None:
        pass

    def ended(self, message: Finished | Refused) -> None:
        pass

    def stopping(self, scenarios: Sequence[str], patience_s: float, why: str) -> None:
        pass

    def ticked(self) -> None:
        pass


def index_in(directory: Path) -> StandingIndex:
    return StandingIndex(RunStore(directory, SystemClock()), SystemClock())


def job(name: str, runs_dir: Path) -> Job:
    workload = Workload(name="job", command=("no-such-program",), steps=20)
    scenario = Scenario(name=name, why="a test", workload=workload, expects=(Completes(),))
    return Job(scenario=scenario, target="local", seed=0, keep=False, root=str(runs_dir), runs_dir=str(runs_dir / "runs"))


Started = list["subprocess.Popen[bytes]"]


@pytest.fixture
def workers(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Started]]:
    """Has other programs started in place of workers, in this order; what still runs at the end is killed."""
    started: Started = []
    start = subprocess.Popen

    def replace(*codes: str) -> Started:
        left = iter(codes)

        def start_instead(_command: list[str], **options: object) -> "subprocess.Popen[bytes]":
            started.append(start([sys.executable, "-c", next(left)], **options))  # type: ignore[call-overload]
            return started[-1]

        monkeypatch.setattr(subprocess, "Popen", start_instead)
        return started

    yield replace
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            assert pipe is not None
            pipe.close()


@pytest.mark.parametrize("garbage", ["moon", "", "{}", "\\xff"])
def test_a_worker_that_says_what_is_no_message_is_lost_and_the_rest_is_done_by_another(tmp_path: Path, workers, garbage: str):
    liar = SAYS_GARBAGE.format(refusal=REFUSAL.replace("two", "one")).replace("moon", garbage)
    workers(liar, REFUSES.format(refusal=REFUSAL))
    jobs = [job("a-job-one", tmp_path), job("a-job-two", tmp_path)]
    results = Batch(jobs, workers=1, display=Silence(), clock=SystemClock(), index=index_in(tmp_path)).run()

    lost, refused = results["a-job-one"], results["a-job-two"]
    assert isinstance(lost, Refused)
    assert lost.exit_code == 70
    assert "where a message was due" in lost.message
    assert isinstance(refused, Refused)
    assert refused.message == "no"


def test_what_is_printed_in_a_worker_is_no_message_of_it(tmp_path: Path):
    code = "from harness.cli import worker; work = worker.work\n"
    code += "def loud(job, wire):\n    print('a library says hello')\n    return work(job, wire)\n"
    code += "worker.work = loud\nraise SystemExit(worker.main())"
    line = msgspec.json.encode(job("a-job-one", tmp_path)) + b"\n"

    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(line)
    process.stdin.flush()
    lines = [process.stdout.readline()]
    rest, errors = process.communicate(timeout=60)
    lines += rest.splitlines()

    assert isinstance([msgspec.json.decode(line, type=Message) for line in lines][-1], Refused)
    assert b"a library says hello" in errors


WAITS = """
import json, os, sys, time
name = json.loads(sys.stdin.readline())["scenario"]["name"]
print(json.dumps({"type": "waiting", "scenario": name, "why": "process 7 works"}), flush=True)
while not os.path.exists(SIGN):
    time.sleep(0.01)
print(json.dumps({"type": "waiting", "scenario": name}), flush=True)
print(json.dumps({"type": "refused", "scenario": name, "exit_code": 64, "message": "no"}), flush=True)
sys.stdin.read()
"""


class Clockwork(ManualClock):
    """Each look at it takes a second."""

    def monotonic_s(self) -> float:
        self.sleep(1.0)
        return super().monotonic_s()


def test_time_in_which_all_that_runs_waits_for_others_is_counted(tmp_path: Path, workers):
    sign = tmp_path / "sign"
    heard: list[str] = []

    class Signs(Silence):
        """Lets the worker go on after it was looked at while it waited."""

        def waiting(self, message: Waiting) -> None:
            heard.append(message.why)

        def ticked(self) -> None:
            if len(heard) == 1:
                heard.append("looked")
            elif heard:
                sign.touch()

    workers(WAITS.replace("SIGN", repr(str(sign))))
    batch = Batch([job("a-job-one", tmp_path)], workers=1, display=Signs(), clock=Clockwork(), index=index_in(tmp_path))
    batch.run()

    assert heard == ["process 7 works", "looked", ""]
    assert batch.waited_s >= 1.0


def test_a_run_that_waits_beside_one_that_runs_costs_no_time(tmp_path: Path, workers):
    goes_on, ends = tmp_path / "goes-on", tmp_path / "ends"

    class Signs(Silence):
        """Lets the second go on when it was looked at while it waited, and the first end after that."""

        def __init__(self) -> None:
            self.is_waiting = False

        def waiting(self, message: Waiting) -> None:
            self.is_waiting = bool(message.why)
            if not message.why:
                ends.touch()

        def ticked(self) -> None:
            if self.is_waiting:
                goes_on.touch()

    runs = WAITS.replace("SIGN", repr(str(ends))).replace('"waiting"', '"progress", "text": ""')
    workers(runs, WAITS.replace("SIGN", repr(str(goes_on))))
    batch = Batch(
        [job("a-job-one", tmp_path), job("a-job-two", tmp_path)], workers=2, display=Signs(), clock=Clockwork(), index=index_in(tmp_path)
    )
    batch.run()

    assert ends.exists()
    assert batch.waited_s == 0.0


SAYS_SO_AND_ENDS = "import sys; sys.stdin.read(); print({refusal!r}, flush=True)"
INTERRUPTED = (
    """{"type": "refused", "scenario": "a-job-one", "exit_code": 130, "message": "interrupted; everything it started was ended"}"""
)
HANGS = "import time; time.sleep(600)"


class Interrupting(Silence):
    """Interrupts this process when the first scenario began, and again when told that what runs is being ended."""

    def __init__(self, *, again: bool = False) -> None:
        self._again = again
        self.told: list[tuple[Sequence[str], float]] = []

    def began(self, scenario: str) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    def stopping(self, scenarios: Sequence[str], patience_s: float, why: str) -> None:
        self.told.append((scenarios, patience_s))
        if self._again:
            os.kill(os.getpid(), signal.SIGINT)


def interrupted_batch(tmp_path: Path, display: Interrupting, ending_s_max: float = 60.0) -> Batch:
    jobs = [job("a-job-one", tmp_path), job("a-job-two", tmp_path)]
    batch = Batch(jobs, workers=1, display=display, clock=SystemClock(), index=index_in(tmp_path), ending_s_max=ending_s_max)
    batch.run()
    return batch


def test_an_interrupt_says_at_once_what_it_ends_then_hears_it_to_the_end_and_starts_nothing_more(tmp_path: Path, workers):
    started = workers(SAYS_SO_AND_ENDS.format(refusal=INTERRUPTED))
    display = Interrupting()
    batch = interrupted_batch(tmp_path, display)

    assert display.told == [(["a-job-one"], 60.0)]
    assert (tmp_path / "index.html").exists()
    assert batch.is_interrupted
    assert batch.not_run == ["a-job-two"]
    assert batch.unended == []
    assert [process.poll() for process in started] == [0]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_worker_that_was_interrupted_before_it_began_is_no_loss(tmp_path: Path, workers):
    workers("import sys; sys.stdin.read(); sys.exit(130)")
    batch = interrupted_batch(tmp_path, Interrupting())

    lost = batch.run()["a-job-one"]
    assert isinstance(lost, Refused)
    assert (lost.exit_code, lost.message) == (130, "interrupted before it began")


def test_a_second_interrupt_waits_no_longer_and_leaves_what_runs_to_end_itself(tmp_path: Path, workers):
    started = workers(HANGS)
    batch = interrupted_batch(tmp_path, Interrupting(again=True))

    assert batch.unended == ["a-job-one"]
    assert [process.poll() for process in started] == [None]


def test_what_does_not_end_after_an_interrupt_is_killed(tmp_path: Path, workers):
    started = workers(HANGS)
    batch = interrupted_batch(tmp_path, Interrupting(), ending_s_max=0.0)

    assert batch.unended == []
    assert [process.poll() for process in started] == [-signal.SIGKILL]


def test_when_it_is_enough_what_runs_is_ended_and_nothing_more_begins(tmp_path: Path, workers):
    workers(SAYS_SO_AND_ENDS.format(refusal=INTERRUPTED))
    asked: list[Mapping[str, float]] = []
    told: list[str] = []

    class Hears(Silence):
        def stopping(self, scenarios: Sequence[str], patience_s: float, why: str) -> None:
            told.append(f"{why}: {', '.join(scenarios)}")

    def enough(lasted_s: Mapping[str, float]) -> str:
        asked.append(lasted_s)
        return "the budget is used up" if lasted_s.get("a-job-one", 0.0) > 5.0 else ""

    jobs = [job("a-job-one", tmp_path), job("a-job-two", tmp_path)]
    batch = Batch(jobs, workers=1, display=Hears(), clock=Clockwork(), index=index_in(tmp_path), enough=enough)
    results = batch.run()

    assert told == ["the budget is used up: a-job-one"]
    assert batch.ended_because == "the budget is used up"
    assert (list(results), batch.not_run) == (["a-job-one"], ["a-job-two"])
    assert all(set(lasted_s) <= {"a-job-one"} for lasted_s in asked)
    assert batch.lasted_s["a-job-one"] > 5.0


OWES_AND_HANGS = """
import sys, time
from pathlib import Path
import msgspec
from harness.cli.worker import Job
from harness.clock import SystemClock
from harness.store import RunStore
from harness.undo import RestoreProject, ResizeNodePool
job = msgspec.json.decode(sys.stdin.buffer.readline(), type=Job)
run, _ = RunStore(Path(job.runs_dir), SystemClock(), overseer=job.overseer).create("a-job-one", 0)
pool = ResizeNodePool(name="projects/our-project/locations/l/clusters/c/nodePools/p", node_count=3)
run.undo.owe("1-lose-pool@0", RestoreProject(project="our-project", actions=(pool,)))
time.sleep(600)
"""


def test_what_a_worker_owes_that_did_not_end_is_told_with_the_command_that_does_it(tmp_path: Path, workers):
    class Interrupts(Silence):
        """When the run has done what it owes."""

        def ticked(self) -> None:
            if [run for run in RunStore(tmp_path / "runs", SystemClock()).runs() if run.undo.owed()]:
                os.kill(os.getpid(), signal.SIGINT)

    workers(OWES_AND_HANGS)
    jobs = [job("a-job-one", tmp_path)]
    batch = Batch(jobs, workers=1, display=Interrupts(), clock=SystemClock(), index=index_in(tmp_path), ending_s_max=0.0)

    lost = batch.run()["a-job-one"]

    assert isinstance(lost, Refused)
    assert lost.exit_code == 70
    assert lost.message == (
        "the process that ran it had not ended it after 0 s, and was killed; owed: the undo of 1-lose-pool@0 on the project our-project; "
        "`harness clean --target gcp` with the same --config, or --project, --region and --bucket, does it"
    )
