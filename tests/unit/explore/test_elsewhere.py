"""What is written outside of the checkpoint directory while a job saves is a part of the checkpoint, told to the reader, or a log."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from harness.explore.elsewhere import WrittenElsewhere, written_elsewhere
from harness.explore.operations import Elsewhere
from tests.unit.explore.recordings import Recording

SAVED = {"saved": r"saved (?P<step>\d+)"}


@pytest.fixture
def job(tmp_path: Path) -> Recording:
    return Recording(tmp_path / "log")


def saves(job: Recording, pointer: str = "here", *, speaks: bool = False) -> list[int]:
    """Three saves; returns where in the log each was half done."""
    middles = []
    for step in (2, 4, 6):
        if speaks:
            job.say("save.begin", step=step)
        job.save_file(f"pointer_{step}", pointer.format(step).encode())
        middles.append(len(job.entries) - 1)
        if speaks:
            job.say("save.end", step=step)
        else:
            job.print(f"saved {step}\n")
    return middles


def found(job: Recording, elsewhere: dict[str, Sequence[int]], *, speaks: bool = False, quiet: bool = False) -> WrittenElsewhere:
    for path, at in elsewhere.items():
        job.entries.append(Elsewhere(index=len(job.entries) + 1, t_s=9.0, path=path, at=tuple(at), quiet=quiet))
    job.end()
    log = job.log()
    with job.open_data() as data:
        return written_elsewhere(log, None if speaks else SAVED, data)


@pytest.mark.parametrize("pointer", ["/data/step_{0}", "step_{0}", '{{"path": "/data/step_{0}"}}', '"\\/data\\/step_{0}"'])
def test_a_pointer_to_what_lies_elsewhere_makes_that_a_part_of_the_checkpoint(job: Recording, pointer: str) -> None:
    middles = saves(job, pointer)

    told = found(job, {f"/data/step_{step}": [at] for step, at in zip((2, 4, 6), middles, strict=True)})

    assert told.notes == ()
    assert told.blind == (
        "what is saved names `/data/step_2` and 2 more, outside of the checkpoint directory: what a crash leaves of it is not known",
    )


def test_so_does_one_to_what_is_only_appended_to_or_looks_like_a_cache(job: Recording) -> None:
    at = saves(job, "/data/.store/all")

    assert found(job, {"/data/.store/all": at}, quiet=True).blind


def test_so_does_one_to_what_was_opened_before_any_save(job: Recording) -> None:
    saves(job, "/data/all", speaks=True)

    assert found(job, {"/data/all": [0], "/data/other": [0]}, speaks=True).blind[0].startswith("what is saved names `/data/all`, outside")


def test_so_does_a_pointer_that_was_made_elsewhere_and_moved_in(job: Recording) -> None:
    job.move_file_in("latest", b"/data/params")
    at = saves(job)

    assert found(job, {"/data/params": at}).blind


def test_what_is_only_appended_to_and_not_named_is_a_log(job: Recording) -> None:
    middles = saves(job, speaks=True)

    assert found(job, {"/data/log": middles}, speaks=True, quiet=True) == WrittenElsewhere()


def test_so_does_a_link(job: Recording) -> None:
    job.symlink("latest", "/data/params")
    at = saves(job)

    assert found(job, {"/data/params": at}).blind


@pytest.mark.parametrize("target", ["/data", "../../data"])
def test_so_does_a_link_to_the_directory_of_it(job: Recording, target: str) -> None:
    job.symlink("checkpoints", target)
    at = saves(job)

    assert found(job, {"/data/params": at, "/database": at}).blind[0].startswith("what is saved names `/data/params`, outside")


def test_so_does_a_pointer_of_a_job_that_says_nothing_of_its_saves(job: Recording) -> None:
    job.save_file("latest", b"/data/params")

    assert found(job, {"/data/params": [1], "/data/metrics.json": [1]}).blind[0].startswith("what is saved names `/data/params`, outside")


def test_what_every_save_writes_between_its_own_two_words_is_a_part_of_the_checkpoint(job: Recording) -> None:
    middles = saves(job, speaks=True)

    told = found(job, {"/data/params": middles}, speaks=True)

    assert told.blind[0].startswith("each save writes `/data/params`, too")


def test_what_one_save_writes_is_told_and_proves_nothing(job: Recording) -> None:
    middles = saves(job, speaks=True)

    told = found(job, {"/data/cache": middles[:1]}, speaks=True)

    assert told.blind == ()
    assert told.notes[0].startswith("while it saved, the job wrote `/data/cache`")


def test_what_a_job_that_does_not_say_when_a_save_begins_writes_meanwhile_is_told(job: Recording) -> None:
    middles = saves(job)

    told = found(job, {"/data/metrics.json": middles})

    assert told.blind == ()
    assert "`/data/metrics.json`" in told.notes[0]


def test_what_is_written_while_nothing_is_saved_is_nobodys_business(job: Recording) -> None:
    saves(job, speaks=True)

    assert found(job, {"/data/settings": [0], "/data/report": [len(job.entries)]}, speaks=True) == WrittenElsewhere()
