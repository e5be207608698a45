"""Why a recording is not the whole truth."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from harness.explore.blindness import TOLD_MAX, blindness_of
from harness.explore.operations import Blind
from harness.explore.recipe import Recipe
from harness.explore.rehearsal import acknowledges_of
from harness.explore.replay import replay
from tests.unit.explore.recordings import Recording

SAVED = {"saved": r"saved (?P<step>\d+)"}


@pytest.fixture
def job(tmp_path: Path) -> Recording:
    return Recording(tmp_path / "log")


def save(job: Recording, step: int) -> None:
    job.say("save.begin", step=step, digests={})
    job.save_file(f"step_{step}", b"x")
    job.say("save.end", step=step, digests={})


def blind(job: Recording, patterns: Mapping[str, str] | None = None, **options: Any) -> list[str]:
    recipe = Recipe(command=("x",), speaks_protocol=patterns is None, patterns=dict(patterns or {}))
    return list(blindness_of(replay(job.log(), acknowledges_of(recipe)), patterns, **options))


def test_a_job_that_saves_where_it_is_seen_is_seen(job: Recording) -> None:
    save(job, 2)
    save(job, 4)
    job.end()

    assert blind(job) == []


def test_a_recording_without_its_end_was_cut_short(job: Recording) -> None:
    save(job, 2)

    assert blind(job) == ["the recording was cut short"]


def test_what_the_recorder_could_not_see_is_told_with_its_path_and_only_once(job: Recording) -> None:
    save(job, 2)
    for index in (4, 5):
        job.entries.append(
            Blind(index=len(job.entries) + 1, t_s=float(index), what="mapped", detail="written through a mapping", path="step_2")
        )
    job.end()

    (told,) = blind(job)

    assert "shared mapping" in told
    assert "(step_2)" in told


def test_many_such_things_are_counted(job: Recording) -> None:
    save(job, 2)
    for index in range(TOLD_MAX + 3):
        job.entries.append(Blind(index=len(job.entries) + 1, t_s=1.0, what="call", detail=f"call {index}"))
    job.end()

    told = blind(job)

    assert len(told) == TOLD_MAX + 1
    assert told[-1] == "and 3 more such things"


def test_a_job_that_writes_nothing_saves_somewhere_else(job: Recording) -> None:
    job.say("save.end", step=2, digests={})
    job.end()

    assert "nothing was written below the checkpoint directory" in blind(job)[0]


def test_a_save_during_which_nothing_was_written_lies_elsewhere(job: Recording) -> None:
    save(job, 2)
    job.save_file("log", b"unrelated, between saves")
    job.say("save.begin", step=4, digests={})
    job.say("save.end", step=4, digests={})
    job.end()

    (told,) = blind(job)

    assert told.startswith("the save of step 4 was acknowledged, and nothing was written for it")


def test_opening_and_closing_a_file_is_no_content(job: Recording) -> None:
    save(job, 2)
    job.say("save.begin", step=4, digests={})
    job.open("step_2")
    job.close("step_2")
    job.say("save.end", step=4, digests={})
    job.end()

    assert "step 4" in blind(job)[0]


def test_two_saves_at_once_may_be_written_at_any_time_between_their_words(job: Recording) -> None:
    job.say("save.begin", step=2, digests={})
    job.say("save.begin", step=4, digests={})
    job.save_file("both", b"x")
    job.say("save.end", step=2, digests={})
    job.say("save.end", step=4, digests={})
    job.end()

    assert blind(job) == []


def test_of_a_silent_job_what_is_printed_counts(job: Recording) -> None:
    job.save_file("a", b"x")
    job.print("saved 2\n")
    job.print("saved 4\n")
    job.end()

    (told,) = blind(job, SAVED)

    assert "step 4" in told


def test_a_save_that_is_acknowledged_before_it_is_written_is_not_said_to_lie_elsewhere_for_sure(job: Recording) -> None:
    for step in (2, 4):
        job.print(f"saved {step}\n")
        job.save_file(f"step_{step}", b"x")
    job.end()

    (told,) = blind(job, SAVED)

    assert told.startswith("the save of step 2 was acknowledged, and nothing was written for it")
    assert told.endswith("it lies somewhere else, or was acknowledged before it was written")


def test_saves_that_are_acknowledged_in_one_text_are_of_a_buffered_output_and_lie_nowhere_else(job: Recording) -> None:
    for step in (2, 4, 6):
        job.save_file(f"step_{step}", b"x")
    job.print("saved 2\nsaved 4\nsaved 6\n")
    job.end()

    (told,) = blind(job, SAVED)

    assert told.startswith("steps 2, 4, 6 were acknowledged in one text")
    assert "PYTHONUNBUFFERED=1" in told
    assert "stdbuf -oL" in told


def test_a_save_that_is_acknowledged_twice_in_one_text_is_acknowledged(job: Recording) -> None:
    job.save_file("a", b"x")
    job.print("saved 2\nwell saved 2\n")
    job.end()

    assert blind(job, SAVED) == []


def test_a_job_that_could_acknowledge_saves_and_does_not_promises_nothing(job: Recording) -> None:
    job.save_file("a", b"x")
    job.end()

    assert "acknowledged no save" in blind(job)[0]
    assert "acknowledged no save" in blind(job, SAVED)[0]
    assert blind(job, {}) == []


@pytest.mark.parametrize("name", ["final.json", "tmp"])
def test_a_silent_job_that_writes_nothing_but_its_result_saves_somewhere_else_or_not_at_all(job: Recording, name: str) -> None:
    job.create(name)
    job.write(name, b"{")
    job.write(name, b"}", offset=1)
    job.close(name)
    if name != "final.json":
        job.rename(name, "final.json")
    job.end()

    (told,) = blind(job, {}, result="final.json")

    assert told.startswith("nothing but its result, `final.json`, was written")
    assert blind(job, {}, result="other.json") == []
    assert blind(job, {}, result="final.json", is_of_recovery=True) == []


def test_a_result_that_is_written_more_than_once_is_a_checkpoint_as_well(job: Recording) -> None:
    job.create("state.json")
    job.write("state.json", b"1")
    job.write("state.json", b"2")
    job.close("state.json")
    job.end()

    assert blind(job, {}, result="state.json") == []


def test_a_silent_job_with_a_checkpoint_beside_its_result_is_seen(job: Recording) -> None:
    job.save_file("checkpoint", b"1")
    job.save_file("final.json", b"1")
    job.end()

    assert blind(job, {}, result="final.json") == []


def test_a_recovery_need_not_save(job: Recording) -> None:
    job.say("restore", step=4, digests={})
    job.end()

    assert blind(job, is_of_recovery=True) == []
