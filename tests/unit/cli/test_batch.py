"""A batch survives its workers, whatever they say."""

import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from harness.cli.batch import Batch
from harness.cli.worker import Finished, Job, Message, Progressed, Refused
from harness.clock import SystemClock
from harness.scenario import Scenario, Workload
from harness.scenario.expectations import Completes

REFUSAL = """{"type": "refused", "scenario": "a-job-two", "exit_code": 64, "message": "no"}"""
SAYS_GARBAGE = "import sys; sys.stdin.readline(); print('moon', flush=True); print({refusal!r}, flush=True); sys.stdin.read()"
REFUSES = "import sys; sys.stdin.readline(); print({refusal!r}, flush=True); sys.stdin.read()"


class Silence:
    """Shows nothing."""

    def began(self, scenario: str) -> None:
        pass

    def progressed(self, message: Progressed) -> None:
        pass

    def ended(self, message: Finished | Refused) -> None:
        pass

    def ticked(self) -> None:
        pass


def job(name: str, runs_dir: Path) -> Job:
    workload = Workload(name="job", command=("no-such-program",), steps=20)
    scenario = Scenario(name=name, why="a test", workload=workload, expects=(Completes(),))
    return Job(scenario=scenario, target="local", seed=0, keep=False, root=str(runs_dir), runs_dir=str(runs_dir / "runs"))


@pytest.mark.parametrize("garbage", ["moon", "", "{}", "\\xff"])
def test_a_worker_that_says_what_is_no_message_is_lost_and_the_rest_is_done_by_another(tmp_path: Path, monkeypatch, garbage: str):
    liar = SAYS_GARBAGE.format(refusal=REFUSAL.replace("two", "one")).replace("moon", garbage)
    codes = iter([liar, REFUSES.format(refusal=REFUSAL)])
    start = subprocess.Popen

    def start_instead(_command: list[str], **options: object) -> "subprocess.Popen[bytes]":
        return start([sys.executable, "-c", next(codes)], **options)  # type: ignore[call-overload]

    monkeypatch.setattr(subprocess, "Popen", start_instead)
    jobs = [job("a-job-one", tmp_path), job("a-job-two", tmp_path)]
    results = Batch(jobs, workers=1, display=Silence(), clock=SystemClock()).run()

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
