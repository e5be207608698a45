"""A job whose checkpoints name their directory by its absolute path is known by that, however it is written."""

from pathlib import Path

import pytest

from harness.explore.judgement import Recovery
from harness.explore.operations import Item
from harness.explore.own_path import as_copied, believed, names_itself, names_itself_in_links_only
from harness.explore.recipe import Tried
from tests.unit.explore.recordings import ROOT, Recording


@pytest.fixture
def job(tmp_path: Path) -> Recording:
    return Recording(tmp_path / "log")


def names(job: Recording) -> tuple[bool, bool]:
    """Whether it does, and whether by links only."""
    job.end()
    log = job.log()
    with job.open_data() as data:
        return names_itself(log, data), names_itself_in_links_only(log, data)


@pytest.mark.parametrize(
    "content",
    [
        ROOT.encode(),
        b'{"latest": "' + ROOT.replace("/", "\\/").encode() + b'\\/step_5"}',
        b"file://" + ROOT.encode() + b"/step_5",
        ROOT.replace("/", "%2F").encode(),
        bytes(100_000) + ROOT.encode() + b"/step_5" + bytes(100_000),
    ],
)
def test_a_file_that_names_it_is_found_however_large_it_is(job: Recording, content: bytes) -> None:
    job.save_file("latest", content)

    assert names(job) == (True, False)


def test_what_orbax_tells_people_of_a_save_names_nothing(job: Recording) -> None:
    job.save_file("5/commit_success.txt", b"Checkpoint commit was successful to " + ROOT.encode() + b"/5")

    assert not names(job)[0]


def test_a_path_that_was_written_in_two_writes_is_found(job: Recording) -> None:
    job.create("latest")
    job.write("latest", ROOT[:9].encode())
    job.write("latest", ROOT[9:].encode(), 9)

    assert names(job) == (True, False)


def test_so_is_what_came_from_outside_or_was_there(job: Recording) -> None:
    job.initial.append(Item(path="latest", node=77, kind="file", data=job.store(ROOT.encode())))

    assert names(job) == (True, False)


def test_so_is_the_name_of_a_file(job: Recording) -> None:
    job.save_file("index" + ROOT.replace("/", "_"), b"x")

    assert names(job) == (True, False)


@pytest.mark.parametrize(("target", "only"), [(ROOT, True), (f"{ROOT}/step_5", True), (f"../..{ROOT}/step_5", False)])
def test_a_link_names_it_too_and_can_be_mended_where_it_leads_there_directly(job: Recording, target: str, only: bool) -> None:
    job.symlink("latest", target)

    assert names(job) == (True, only)


@pytest.mark.parametrize("content", [b"", b"step_5", b"/recorded", b"checkpoints", b"/recorded/2/checkpoints"])
def test_what_does_not_name_it_is_left_alone(job: Recording, content: bytes) -> None:
    job.save_file("latest", content)
    job.symlink("link", "step_5")

    assert names(job)[0] is False


def test_where_copies_lie_at_the_very_path_no_link_is_mended(job: Recording) -> None:
    job.end()

    log = job.log()

    assert as_copied(log, checkpoints=ROOT).header.root == ""
    assert as_copied(log, checkpoints="") == log


def test_a_recovery_that_fails_and_speaks_of_the_path_of_the_recording_proves_nothing() -> None:
    fails = Recovery(exit_code=1, detail=f"FileNotFoundError: '{ROOT}/step_5'")
    right = Recovery(exit_code=0, detail=f"read {ROOT}/step_5")

    for tried in (Tried(state="s", first=fails), Tried(state="s", first=right, second=fails)):
        said = believed(tried, ROOT)
        assert (said.state, said.first) == ("s", None)
        assert said.lost.startswith(f"recovery failed and named {ROOT}")
        assert believed(tried, "") == tried
    for tried in (Tried(state="s", first=right), Tried(state="s", first=Recovery(exit_code=1, detail="step_5"))):
        assert believed(tried, ROOT) == tried
