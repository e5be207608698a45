"""Tasks, attempts, retries, exit codes, variables."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import InvalidDocumentError, UnknownNameError, WorkloadMissingError
from harness.history import AttemptExited, AttemptStarted, ExecutionFinished, ExecutionStarted, LogLine, TaskFinished
from tests.contract.driver import SEEN_HERE, TRAITS, Run, python


def test_exit_0_is_success_and_is_not_tried_again(start):
    run = start(("sh", "-c", "exit 0"), max_retries=3)

    run.finish()

    (exited,) = run.exits()
    assert (exited.exit_code, exited.signal, exited.cause, exited.retried) == (0, None, "job", False)
    assert run.of(TaskFinished)[0].succeeded
    (finished,) = run.of(ExecutionFinished)
    assert all(isinstance(event, LogLine) for event in run.seen[run.seen.index(finished) + 1 :])
    assert run.lines("system") == ["Container called exit(0)."]


def test_a_failure_is_tried_again_until_the_retries_are_used_up(start):
    run = start(("sh", "-c", "exit 7"), max_retries=2)

    run.finish()

    assert [(exited.attempt, exited.exit_code, exited.retried) for exited in run.exits()] == [(0, 7, True), (1, 7, True), (2, 7, False)]
    assert [(task.succeeded, task.attempts) for task in run.of(TaskFinished)] == [(False, 3)]
    (finished,) = run.of(ExecutionFinished)
    assert (finished.succeeded, finished.failed, finished.cancelled, finished.retried) == (0, 1, 0, 1)


def test_a_later_success_ends_the_task(start):
    run = start(("sh", "-c", "exit $(( CLOUD_RUN_TASK_ATTEMPT == 0 ? 143 : 0 ))"), max_retries=3)

    run.finish()

    assert [exited.exit_code for exited in run.exits()] == [143, 0]
    assert run.of(TaskFinished)[0].succeeded


def test_a_job_that_kills_itself_is_told_from_one_that_was_killed(start):
    run = start(python("import ctypes\nctypes.string_at(0)"))

    run.finish()

    (exited,) = run.exits()
    assert (exited.exit_code, exited.signal, exited.cause) == (None, signal.SIGSEGV, "job")
    told = [f"Container terminated on signal {signal.SIGSEGV.value}."]
    if run.traits.is_remote:  # the first process of the container is the agent, which cannot kill itself
        told.append(f"Container called exit({128 + signal.SIGSEGV.value}).")
    assert sorted(run.lines("system"), reverse=True) == told


def test_the_next_attempt_starts_at_the_poll_after_the_one_that_told_the_end(start):
    run = start(("sh", "-c", "exit 1"), max_retries=1)

    run.until(AttemptExited)

    assert len(run.of(AttemptStarted)) == 1
    run.until(AttemptStarted, nth=2)


def test_the_job_is_told_who_it_is(start):
    run = start(("sh", "-c", "env; pwd"), tasks=2, max_retries=0, environment={"OWN": "yes"})

    run.finish()

    environment = dict(
        line.text.split("=", 1) for line in run.of(LogLine) if line.task == 1 and line.stream == "stdout" and "=" in line.text
    )
    (started,) = run.of(ExecutionStarted)
    assert run.traits.is_remote or started.execution.startswith("contract-job-")  # on a project jobs are named after the adopted one
    assert environment["CLOUD_RUN_JOB"] == "contract-job"
    assert environment["CLOUD_RUN_EXECUTION"] == started.execution
    assert environment["CLOUD_RUN_TASK_INDEX"] == "1"
    assert environment["CLOUD_RUN_TASK_ATTEMPT"] == "0"
    assert environment["CLOUD_RUN_TASK_COUNT"] == "2"
    assert run.traits.is_remote or environment["HARNESS_RUN_ID"] == run.launch.run_id  # an emulator's jobs carry its own
    assert environment["OWN"] == "yes"
    assert ("HARNESS_BARRIER" in environment) == run.traits.is_remote, "its saves are waited for"
    assert ("HARNESS_ARMED" in environment) == run.traits.is_remote
    assert run.traits.has_image or "PYTHONUNBUFFERED" not in environment


def test_every_attempt_has_its_own_event_file_and_the_same_checkpoint_directory(start):
    tell = "print(os.path.getsize(os.environ['HARNESS_EVENTS']), os.listdir(os.environ['CHECKPOINT_DIR']))"
    run = start(python(tell + "\nemit('boot')\nopen(os.environ['CHECKPOINT_DIR'] + '/kept', 'a').close()\nsys.exit(1)"), max_retries=1)

    run.finish()

    assert run.lines() == ["0 []", "0 ['kept']"]
    assert run.target.checkpoint_path(0).is_dir()


@pytest.mark.parametrize("checkpoints", [".", "below"])
def test_a_link_that_the_job_puts_in_the_place_of_its_checkpoints_is_not_followed_out(start, tmp_path, checkpoints):
    (tmp_path / "of-somebody-else").mkdir()
    link = f"""
path = os.path.normpath(os.path.join(os.environ['CHECKPOINT_DIR'], {checkpoints!r}))
if os.path.exists(path): os.rmdir(path)
os.symlink({str(tmp_path / "of-somebody-else")!r}, path)
"""
    run = start(python(link), checkpoints=checkpoints)

    run.finish()

    if run.exits()[0].exit_code:  # a mounted directory cannot be replaced from within
        assert checkpoints == "."
        assert run.traits.has_image
        assert run.target.checkpoint_path(0).is_dir()
        return
    if run.traits.is_remote:  # what is looked at is a mirror, which no link of the job is in
        assert run.target.checkpoint_path(0).resolve().is_relative_to(run.launch.checkpoint_dir.resolve())
        return
    with pytest.raises(LookupError, match="leads out of the mounted directory"):
        run.target.checkpoint_path(0)


def test_no_more_tasks_run_at_once_than_parallelism_allows(start):
    run = start(python("emit('boot'); time.sleep(0.05)"), tasks=5, parallelism=2)

    run.finish()

    running, most = 0, 0
    for event in run.seen:
        running += isinstance(event, AttemptStarted) - isinstance(event, AttemptExited)
        most = max(most, running)
    assert most == 2
    assert sorted(task.task for task in run.of(TaskFinished)) == [0, 1, 2, 3, 4]


def test_one_failed_task_fails_the_execution_and_the_others_go_on(start):
    run = start(("sh", "-c", "exit $CLOUD_RUN_TASK_INDEX"), tasks=2)

    run.finish()

    (finished,) = run.of(ExecutionFinished)
    assert (finished.succeeded, finished.failed) == (1, 1)


PROGRAMS = [("no-such-program",), ("./no/such/program",), ("/",), (str(Path(__file__)),)]


@pytest.mark.parametrize("target_name", SEEN_HERE, indirect=True)
@pytest.mark.parametrize("command", PROGRAMS)
def test_a_missing_program_is_refused_before_anything_starts(target_name, tmp_path, command):
    run = Run(target_name, tmp_path, command)

    with pytest.raises(WorkloadMissingError) as caught:
        run.start()

    assert caught.value.program == command[0]
    assert run.stop() == []


@pytest.mark.parametrize("target_name", [name for name in TRAITS if name not in SEEN_HERE], indirect=True)
@pytest.mark.parametrize("command", PROGRAMS)
def test_a_missing_program_of_an_image_that_nobody_looks_into_is_a_job_that_fails(start, command):
    run = start(command)

    run.finish()

    (exited,) = run.exits()
    assert (exited.exit_code in (126, 127), exited.cause) == (True, "job")


@pytest.mark.parametrize("target_name", SEEN_HERE, indirect=True)
def test_a_program_that_is_no_program_is_refused(target_name, tmp_path):
    script = tmp_path / "job"
    script.write_bytes(b"\x00\x01\x02 not a program")
    script.chmod(0o755)

    with pytest.raises(WorkloadMissingError):
        Run(target_name, tmp_path / "run", (str(script),)).start()


@pytest.mark.parametrize("name", ["no-such-directory", "a-file", "x" * 5000])
def test_a_directory_that_is_not_there_is_refused_by_its_name(target_name, tmp_path, name):
    (tmp_path / "a-file").touch()

    with pytest.raises(InvalidDocumentError, match=f"directory.*{name}.*is no directory"):
        Run(target_name, tmp_path, ("true",), directory=tmp_path / name).start()


@pytest.mark.parametrize(("argument", "value"), [("\0", ""), ("exit 0", "\0")])
def test_a_nul_character_is_refused(target_name, tmp_path, argument, value):
    with pytest.raises(InvalidDocumentError):
        Run(target_name, tmp_path, ("sh", "-c", argument), environment={"A": value}).start()


def test_a_pattern_for_no_event_is_refused(target_name, tmp_path):
    run = Run(target_name, tmp_path, ("sh", "-c", "exit 0"), log_patterns={"steps": "x"})

    with pytest.raises(UnknownNameError):
        run.start()


def test_two_runs_in_one_process_do_not_touch_each_other(start):
    first = start(("sh", "-c", "sleep 60"))
    first.until(AttemptStarted)
    second = start(("sh", "-c", "sleep 60 & exit 0"))

    second.finish()
    second.stop()
    killed = first.target.signal(first.victim(), signal.SIGKILL, cause="fault")
    first.finish()

    assert killed[0] == first.of(AttemptStarted)[0].pid
    assert [(exited.signal, exited.cause) for exited in first.exits()] == [(signal.SIGKILL, "fault")]
    assert [(exited.exit_code, exited.leftovers) for exited in second.exits()] == [(0, second.traits.leftovers(1))]


def test_children_that_are_not_of_the_run_keep_their_exit_status(start):
    other = subprocess.Popen([sys.executable, "-S", "-c", "raise SystemExit(5)"])
    run = start(("sh", "-c", "setsid sleep 60 & exit 0"))

    run.finish()
    run.stop()

    assert other.wait() == 5
