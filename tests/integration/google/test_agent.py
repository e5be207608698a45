"""The agent around a real job: it holds it, signals it, tells of it, and ends as it did."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.clock import SystemClock
from harness.targets.gcp.agent_archive import ARCHIVE_NAME, build_archive
from harness.targets.gcp.reports import Report, encode_order, number_of, read_report_file

ROOT = Path(__file__).resolve().parents[3]
DEADLINE_S = 60.0
CLOCK = SystemClock()

PRELUDE = """
import os, signal, subprocess, sys, time
from workloads.protocol import emit
"""


class Container:
    """A container with the agent in it: its mounted directory, and the process."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.archive = home / ARCHIVE_NAME
        home.mkdir(parents=True, exist_ok=True)
        self.archive.write_bytes(build_archive())
        self.process: subprocess.Popen[str] | None = None
        self.orders = 0

    def start(self, code: str, *options: str, home: Path | None = None) -> "Container":
        command = [sys.executable, "-I", str(self.archive), "--home", str(home or self.home), "--said-every-s", "0.02"]
        command += ["--look-every-s", "0.01", *options, "--", sys.executable, "-S", "-c", PRELUDE + code]
        environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT), "CLOUD_RUN_TASK_INDEX": "2", "CLOUD_RUN_TASK_ATTEMPT": "1"}
        self.process = subprocess.Popen(
            command, cwd=ROOT, env={**environment, "CLOUD_RUN_JOB": "run-owned"}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        return self

    def order(self, do: str, **fields: Any) -> int:
        self.orders += 1
        path = self.home / "orders" / "2-1" / f"{self.orders:08d}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(encode_order(self.orders, do=do, **fields))
        return self.orders

    def said(self) -> list[Report]:
        found: list[Report] = []
        for path in sorted((self.home / "said" / "2-1").glob("*.jsonl")):
            file = read_report_file(path.read_bytes(), number_of(path.name))
            found += file.reports if file is not None else ()
        return found

    def until(self, kind: str, matches: Callable[[Report], bool] = lambda _: True) -> Report:
        deadline_s = CLOCK.monotonic_s() + DEADLINE_S
        while True:
            found = [report for report in self.said() if report.kind == kind and matches(report)]
            if found:
                return found[0]
            assert CLOCK.monotonic_s() < deadline_s, f"no {kind} in {DEADLINE_S} s: {self.said()}"
            CLOCK.sleep(0.01)

    def begin(self) -> Report:
        self.until("hello")
        self.order("start")
        return self.until("begun")

    def end(self) -> tuple[int, str, str]:
        assert self.process is not None
        out, err = self.process.communicate(timeout=DEADLINE_S)
        return self.process.returncode, out, err

    def events(self) -> list[dict[str, Any]]:
        return [json.loads(report.line) for report in self.said() if report.kind == "event"]


@pytest.fixture
def container(tmp_path: Path) -> Iterator[Container]:
    made = Container(tmp_path / "harness")
    yield made
    if made.process is not None and made.process.poll() is None:
        made.process.kill()
        made.process.communicate()


WAITS = "signal.signal(signal.SIGTERM, lambda *_: (emit('sigterm'), sys.exit(143)))\nemit('boot')\ntime.sleep(60)"


def test_the_job_runs_when_it_is_ordered_and_its_exit_code_is_the_containers(container: Container):
    container.start("print('out'); print(os.environ['CLOUD_RUN_JOB']); emit('step', step=1); sys.exit(7)", "--job", "counter")
    container.until("hello")
    assert not [report for report in container.said() if report.kind == "begun"]
    number = container.order("start")

    assert container.end()[:2] == (7, "out\ncounter\n")
    begun, ended = container.until("begun"), container.until("exit")
    assert begun.order == number
    assert (ended.code, ended.signal, ended.container) == (7, None, 7)
    assert [event["event"] for event in container.events()] == ["step"]


def test_it_starts_the_job_by_itself_when_nobody_orders_it(container: Container):
    container.start("sys.exit(0)", "--start-within-s", "0.1")

    assert container.end()[0] == 0
    assert container.until("begun").order == 0


def test_a_job_that_dies_of_a_signal_ends_the_container_as_a_shell_would(container: Container):
    container.start("os.kill(os.getpid(), signal.SIGSEGV)")
    container.begin()

    assert container.end()[0] == 139
    assert container.until("exit").signal == signal.SIGSEGV


@pytest.mark.parametrize(("program", "code"), [("/no/such/program", 127), ("/etc/passwd", 126)])
def test_a_program_that_cannot_be_started_is_told(container: Container, program: str, code: int):
    command = [sys.executable, "-I", str(container.archive), "--start-within-s", "0", "--", program]
    ended = subprocess.run(command, env={"PATH": os.environ["PATH"]}, capture_output=True, text=True, timeout=DEADLINE_S)

    assert ended.returncode == code
    assert program in ended.stderr
    said = b"".join(path.read_bytes() for path in (container.home / "said" / "0-0").iterdir())
    assert b"unstartable" in said


def test_the_platforms_sigterm_is_passed_on_to_the_job(container: Container):
    container.start(WAITS)
    begun = container.begin()
    container.until("event")
    assert container.process is not None
    container.process.send_signal(signal.SIGTERM)

    assert container.end()[0] == 143
    received = container.until("received")
    assert (received.signal, received.pids) == (signal.SIGTERM, (begun.pid,))
    assert [event["event"] for event in container.events()] == ["boot", "sigterm"]


def test_the_platforms_sigterm_before_the_start_ends_it_without_the_job(container: Container):
    container.start("print('never')")
    container.until("hello")
    assert container.process is not None
    container.process.send_signal(signal.SIGTERM)

    assert container.end()[:2] == (143, "")
    assert not container.until("exit").began


def test_a_notice_is_sigterm_and_then_sigkill_to_all_when_the_grace_is_over(container: Container):
    code = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\nchild = subprocess.Popen(['sleep', '60'])\nemit('boot')\ntime.sleep(60)"
    container.start(code)
    container.begin()
    container.until("event")
    container.order("notice", grace_s=0.2, cause="fault")

    assert container.end()[0] == 137
    sent = [(report.signal, report.cause, len(report.pids)) for report in container.said() if report.kind == "sent"]
    assert sent == [(signal.SIGTERM, "fault", 1), (signal.SIGKILL, "grace", 2)]
    assert container.until("exit").signal == signal.SIGKILL


def test_a_grace_can_be_ended_before_its_time_and_only_where_one_runs(container: Container):
    container.start("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nemit('boot')\ntime.sleep(60)")
    container.begin()
    container.until("event")
    too_soon = container.order("end-grace")
    assert container.until("refused").order == too_soon
    container.order("notice", grace_s=3600, cause="fault")
    container.until("sent")
    container.order("end-grace")

    assert container.end()[0] == 137


def test_what_is_stopped_is_seen_to_stop_and_to_go_on(container: Container):
    container.start(WAITS)
    begun = container.begin()
    container.until("event")
    container.order("signal", signal=int(signal.SIGSTOP), cause="fault")
    stopped = container.until("sent")
    container.order("signal", signal=int(signal.SIGCONT), cause="fault")
    going = container.until("sent", lambda report: report.signal == signal.SIGCONT)
    container.order("signal", signal=int(signal.SIGTERM), cause="fault")

    assert container.end()[0] == 143
    assert stopped.states == {str(begun.pid): "stopped"}
    assert going.states == {str(begun.pid): "running"}


def test_what_is_stopped_and_forgotten_goes_on_by_itself(container: Container):
    container.start("emit('boot')\ntime.sleep(0.5)", "--pause-s", "0.1")
    container.begin()
    container.until("event")
    container.order("signal", signal=int(signal.SIGSTOP), cause="fault")

    assert container.end()[0] == 0


def test_nobody_but_the_job_is_signalled(container: Container):
    container.start(WAITS)
    container.begin()
    container.until("event")
    assert container.process is not None
    for pid in (os.getpid(), container.process.pid):
        number = container.order("signal", signal=int(signal.SIGKILL), pid=pid, cause="fault")
        container.until("refused", lambda report, number=number: report.order == number)
    container.order("signal", signal=int(signal.SIGTERM), cause="fault")

    assert container.end()[0] == 143


def test_whoever_waits_at_the_barrier_goes_on_when_it_is_released(container: Container):
    container.start("emit('step', step=1); emit('step', step=2); emit('step', step=3)", "--armed", "step:after@step=2")
    container.begin()
    reached = container.until("barrier")
    assert [event["step"] for event in container.events()] == [1, 2]
    container.order("release", barrier=reached.barrier + 5)
    container.order("release", barrier=reached.barrier)

    assert container.end()[0] == 0
    assert [event["step"] for event in container.events()] == [1, 2, 3]


def test_whoever_is_forgotten_at_the_barrier_is_let_go_and_that_is_told(container: Container):
    container.start("emit('step', step=1)", "--armed", "step:after", "--hold-s", "0.1")
    container.begin()

    assert container.end()[0] == 0
    assert container.until("let-go").barrier == container.until("barrier").barrier


IN_GRACE = """
def leave(*_):
    emit('sigterm')
    emit('save.end', step=3)
    sys.exit(0)
signal.signal(signal.SIGTERM, leave)
emit('boot')
time.sleep(60)
"""


def test_in_a_grace_the_job_is_not_held_for_a_look_at_storage_and_that_is_told(container: Container):
    container.start(IN_GRACE, "--own", "save.end:after")
    container.begin()
    container.until("event")
    container.order("notice", grace_s=3600.0, cause="fault")

    assert container.end()[0] == 0
    assert container.until("passed").what == "own"


def test_a_job_that_is_held_for_a_look_at_storage_goes_on_when_its_grace_begins(container: Container):
    container.start("emit('save.end', step=3)", "--own", "save.end:after")
    container.begin()
    container.until("barrier")
    container.order("notice", grace_s=3600.0, cause="fault")

    assert container.end()[0] == 143
    assert container.until("passed").what == "own"


def test_a_grace_stands_still_while_a_fault_holds_the_job(container: Container):
    container.start(IN_GRACE, "--armed", "save.end:after")
    container.begin()
    container.until("event")
    container.order("notice", grace_s=0.5, cause="fault")
    reached = container.until("barrier")
    until_s = CLOCK.monotonic_s() + 0.7
    while CLOCK.monotonic_s() < until_s:  # longer than the grace
        CLOCK.sleep(0.01)
    container.order("release", barrier=reached.barrier)

    assert container.end()[0] == 0
    assert container.until("held").seconds > 0.5


def test_in_the_platforms_own_grace_nobody_is_held_and_that_is_told(container: Container):
    container.start(IN_GRACE, "--armed", "save.end:after")
    container.begin()
    container.until("event")
    assert container.process is not None
    container.process.send_signal(signal.SIGTERM)

    assert container.end()[0] == 0
    assert container.until("passed").what == "armed"


def test_processes_that_outlive_the_job_are_ended_and_counted(container: Container):
    container.start("subprocess.Popen(['sleep', '60'], start_new_session=True)\nemit('boot')")
    container.begin()

    assert container.end()[0] == 0
    assert container.until("exit").leftovers == 1


def test_storage_that_fails_for_a_while_loses_nothing(container: Container, tmp_path: Path):
    home = tmp_path / "mount"
    home.write_bytes(b"")  # as long as this is a file nothing can be written below it
    container.start("emit('boot'); time.sleep(0.3); emit('step', step=1)", "--start-within-s", "0.05", home=home)
    deadline_s = CLOCK.monotonic_s() + 0.2
    while CLOCK.monotonic_s() < deadline_s:
        CLOCK.sleep(0.01)
    home.unlink()
    container.home = home

    assert container.end()[0] == 0
    kinds = [report.kind for report in container.said()]
    assert (kinds[0], kinds[-1]) == ("hello", "exit")
    assert [event["event"] for event in container.events()] == ["boot", "step"]


def test_what_could_not_be_said_is_told_on_standard_error_and_the_code_is_the_jobs(container: Container, tmp_path: Path):
    home = tmp_path / "mount"
    home.write_bytes(b"")
    container.start("emit('boot'); sys.exit(3)", "--start-within-s", "0.05", "--last-words-s", "0.2", home=home)

    code, _, err = container.end()

    assert code == 3
    assert "reports could not be written" in err
