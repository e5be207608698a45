"""What an attempt is started with."""

from pathlib import Path

from harness.capabilities import Launch
from harness.protocol.attempt_key import AttemptKey
from harness.targets.local.environment import environment_of, marks_of


def launch(**fields):
    base = {
        "run_id": "20260101-abc-XY12z",
        "job": "train",
        "command": ("true",),
        "directory": Path("/"),
        "environment": {"STEPS": "5"},
        "checkpoint_dir": Path("/checkpoints"),
        "logs_dir": Path("/logs"),
    }
    return Launch(**(base | fields))


SCRATCH = Path("/scratch")


def test_the_platform_s_variables_stand_over_the_job_s():
    environment = environment_of(launch(environment={"STEPS": "5", "CLOUD_RUN_TASK_INDEX": "9"}, tasks=4), AttemptKey(2, 1), None, SCRATCH)

    assert environment == {
        "STEPS": "5",
        "TMPDIR": "/scratch",
        "CLOUD_RUN_JOB": "train",
        "CLOUD_RUN_EXECUTION": "train-xy12z",
        "CLOUD_RUN_TASK_INDEX": "2",
        "CLOUD_RUN_TASK_ATTEMPT": "1",
        "CLOUD_RUN_TASK_COUNT": "4",
        "CHECKPOINT_DIR": "/checkpoints",
        "HARNESS_EVENTS": "/logs/events-task2-attempt1.jsonl",
        "HARNESS_RUN_ID": "20260101-abc-XY12z",
    }


def test_an_inherited_temporary_directory_becomes_the_attempt_s_own_and_a_chosen_one_stays(monkeypatch):
    monkeypatch.setenv("TMPDIR", "/var/tmp")

    def directory(**environment):
        return environment_of(launch(environment=environment), AttemptKey(0, 0), None, SCRATCH)["TMPDIR"]

    assert directory(TMPDIR="/var/tmp") == "/scratch"
    assert directory(TMPDIR="/large") == "/large"


def test_the_barrier_is_named_only_where_there_is_one():
    environment = environment_of(launch(armed=("step:after", "save.begin:before")), AttemptKey(0, 0), Path("/s/barrier"), SCRATCH)

    assert environment["HARNESS_BARRIER"] == "/s/barrier"
    assert environment["HARNESS_ARMED"] == "step:after save.begin:before"


def test_the_marks_tell_attempts_apart():
    assert marks_of(launch(), AttemptKey(0, 1)) != marks_of(launch(), AttemptKey(1, 0))
