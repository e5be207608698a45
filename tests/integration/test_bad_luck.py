"""What a run leaves behind when its luck is bad: the harness killed or interrupted at any moment, a full disk, jobs that behave badly."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from harness.history import RunClosed, read_history
from harness.store import PROBED_BYTES

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 60.0

CATALOGUE = f"""
from harness.scenario import Injection, Platform, Scenario, Workload
from harness.scenario.expectations import BitExactResume, Completes, IntactCheckpoints, WithinRetries
from harness.scenario.faults import Kill, OverlapAttempts, Pause, Terminate
from harness.scenario.triggers import AtStep

LINEAR = Workload(
    name="job", command=("{{python}}", "-m", "workloads.linear.train"), steps=40, save_every=5, layout="step-directories", directory={str(ROOT)!r},
    sources=("workloads/linear",), environment={{"STEPS": "40", "STEP_SECONDS": "0.05", "SAVE_EVERY": "5"}},
)

def scenario(name, *injections, workload=LINEAR, expects=(Completes(), WithinRetries(attempts_max=3)), **fields):
    return Scenario(name=name, why="a test", workload=workload, injections=injections, expects=expects, **fields)

def script(name):
    return Workload(name="script", command=("{{python}}", name + ".py"), speaks_protocol=name != "silent", layout="files", directory=HERE)

import pathlib
HERE = str(pathlib.Path(__file__).parent)
SCENARIOS = (
    scenario("a-long-job-runs"),
    scenario("a-long-job-is-paused", Injection(fault=Pause(duration_s=30.0), at=AtStep(step=3))),
    scenario("a-long-job-is-overlapped", Injection(fault=OverlapAttempts(zombie_s=30.0), at=AtStep(step=3))),
    scenario("a-long-job-with-a-golden-run", Injection(fault=Kill(), at=AtStep(step=7)), expects=(Completes(), BitExactResume())),
    *(scenario("script-" + name + "-is-judged", workload=script(name), deadline_s=20.0, platform=Platform(max_retries=0, grace_s=1.0))
      for name in ("garbage", "flood", "forker", "stubborn", "hoarder", "silent", "talker")),
)
CATALOGUE = {{found.name: found for found in SCENARIOS}}
"""

SCRIPTS = {
    "garbage": """
        import os, sys
        with open(os.environ["HARNESS_EVENTS"], "ab") as events:
            events.write(os.urandom(100_000) + b'\\n{"event": "step"}\\n{"event": 7}\\n[]\\n{"event": "step", "step": 1e999}\\n{"event":"boot","pid":1,"t":NaN}\\n')
        sys.stdout.buffer.write(os.urandom(100_000))
        """,
    "flood": """
        import os
        line = b'{"event": "step", "step": 1, "padding": "' + b"x" * 1000 + b'"}\\n'
        with open(os.environ["HARNESS_EVENTS"], "ab") as events:
            for _ in range(100_000):
                events.write(line)
        """,
    "talker": """
        for n in range(2000):
            print("line", n, "x" * 100, flush=True)
        """,
    "forker": """
        import os, time
        for n in range(20):
            if os.fork() == 0:
                os.setsid()
                time.sleep(600)
        """,
    "stubborn": """
        import signal, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        print("up", flush=True)
        time.sleep(600)
        """,
    "hoarder": """
        import os
        for n in range(30_000):
            open(os.path.join(os.environ["CHECKPOINT_DIR"], f"part-{n}"), "w").close()
        """,
    "silent": "pass",
}


@pytest.fixture
def here(tmp_path: Path, own_state: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))  # `clean` looks at what runs have left on a cluster, too
    (tmp_path / "scenarios.py").write_text(CATALOGUE)
    for name, text in SCRIPTS.items():
        (tmp_path / f"{name}.py").write_text(textwrap.dedent(text))
    yield tmp_path
    clean(tmp_path)
    assert left_behind(tmp_path) == []


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "harness", *arguments]


def start(here: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        command("run", *arguments),
        cwd=here,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def run(here: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command("run", *arguments), cwd=here, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE_S
    )


def clean(here: Path) -> str:
    return subprocess.run(command("clean"), cwd=here, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout


def left_behind(here: Path) -> list[str]:
    """Processes that work below the directory of the test, but for those of the harness itself."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, psutil.AccessDenied):
            if process.environ().get("CHECKPOINT_DIR", "").startswith(str(here)) and process.status() != psutil.STATUS_ZOMBIE:
                found.append(f"{process.pid} {process.status()} {' '.join(process.cmdline())}")
    return found


def wait_for(here: Path, pattern: str, is_there: Callable[[Path], bool] = lambda path: True) -> Path:
    deadline = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline:
        for path in here.glob(pattern):
            if is_there(path):
                return path
        time.sleep(0.01)
    raise AssertionError(f"no {pattern} came")


def says(text: str) -> Callable[[Path], bool]:
    return lambda path: text in path.read_text(errors="replace")


MOMENTS = {
    "before the first attempt": ("a-long-job-runs", "runs/*/*/scenario.json", lambda path: True),
    "while the job trains": ("a-long-job-runs", "runs/*/*/history.jsonl", says('"step":4')),
    "while a fault acts": ("a-long-job-is-paused", "runs/*/*/history.jsonl", says("fault.observed")),
    "while two attempts overlap": ("a-long-job-is-overlapped", "runs/*/*/history.jsonl", says('"attempt":1')),
    "in the golden run": ("a-long-job-with-a-golden-run", "runs/.golden/*/*/history.jsonl", says('"step":4')),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_kill_9_of_everything_of_ours_leaves_nothing_after_clean_and_a_readable_history(here: Path, moment: str) -> None:
    name, pattern, is_there = MOMENTS[moment]
    process = start(here, name)
    wait_for(here, pattern, is_there)

    os.killpg(process.pid, signal.SIGKILL)
    for worker in psutil.process_iter():
        if _is_worker_below(worker, here):
            worker.kill()
            worker.wait(PATIENCE_S)
    process.communicate()
    said = clean(here)

    assert left_behind(here) == []
    for history in here.glob("runs/**/history.jsonl"):
        read_history(history)
    assert "nothing was left behind" in clean(here), said


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=["Ctrl-C", "SIGTERM"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_an_interrupt_ends_everything_without_clean(here: Path, moment: str, number: signal.Signals) -> None:
    name, pattern, is_there = MOMENTS[moment]
    process = start(here, name)
    wait_for(here, pattern, is_there)

    process.send_signal(number)
    output, _ = process.communicate(timeout=PATIENCE_S)

    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert left_behind(here) == []
    for history in here.glob("runs/*/*/history.jsonl"):
        events = read_history(history).events
        closed = [event.reason for event in events if isinstance(event, RunClosed)]
        assert closed == (["interrupted"] if events else [])  # one that had not begun has nothing to close


def test_the_death_of_the_parent_alone_ends_its_workers_runs(here: Path) -> None:
    process = start(here, "a-long-job-runs")
    wait_for(here, "runs/*/*/history.jsonl", says('"step":4'))

    process.kill()
    process.communicate()
    history = wait_for(here, "runs/*/*/history.jsonl", says("run.closed"))

    assert "interrupted" in history.read_text()
    wait_for(here, "runs", lambda _: not left_behind(here))


def test_two_runs_at_once_do_not_touch_each_other_nor_does_clean(here: Path) -> None:
    first = start(here, "a-long-job-with-a-golden-run", "--jobs", "1")
    second = start(here, "a-long-job-with-a-golden-run", "--jobs", "1")
    wait_for(here, "runs/.golden/*/*/history.jsonl", says('"step":4'))
    said = clean(here)
    outputs = [process.communicate(timeout=PATIENCE_S)[0] for process in (first, second)]

    assert [process.returncode for process in (first, second)] == [0, 0], outputs
    assert "still running, left alone" in said
    assert len(list(here.glob("runs/a-long-job-with-a-golden-run/*"))) == 2
    assert len(list(here.glob("runs/.golden/*/*/verdict.json"))) == 2


def test_a_history_that_cannot_be_written_is_one_message_and_nothing_is_left(here: Path) -> None:
    enough = PROBED_BYTES // 512 + 1  # blocks: what is tried before the run finds room, and what the job says does not
    limited = ["sh", "-c", f'ulimit -f {enough}; exec "$@"', "sh", *command("run", "script-talker-is-judged")]

    result = subprocess.run(limited, cwd=here, capture_output=True, text=True, timeout=PATIENCE_S)

    assert result.returncode == 70
    assert "File too large" in result.stdout + result.stderr
    assert "Traceback" not in result.stdout + result.stderr
    assert left_behind(here) == []


@pytest.mark.parametrize(
    ("name", "verdict", "reason"),
    [
        ("garbage", "invalid", ""),
        ("flood", "invalid", ""),
        ("forker", "invalid", ""),
        ("stubborn", "invalid", "deadline"),
        ("hoarder", "invalid", ""),
        ("silent", "unknown", ""),
    ],
)
def test_a_job_that_behaves_badly_gets_a_verdict(here: Path, name: str, verdict: str, reason: str) -> None:
    result = run(here, f"script-{name}-is-judged", "--json")

    (row,) = json.loads(result.stdout)
    assert row["tag"] if "tag" in row else row["type"] == "finished"
    assert row["summary"]["outcome"] in (verdict, "unknown"), row
    assert row["summary"]["outcome"] != "valid"
    assert reason in " ".join(row["summary"]["reasons"])
    assert left_behind(here) == []


def _is_worker_below(process: psutil.Process, here: Path) -> bool:
    try:
        return "harness.cli.worker" in process.cmdline() and process.cwd() == str(here)
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
