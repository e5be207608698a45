"""Phases by words and by operations."""

import pytest
from msgspec.structs import replace

from harness.scenario import LogPatterns, Outside, Workload
from harness.scenario.life import Life, life_of

JOB = Workload(name="job", command=("job",))
SILENT = replace(JOB, speaks_protocol=False)


def lived(life: Life, *happenings: str) -> str | None:
    """``!rename`` is an operation, all else a word."""
    for each in happenings:
        if each.startswith("!"):
            life.act(each[1:])
        else:
            life.hear(each)
    return life.phase


@pytest.mark.parametrize(
    ("words", "phase"),
    [
        ((), "init"),
        (("boot",), "init"),
        (("boot", "restore.begin"), "restore"),
        (("boot", "restore.begin", "restore"), "restore"),
        (("boot", "restore.begin", "restore", "start"), "step"),
        (("start", "step", "collective"), "step"),
        (("step", "save.begin"), "save"),
        (("step", "save.begin", "save.write"), "save"),
        (("step", "save.begin", "save.commit", "save.latest"), "commit"),
        (("step", "save.begin", "save.commit", "save.end"), "step"),
        (("step", "save.begin", "save.end", "gc.begin"), "garbage-collection"),
        (("step", "save.begin", "save.end", "gc.begin", "gc.end"), "step"),
        (("step", "sigterm"), "handler"),
        (("step", "sigterm", "save.begin", "save.commit"), "emergency-save"),
        (("step", "sigterm", "save.begin", "sigterm"), "emergency-save"),
        (("step", "sigterm", "save.begin", "save.end", "gc.begin"), "handler"),
        (("step", "sigterm", "boot"), "init"),
        (("step", "done"), "finish"),
        (("step", "commit"), "step"),
    ],
)
def test_a_job_is_in_the_phase_that_its_words_tell(words, phase):
    assert lived(Life(), *words) == phase


@pytest.mark.parametrize(
    ("before", "operation", "phase"),
    [
        (("step",), "create", "save"),
        (("step",), "rmdir", "garbage-collection"),
        (("save.begin",), "write", "save"),
        (("save.begin",), "rename", "commit"),
        (("sigterm",), "write", "emergency-save"),
        (("sigterm", "save.begin"), "rename", "emergency-save"),
        (("gc.begin",), "unlink", "garbage-collection"),
    ],
)
def test_what_a_job_does_to_its_storage_tells_what_it_does_not_say(before, operation, phase):
    assert lived(Life(), *before, f"!{operation}") == phase


def test_an_operation_tells_the_phase_until_the_next_word():
    assert lived(Life(), "save.begin", "!rename", "save.write") == "save"
    assert lived(Life(), "step", "!write", "collective") == "step"


def test_only_what_has_something_to_restore_recovers():
    """A first attempt that makes its lock is at its beginning."""
    assert lived(Life(), "boot", "!create") == "init"
    assert lived(Life(is_first=False), "boot", "!create") == "restore"
    assert lived(Life(), "boot", "restore.begin", "!open") == "restore", "it says so"


def test_a_save_that_a_notice_comes_into_is_not_the_save_that_it_asks_for():
    told = ("step", "save.begin", "sigterm")
    assert [lived(Life(), *told, each) for each in ("save.commit", "!write", "!rename")] == ["handler"] * 3
    assert lived(Life(), *told, "save.end", "!write") == "emergency-save"
    assert lived(Life(), *told, "save.begin", "!write") == "emergency-save"


def test_of_a_job_that_says_nothing_of_its_beginning_only_its_operations_tell():
    assert lived(Life(tells_beginning=False)) is None
    assert lived(Life(tells_beginning=False), "!rename") == "save"
    assert lived(Life(tells_beginning=False), "!unlink") == "garbage-collection"
    assert lived(Life(tells_beginning=False), "!write", "save.end") == "step"


@pytest.mark.parametrize(
    ("job", "attempt", "phase"),
    [
        (JOB, 0, "init"),
        (SILENT, 0, None),
        (replace(SILENT, outside=Outside(logs=LogPatterns(step=r"step (?P<step>\d+)"))), 0, "init"),
        (replace(SILENT, outside=Outside(logs=LogPatterns(saved=r"saved (?P<step>\d+)"))), 1, None),
        (replace(SILENT, outside=Outside(logs=LogPatterns(resumed=r"resumed (?P<step>\d+)"))), 0, None),
        (replace(SILENT, outside=Outside(logs=LogPatterns(resumed=r"resumed (?P<step>\d+)"))), 1, "init"),
    ],
)
def test_a_beginning_is_told_by_a_job_that_speaks_by_its_steps_or_by_a_resume(job, attempt, phase):
    assert life_of(job, attempt).phase == phase
