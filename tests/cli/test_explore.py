"""``harness explore`` as a person calls it: on jobs of a few lines, one of them right, the others wrong in one way each."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from harness.explore.result import Exploration
from harness.process_table import read_table
from harness.report import Summary
from harness.verdict import Outcome, Verdict
from tests.cli.conftest import Command

JOB = """
import json, os, pathlib, sys, time
root = pathlib.Path(os.environ["CHECKPOINT_DIR"])
way = os.environ.get("WAY", "")

def say(event, **fields):
    with open(os.environ["HARNESS_EVENTS"], "a") as file:
        file.write(json.dumps({"event": event, **fields}) + "\\n")

def save(step, text):
    if way == "elsewhere":
        pathlib.Path("elsewhere").write_text(text)
    elif way == "in place":
        with open(root / "checkpoint", "w") as file:
            file.write(text)
    else:
        with open(root / "checkpoint.tmp", "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.rename(root / "checkpoint.tmp", root / "checkpoint")
        directory = os.open(root, os.O_RDONLY)
        os.fsync(directory)
        os.close(directory)

step, total = 0, 0
try:
    step, total = map(int, (root / "checkpoint").read_text().split())
except (OSError, ValueError):
    pass
if step:
    say("restore", step=step, digests={"total": str(total)})
say("start", attempt=0, restored_step=step)
if way == "slow":
    (root / "slow").write_text("x")
    time.sleep(0.5)
if way == "another each time":
    total += os.getpid()
while step < 6:
    step += 1
    total += step * step
    say("step", step=step, digests={"total": str(total)})
    if step % 2 == 0:
        say("save.begin", step=step, digests={"total": str(total)})
        save(step, f"{step} {total}")
        say("save.end", step=step, digests={"total": str(total)})
(root / "final").write_text(str(total))
say("done", step=step)
"""

EXPLORE = ("explore", "--storage", "posix", "--scope", "process", "--result", "final")
RUN = ("--", sys.executable, "-S", "job.py")


@pytest.fixture
def job(here: Path) -> Path:
    (here / "job.py").write_text(JOB)
    return here


def only_exploration(here: Path) -> Path:
    (found,) = (here / "runs").glob("explore-*/*")
    return found


def explored(here: Path) -> Exploration:
    return msgspec.json.decode((only_exploration(here) / "exploration.json").read_bytes(), type=Exploration)


def test_a_job_that_saves_rightly_exits_0_with_a_line_for_each_surface_and_a_page(harness: Command, job: Path) -> None:
    result = harness(*EXPLORE, *RUN)

    assert result.returncode == 0, result.stdout + result.stderr
    lines = result.stdout.splitlines()
    assert re.fullmatch(r"recorded 1 run, 3 saves, \d+ operations in .*", lines[0])
    assert re.fullmatch(r"posix process +\d+ kill points +\d+ states +\d+ valid", lines[1])
    assert re.fullmatch(r"crashes in \d+ recover(y|ies): \d+ states: \d+ valid", lines[2])
    assert re.fullmatch(r"verdict: valid +report: runs/explore-job/.*/report.html", lines[3])
    run = only_exploration(job)
    assert b"posix" in (run / "report.html").read_bytes()
    assert msgspec.json.decode((run / "verdict.json").read_bytes(), type=Verdict).is_valid
    assert msgspec.json.decode((run / "summary.json").read_bytes(), type=Summary).outcome == "valid"
    assert "Explore job" in (job / "runs" / "index.html").read_text()
    assert not (run / "blobs").exists()


def test_a_job_that_saves_in_place_exits_1_and_says_what_must_be_atomic_and_how_to_see_it_again(harness: Command, job: Path) -> None:
    result = harness(*EXPLORE, *RUN, WAY="in place")

    assert result.returncode == 1, result.stdout + result.stderr
    assert (
        "invalid: posix × process: keeps-what-was-acknowledged: step 2 had been acknowledged, and it went on from scratch" in result.stdout
    )
    assert "open checkpoint to write checkpoint must be atomic" in result.stdout
    (line, *_) = re.findall(r"replay: harness (.*)", result.stdout)

    again = harness(*line.split(), WAY="in place")

    assert again.returncode == 1, again.stdout + again.stderr
    assert "recovery started from scratch, saved steps 2, 4, 6, came through" in again.stdout
    assert "invalid: posix × process, step 2 acknowledged (as before)" in again.stdout


def test_of_a_state_that_is_tried_again_the_files_stay_where_that_is_asked_for(harness: Command, job: Path) -> None:
    text = (job / "job.py").read_text().replace("step, total = map(int", "step, _ = map(int")  # it goes on with another total
    (job / "job.py").write_text(text)
    result = harness(*EXPLORE, *RUN)
    (line, *_) = re.findall(r"replay: harness (.*)", result.stdout)

    again = harness(*line.split(), "--keep")

    assert again.returncode == 1, again.stdout + again.stderr
    ((recovered, uninterrupted),) = re.findall(r"these differ: (\S+) and (\S+)", again.stdout)
    assert (job / recovered).read_text() != (job / uninterrupted).read_text() == "91"
    (state,) = re.findall(r"kept, as the crash left it: (\S+)", again.stdout)
    assert (job / state).is_dir()


def test_an_exploration_is_no_run_of_a_scenario_and_says_so(harness: Command, job: Path) -> None:
    harness(*EXPLORE, *RUN)
    run = only_exploration(job)
    for command, path in (("replay", run), ("replay", run / "exploration.json"), ("check", run), ("report", run)):
        result = harness(command, str(path))
        assert result.returncode == 64
        assert f"{run} is an exploration, not a run of a scenario; " in result.stderr
        assert f"`harness explore --replay {run} STATE`" in result.stderr


def test_a_replay_says_which_variables_are_not_as_they_were(harness: Command, job: Path) -> None:
    result = harness(*EXPLORE, *RUN, WAY="in place")
    (line, *_) = re.findall(r"replay: harness (.*)", result.stdout)

    assert "not as it was: the variables WAY" in harness(*line.split()).stdout


def test_a_state_that_breaks_only_while_recovery_works_is_found(harness: Command, job: Path) -> None:
    text = (job / "job.py").read_text()
    cleans = 'if step:\n    os.unlink(root / "checkpoint")\n    save(step, f"{step} {total}")\n'
    (job / "job.py").write_text(text.replace("if step:\n", cleans + "if step:\n", 1))

    result = harness(*EXPLORE, *RUN)

    assert result.returncode == 1, result.stdout + result.stderr
    found = [broken.promise for surface in explored(job).surfaces if surface.after for state in surface.states for broken in state.broken]
    assert set(found) == {"survives-a-crash-in-recovery"}
    assert not [state for surface in explored(job).surfaces if not surface.after for state in surface.states if state.broken]
    (line, *_) = re.findall(r"replay: harness (.*)", result.stdout)
    again = harness(*line.split())
    assert (again.returncode, "in the recovery from" in again.stdout, "(as before)" in again.stdout) == (1, True, True), again.stdout


def test_json_goes_to_standard_output_alone(harness: Command, job: Path) -> None:
    result = harness(*EXPLORE, "--json", *RUN)

    found = msgspec.json.decode(result.stdout, type=Exploration)
    assert found == explored(job)
    assert (found.outcome, found.recorded.saves, found.recorded.bare_seconds > 0) == (Outcome.VALID, 3, True)


def test_a_job_that_says_nothing_is_held_to_its_result(harness: Command, job: Path) -> None:
    silent = (job / "job.py").read_text().replace("def say(event, **fields):\n", "def say(event, **fields):\n    return\n")
    (job / "job.py").write_text(silent)

    right, wrong = harness(*EXPLORE, *RUN), harness(*EXPLORE, *RUN, WAY="another each time")

    assert (right.returncode, "it says nothing of its saves" in right.stdout) == (0, True), right.stdout
    assert wrong.returncode == 2
    assert "unknown: two uninterrupted runs have the results" in wrong.stdout


def test_without_anything_to_compare_nothing_is_proved(harness: Command, job: Path) -> None:
    (job / "job.py").write_text("import os; open(os.environ['CHECKPOINT_DIR'] + '/x', 'w').write('x')")

    result = harness("explore", "--storage", "posix", "--scope", "process", *RUN)

    assert result.returncode == 2
    assert "neither its result nor any digests could be compared" in result.stdout


@pytest.mark.parametrize(("way", "says"), [("elsewhere", "the save of steps 2, 4, 6 was acknowledged, and nothing was written for it")])
def test_a_save_that_lies_elsewhere_is_unknown(harness: Command, job: Path, way: str, says: str) -> None:
    result = harness(*EXPLORE, *RUN, WAY=way)

    assert result.returncode == 2, result.stdout
    assert says in result.stdout


def test_a_job_that_knows_one_place_only_is_explored_there_and_the_place_is_left_empty(harness: Command, job: Path) -> None:
    (job / "ckpt").mkdir()
    text = (job / "job.py").read_text().replace('pathlib.Path(os.environ["CHECKPOINT_DIR"])', 'pathlib.Path("ckpt").absolute()')
    (job / "job.py").write_text(text)

    result = harness("explore", "--storage", "posix", "--checkpoint-dir", "ckpt", "--result", "ckpt/final", *RUN, WAY="in place")

    assert result.returncode == 1, result.stdout + result.stderr
    assert list((job / "ckpt").iterdir()) == []


def test_a_budget_cuts_the_tail_and_says_so(harness: Command, job: Path) -> None:
    result = harness(*EXPLORE, "--budget", "3", *RUN)

    assert result.returncode == 2
    assert re.search(r"not judged: \d+ states, the budget was 3 states", result.stdout), result.stdout
    assert re.search(r"unknown: \d+ of the most telling states were not judged", result.stdout)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["explore"], "nothing to explore"),
        (["explore", "job", *RUN], "several jobs to explore"),
        (["explore", "--"], "no command follows --"),
        (["explore", "moon"], "no workload is named 'moon'"),
        (["explore", "python3"], "a command stands after --, as in: harness explore -- python3 ..."),
        (["explore", "--", "no-such-program"], "cannot find 'no-such-program'"),
        (["explore", "--storage", "floppy", *RUN], "no storage model is named 'floppy'"),
        (["explore", "--storage", "posix,floppy", *RUN], "no storage model is named 'floppy'"),
        (["explore", "--scope", "moon", *RUN], "no scope is named 'moon'"),
        (
            ["explore", "--storage", "posix,posix-weak", "--scope", "sidecar", *RUN],
            "posix and posix-weak cannot die by sidecar: only gcsfuse-flat, gcsfuse-hns can",
        ),
        (["explore", sys.executable, "job.py", "--out", "x"], f"; the command of a job comes after --: `-- {sys.executable} ...`"),
        (["explore", "--storge", "posix"], "No such option: --storge"),
        (["explore", "--budget", "soon", *RUN], "--budget 'soon' is no budget"),
        (["explore", "--executor", "moon", *RUN], "no executor is named 'moon'"),
        (["explore", "--executor", "ray", "--checkpoint-dir", "new", *RUN], "leave one of them away"),
        (["explore", "--recover", "job", *RUN], "--recover 'job' names no function"),
        (["explore", "--recover", "moon:land", *RUN], "moon:land could not be imported"),
        (["explore", "--result", "/etc/passwd", *RUN], "--result '/etc/passwd' is not below the checkpoint directory"),
        (["explore", "--checkpoint-dir", "full", *RUN], "is not empty"),
        (["explore", "--checkpoint-dir", "job.py", *RUN], "is no directory"),
        (["explore", "--checkpoint-dir", "", *RUN], "--checkpoint-dir is empty"),
        (["explore", "--checkpoint-dir", "/proc/checkpoints", *RUN], "--checkpoint-dir /proc/checkpoints cannot be made: "),
        (["explore", "--inspect", 'look "once', *RUN], """--inspect 'look "once' is no command: No closing quotation"""),
        (["explore", "--inspect", "no-such-program {checkpoint_dir}", *RUN], "cannot find 'no-such-program', which is to inspect, from "),
        (["explore", "--recovery-timeout", "0", *RUN], "--recovery-timeout 0 is no time for a recovery"),
        (["explore", "--recovery-timeout", "nan", *RUN], "--recovery-timeout nan is no time for a recovery"),
        (["explore", "--config", "no.toml"], "no.toml: No such file or directory"),
        (["explore", "--", sys.executable, "no-such-script.py"], "the job does not come through when it is left alone"),
        (["explore", "--replay", "nowhere", "abc"], "nowhere/exploration.json: No such file or directory"),
        (["explore", "--replay", "nowhere", "abc", *RUN], "leave the job away"),
    ],
)
def test_wrong_usage_is_one_line_exit_64_and_no_run(harness: Command, job: Path, arguments: list[str], says: str) -> None:
    (job / "full").mkdir()
    (job / "full" / "precious").write_text("x")

    result = harness(*arguments)

    assert (result.returncode, result.stdout) == (64, ""), result.stdout + result.stderr
    assert says in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not list(job.glob("runs/explore-*"))
    assert (job / "full" / "precious").exists()


def start(job: Path, *arguments: str, terminal: int = subprocess.PIPE) -> "subprocess.Popen[str]":
    """An exploration that goes on."""
    words = [sys.executable, "-m", "harness", *EXPLORE, "--budget", "all", *arguments, *RUN]
    environment = {**os.environ, "HARNESS_CACHE_DIR": str(job / "cache"), "WAY": "slow", "WHOSE": str(job)}
    return subprocess.Popen(words, cwd=job, env=environment, stdout=terminal, stderr=subprocess.STDOUT, text=True)


def await_trials(job: Path, number: int) -> None:
    """Wait until so many states have been tried."""
    deadline = time.monotonic() + 60
    while sum(path.read_bytes().count(b"\n") for path in job.glob("runs/explore-*/*/tried.jsonl")) < number:
        assert time.monotonic() < deadline, "nothing was tried"
        time.sleep(0.02)


def processes_of(job: Path) -> list[int]:
    """All that run the job."""
    table = read_table()
    return [pid for pid in table.carrying([f"WHOSE={job}".encode()]) if table.is_alive(pid)]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interrupt_ends_what_runs_and_reports_what_was_judged(job: Path, number: int) -> None:
    exploration = start(job)
    await_trials(job, 4)

    exploration.send_signal(number)
    output, _ = exploration.communicate(timeout=60)

    assert exploration.returncode == 130, output
    assert "not judged: " in output
    assert "interrupted" in output
    assert (only_exploration(job) / "report.html").exists()
    assert processes_of(job) == []


def test_a_terminal_that_is_closed_ends_what_runs_and_what_was_judged_is_kept(job: Path) -> None:
    here, terminal = os.openpty()
    exploration = start(job, terminal=terminal)
    os.close(terminal)
    await_trials(job, 2)
    os.close(here)
    exploration.send_signal(signal.SIGHUP)  # as its shell does, for it is in a session of its own

    assert exploration.wait(60) == 130
    assert explored(job).surfaces
    assert (only_exploration(job) / "report.html").exists()
    assert processes_of(job) == []


def test_who_ignores_the_end_of_the_terminal_goes_on(job: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        exploration = start(job)
    finally:
        signal.signal(signal.SIGHUP, before)
    await_trials(job, 2)
    exploration.send_signal(signal.SIGHUP)

    output, _ = exploration.communicate(timeout=120)

    assert exploration.returncode == 0, output


def test_what_a_killed_harness_has_left_is_cleaned(harness: Command, job: Path) -> None:
    exploration = start(job)
    await_trials(job, 2)
    exploration.kill()
    exploration.communicate(timeout=60)

    cleaned = harness("clean")

    assert cleaned.returncode == 0, cleaned.stdout
    assert "removed scratch directory" in cleaned.stdout
    assert processes_of(job) == []
    assert harness("clean").stdout.strip() == "nothing was left behind"


def test_two_explorations_at_once_do_not_touch_one_another(job: Path) -> None:
    both = [start(job), start(job)]

    outputs = [each.communicate(timeout=120)[0] for each in both]

    assert [each.returncode for each in both] == [0, 0], outputs
    assert len(list(job.glob("runs/explore-job/*/exploration.json"))) == 2


def test_a_workload_of_a_file_is_read_by_its_own_words(harness: Command, job: Path) -> None:
    silent = (job / "job.py").read_text().replace("def say(event, **fields):\n", "def say(event, **fields):\n    return\n")
    (job / "job.py").write_text(
        silent.replace(
            "def save(step, text):\n",
            "def save(step, text):\n    write(step, text)\n    print('saved', step, flush=True)\n\ndef write(step, text):\n",
        )
    )
    words = [sys.executable, "-S", "job.py"]
    (job / "harness.toml").write_text(
        f'[workload]\nname = "own"\ncommand = {json.dumps(words)}\nresult = "{{checkpoint_dir}}/final"\n'
        "[workload.logs]\nsaved = 'saved (?P<step>\\d+)'\n"
    )

    result = harness("explore", "--config", "harness.toml", "--storage", "posix", "--scope", "process", WAY="in place")

    assert "recorded 1 run, 3 saves" in result.stdout, result.stdout + result.stderr
    assert "explore-own" in result.stdout


def silenced(job: Path) -> str:
    """The job without a word."""
    return (job / "job.py").read_text().replace("def say(event, **fields):\n", "def say(event, **fields):\n    return\n")


def test_an_inspection_sees_the_last_good_checkpoint_go(harness: Command, job: Path) -> None:
    forgets = silenced(job).replace("if step:\n", 'resumed = step > 0\nif step:\n    os.unlink(root / "checkpoint")\n', 1)
    (job / "job.py").write_text(forgets.replace("if step % 2 == 0:", "if step % 2 == 0 and not resumed:"))
    (job / "look.py").write_text(
        "import json, sys\nprint(json.dumps({'step': int(open(sys.argv[1] + '/checkpoint').read().split()[0])}))\n"
    )

    blind = harness(*EXPLORE, *RUN)
    seeing = harness(*EXPLORE, "--inspect", f"{sys.executable} -S look.py {{checkpoint_dir}}", *RUN)

    assert blind.returncode == 0, blind.stdout
    assert seeing.returncode == 1, seeing.stdout + seeing.stderr
    said = r"keeps-the-last-good-checkpoint: step \d was good before recovery, and what is good afterwards is gone"
    assert re.search(said, seeing.stdout), seeing.stdout


def silent(job: Path, text: str, *, patterns: str) -> None:
    """Writes a job, and a ``harness.toml`` of its own words."""
    (job / "job.py").write_text(text)
    words = json.dumps([sys.executable, "-S", "job.py"])
    (job / "harness.toml").write_text(
        f'[workload]\nname = "own"\ncommand = {words}\nresult = "{{checkpoint_dir}}/final"\n[workload.logs]\n{patterns}'
    )


COUNTS = """
import json, os, pathlib, sys
root = pathlib.Path(os.environ["CHECKPOINT_DIR"])

def write(path, text, *, synced=True):
    with open(f"{path}.tmp", "w") as file:
        file.write(text)
        if synced:
            file.flush()
            os.fsync(file.fileno())
    os.rename(f"{path}.tmp", path)
    directory = os.open(root, os.O_RDONLY)
    os.fsync(directory)
    os.close(directory)

step, total = 0, 0
for path in sorted(root.glob("at-?"), reverse=True):
    RESUMED
    try:
        step, total = map(int, path.read_text().split())
        break
    except ValueError:
        pass
while step < 6:
    step += 1
    total += step * step
    TOLD
    if step % 2 == 0:
        write(root / f"at-{step}", f"{step} {total}", synced=SYNCED)
        print("saved", step, flush=True)
write(root / "final", str(total))
"""
STEP, SAVED, RESUMED = (f"{name} = '^{name} (?P<step>\\d+)'\n" for name in ("step", "saved", "resumed"))
WEAK = ("explore", "--config", "harness.toml", "--storage", "posix-weak", "--scope", "node", "--budget", "40")


def counts(resumed: str = "", told: str = "", *, synced: bool) -> str:
    return COUNTS.replace("RESUMED", resumed).replace("TOLD", told).replace("SYNCED", str(synced))


def test_who_says_a_step_before_it_is_restored_and_then_does_earlier_ones_again_has_lost_it(harness: Command, job: Path) -> None:
    says = "print('resumed', path.name[3:], flush=True)"
    for synced, code in ((False, 1), (True, 0)):
        silent(job, counts(says, "print('step', step, flush=True)", synced=synced), patterns=STEP + SAVED + RESUMED)
        result = harness(*WEAK)

        assert (result.returncode, "and did step 1 again" in result.stdout) == (code, not synced), result.stdout + result.stderr


def test_who_tells_its_saves_only_is_invalid_where_one_was_lost_and_else_unknown_with_what_to_tell(harness: Command, job: Path) -> None:
    silent(job, counts(synced=False), patterns=SAVED)
    assert "again, whose checkpoint was not there any more" in (lost := harness(*WEAK)).stdout, lost.stdout + lost.stderr
    assert lost.returncode == 1

    silent(job, counts(synced=True), patterns=SAVED)
    assert "have it tell what it restores (resumed) or each step (step)" in (told := harness(*WEAK)).stdout, told.stdout
    assert told.returncode == 2


def test_a_progress_bar_that_ends_no_line_makes_no_job_wrong(harness: Command, job: Path) -> None:
    bar = "sys.stderr.write(f'\\r{step}/6 |###|'); sys.stderr.flush(); print('step', step, flush=True)"
    silent(job, counts("print('resumed', path.name[3:], flush=True)", bar, synced=True), patterns=STEP + SAVED + RESUMED)

    result = harness("explore", "--config", "harness.toml", "--storage", "posix", "--scope", "process")

    assert result.returncode == 0, result.stdout + result.stderr


def test_a_run_that_is_not_heard_alike_proves_nothing(harness: Command, job: Path) -> None:
    once = "os.path.exists('told') or print('step', step, flush=True)"
    text = counts(told=once, synced=True) + "\nopen('told', 'w').close()\n"
    silent(job, text, patterns=STEP + SAVED)

    result = harness("explore", "--config", "harness.toml", "--storage", "posix", "--scope", "process")

    assert result.returncode == 2, result.stdout + result.stderr
    assert "do not say the same: only one of them says that it did steps 1, 2, 3, 4, 5, 6" in result.stdout


def test_an_uninterrupted_run_is_a_first_attempt_and_recovery_from_nothing_is_none(harness: Command, job: Path) -> None:
    insists = (
        "if os.environ['CLOUD_RUN_TASK_ATTEMPT'] != '0' and not any(root.glob('at-?')): sys.exit('where is it?')\nstep, total = 0, 0\n"
    )
    (job / "job.py").write_text(counts(synced=True).replace("step, total = 0, 0\n", insists))

    result = harness(*EXPLORE, *RUN)

    assert "without the recorder" not in result.stdout
    assert "killed before anything was done: recovery failed with exit code 1: where is it?" in result.stdout, result.stdout
    assert result.returncode == 1


def test_what_a_recovery_may_take_can_be_said_and_then_holds(harness: Command, job: Path) -> None:
    waits = "import time\nif any(root.glob('at-?')) and not (root / 'final').exists(): time.sleep(60)\nstep, total = 0, 0\n"
    (job / "job.py").write_text(counts(synced=True).replace("step, total = 0, 0\n", waits))

    result = harness(*EXPLORE, "--budget", "8", "--recovery-timeout", "0.5", *RUN)

    assert result.returncode == 1, result.stdout + result.stderr
    assert "recovery did not end within 0 s" in result.stdout or "recovery did not end within 1 s" in result.stdout


def test_a_recovery_function_is_called_in_a_process_that_stays_warm(harness: Command, job: Path) -> None:
    (job / "recovery.py").write_text("import runpy\n\ndef main():\n    runpy.run_path('job.py')\n")

    result = harness(*EXPLORE, "--recover", "recovery:main", *RUN, WAY="in place")

    assert result.returncode == 1, result.stdout + result.stderr
    assert "open checkpoint to write checkpoint must be atomic" in result.stdout
    assert explored(job).judge == "recovery:main in warm processes, 2 at a time"
