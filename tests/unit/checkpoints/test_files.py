"""Of a job of which nothing is known, names are all there is."""

import os
from pathlib import Path

import pytest

from harness.checkpoints import newest_committed, paths_of, step_path, survey, temporary_path
from harness.checkpoints.files import step_in


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("checkpoint-500", 500),
        ("step_00000010", 10),
        ("model_0010.pt", 10),
        ("epoch=3-step=120.ckpt", 120),
        ("step=120-epoch=3.ckpt", 120),
        ("ckpt_12-rank0.pt", 12),
        ("llama-7b-step100", 100),
        ("step.10", 10),
        ("weights.h5", -1),
        ("model.safetensors", -1),
        ("events.out.tfevents.1700000000.host", -1),
        ("final.json", -1),
        ("0", 0),
    ],
)
def test_a_number_in_a_name_is_its_step(name: str, step: int) -> None:
    assert step_in(name) == step


@pytest.mark.parametrize(
    "name",
    [
        "model_10.pt.tmp",
        "tmp_10",
        ".tmp-10",
        "tmpx8d2kq",
        "10.orbax-checkpoint-tmp-4",
        "step_10.tmp-0",
        "ckpt-10.partial",
        "model_10.incomplete",
        "a~",
    ],
)
def test_names_of_unfinished_things_are_temporary(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"1")

    (seen,) = survey(tmp_path, "files").checkpoints

    assert (seen.state, seen.is_latest) == ("temporary", False)


@pytest.mark.parametrize("name", ["temperature_10", "template-10", "atmpt_10", "partially_10"])
def test_words_that_only_look_unfinished_are_not(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"1")

    assert survey(tmp_path, "files").checkpoints[0].state == "committed"


def test_files_and_directories_count_and_the_highest_number_is_offered(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-20").mkdir()
    (tmp_path / "checkpoint-20" / "w").write_bytes(b"22")
    (tmp_path / "checkpoint-3.pt").write_bytes(b"1")
    (tmp_path / "trainer.log").write_bytes(b"333")

    seen = survey(tmp_path, "files").checkpoints

    assert [(each.path, each.step, each.size_bytes, each.is_latest) for each in seen] == [
        ("trainer.log", -1, 3, False),
        ("checkpoint-3.pt", 3, 1, False),
        ("checkpoint-20", 20, 2, True),
    ]
    assert newest_committed(tmp_path, "files") == seen[-1]


def test_without_numbers_the_one_modified_last_is_offered(tmp_path: Path) -> None:
    for name, modified_s in {"a": 1, "b": 3, "c": 2, "empty": 4}.items():
        (tmp_path / name).write_bytes(b"" if name == "empty" else b"1")
        os.utime(tmp_path / name, (modified_s, modified_s))

    assert [each.path for each in survey(tmp_path, "files").checkpoints if each.is_latest] == ["b"]


def test_what_holds_no_byte_is_incomplete(tmp_path: Path) -> None:
    (tmp_path / "checkpoint-5").mkdir()
    (tmp_path / "model_10.pt").touch()
    (tmp_path / "model_5.pt").write_bytes(b"1")

    seen = {each.path: each for each in survey(tmp_path, "files").checkpoints}

    assert (seen["checkpoint-5"].state, seen["model_10.pt"].state) == ("incomplete", "incomplete")
    assert seen["model_10.pt"].is_latest
    assert newest_committed(tmp_path, "files") == seen["model_5.pt"]


def test_a_link_that_stays_inside_is_a_pointer_and_one_that_leaves_is_lost(tmp_path: Path) -> None:
    directory = tmp_path / "checkpoints"
    directory.mkdir()
    (directory / "model_5.pt").write_bytes(b"1")
    (directory / "latest").symlink_to("model_5.pt")
    (directory / "loop").symlink_to("loop")
    (directory / "best").symlink_to(tmp_path)

    seen = survey(directory, "files")

    assert [each.path for each in seen.checkpoints] == ["model_5.pt"]
    assert seen.lost == (f"best: a symbolic link to {tmp_path}, which is not followed",)
    assert directory / "latest" in paths_of(directory, "files", "pointer")


def test_all_of_a_checkpoint_is_data(tmp_path: Path) -> None:
    path = tmp_path / "checkpoint-5"
    path.mkdir()
    (path / "small").write_bytes(b"1")
    (path / "large").write_bytes(b"22")

    assert paths_of(tmp_path, "files", "data") == (path / "large", path / "small")
    assert paths_of(tmp_path, "files", "metadata") == ()
    assert paths_of(tmp_path, "files", "step") == (path,)


def test_new_steps_are_named_like_those_that_are_there(tmp_path: Path) -> None:
    assert step_path(tmp_path, "files", 15) == tmp_path / "step_15"

    (tmp_path / "model_0010.pt").write_bytes(b"1")

    assert step_path(tmp_path, "files", 10) == tmp_path / "model_0010.pt"
    assert step_path(tmp_path, "files", 15) == tmp_path / "model_0015.pt"
    assert temporary_path(tmp_path, "files", 15) == tmp_path / "model_0015.pt.tmp"
