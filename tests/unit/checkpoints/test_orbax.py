"""The layout of Orbax 0.12.8, and each corruption that was tried on the real one."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.checkpoints import newest_committed, paths_of, step_path, survey, temporary_path
from harness.checkpoints.orbax import OCDBT_MAGIC
from harness.history import CheckpointSeen


def ocdbt_manifest(length: int = 114) -> bytes:
    return OCDBT_MAGIC + length.to_bytes(8, "little") + bytes(length - 12)


def build_arrays(item: Path, *, of_jax: bool = True) -> None:
    files = {
        "_METADATA": b'{"tree_metadata": {}, "use_ocdbt": true}',
        "commit_success.txt": b"Checkpoint commit was successful",
        "manifest.ocdbt": ocdbt_manifest(),
        "d/091741d0": bytes(395),
        "ocdbt.process_0/manifest.ocdbt": ocdbt_manifest(242),
        "ocdbt.process_0/d/49e79abf": bytes(2727),
        "ocdbt.process_0/d/f91de021": bytes(177),
    }
    if of_jax:
        files |= {"_sharding": b'{"cGFyYW1z": "{}"}', "array_metadatas/process_0": b'{"array_metadatas": [NaN]}'}
    for name, data in files.items():
        (item / name).parent.mkdir(parents=True, exist_ok=True)
        (item / name).write_bytes(data)


def build(directory: Path, name: str, *, of_jax: bool = True) -> Path:
    step = directory / name
    build_arrays(step / "state", of_jax=of_jax)
    (step / "progress").mkdir()
    (step / "progress" / "metadata").write_text('{"step": 4}')
    (step / "progress" / "commit_success.txt").write_text("Checkpoint commit was successful")
    (step / "_CHECKPOINT_METADATA").write_text(json.dumps({"item_handlers": {"state": "Standard", "progress": "Json"}, "metrics": {}}))
    (step / "commit_success.txt").write_text("Checkpoint commit was successful")
    return step


def look(directory: Path) -> dict[str, CheckpointSeen]:
    seen = survey(directory, "orbax")

    assert seen.lost == ()
    return {checkpoint.path: checkpoint for checkpoint in seen.checkpoints}


def test_finished_steps_are_committed_and_the_highest_is_offered(tmp_path: Path) -> None:
    build(tmp_path, "2")
    build(tmp_path, "10")
    build(tmp_path, "4.orbax-checkpoint-tmp")
    build(tmp_path / "damaged", "12")
    (tmp_path / "final.json").write_text('{"step": 10}')

    states = [(each.path, each.step, each.state, each.is_latest) for each in survey(tmp_path, "orbax").checkpoints]

    assert states == [("2", 2, "committed", False), ("4.orbax-checkpoint-tmp", 4, "temporary", False), ("10", 10, "committed", True)]


@pytest.mark.parametrize("name", ["4.orbax-checkpoint-tmp", "4.orbax-checkpoint-tmp-1700000000"])
def test_temporary_names_old_and_new_are_ignored_by_restore(tmp_path: Path, name: str) -> None:
    build(tmp_path, name)

    assert [(each.step, each.state, each.is_latest) for each in look(tmp_path).values()] == [(4, "temporary", False)]
    assert newest_committed(tmp_path, "orbax") is None


def test_an_empty_directory_is_incomplete_and_yet_offered(tmp_path: Path) -> None:
    build(tmp_path, "2")
    (tmp_path / "4").mkdir()

    seen = look(tmp_path)

    assert (seen["4"].state, seen["4"].is_latest, seen["4"].files) == ("incomplete", True, 0)
    assert newest_committed(tmp_path, "orbax") == seen["2"]


def test_numpy_trees_describe_no_processes(tmp_path: Path) -> None:
    build(tmp_path, "4", of_jax=False)

    assert look(tmp_path)["4"].state == "committed"


def test_arrays_saved_without_a_manager_lie_in_the_step_itself(tmp_path: Path) -> None:
    build_arrays(tmp_path / "3")
    build_arrays(tmp_path / "4")
    (tmp_path / "4" / "manifest.ocdbt").unlink()

    assert [(each.step, each.state) for each in look(tmp_path).values()] == [(3, "committed"), (4, "incomplete")]


def test_arrays_without_ocdbt_need_a_file_of_data(tmp_path: Path) -> None:
    item = build(tmp_path, "4") / "state"
    shutil.rmtree(item)
    (item / "params.w").mkdir(parents=True)
    (item / "_METADATA").write_text('{"use_ocdbt": false}')
    (item / "params.w" / ".zarray").write_text("{}")

    without = look(tmp_path)["4"].state
    (item / "params.w" / "0.0").write_bytes(b"1")

    assert (without, look(tmp_path)["4"].state) == ("incomplete", "committed")


def test_other_items_need_some_content(tmp_path: Path) -> None:
    build(tmp_path, "4")
    (tmp_path / "4" / "custom").mkdir()

    without = look(tmp_path)["4"].state
    (tmp_path / "4" / "custom" / "blob").write_bytes(b"1")

    assert (without, look(tmp_path)["4"].state) == ("incomplete", "committed")


def test_an_item_under_a_temporary_name_is_unfinished(tmp_path: Path) -> None:
    step = build(tmp_path, "4")
    (step / "_CHECKPOINT_METADATA").unlink()
    (step / "state").rename(step / "state.orbax-checkpoint-tmp")

    assert look(tmp_path)["4"].state == "incomplete"


def delete(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


UNNOTICED = [
    ("_CHECKPOINT_METADATA", delete),
    ("_CHECKPOINT_METADATA", empty),
    ("_CHECKPOINT_METADATA", cut),
    ("commit_success.txt", delete),
    ("commit_success.txt", empty),
    ("state/commit_success.txt", delete),
    ("progress/commit_success.txt", delete),
    ("state/_METADATA", delete),
    ("state/_sharding", delete),
    ("state/_sharding", empty),
    ("state/_sharding", cut),
    ("state/array_metadatas", delete),
    ("state/array_metadatas/process_0", delete),
    ("state/ocdbt.process_0/manifest.ocdbt", delete),
    ("state/ocdbt.process_0/manifest.ocdbt", empty),
]
"""Orbax restores these without a word."""

FATAL = [
    ("progress", delete),
    ("progress/metadata", delete),
    ("progress/metadata", empty),
    ("progress/metadata", cut),
    ("state", delete),
    ("state/_METADATA", empty),
    ("state/_METADATA", cut),
    ("state/array_metadatas/process_0", empty),
    ("state/array_metadatas/process_0", cut),
    ("state/manifest.ocdbt", delete),
    ("state/manifest.ocdbt", empty),
    ("state/manifest.ocdbt", cut),
    ("state/d", delete),
    ("state/d/091741d0", delete),
    ("state/d/091741d0", empty),
    ("state/ocdbt.process_0", delete),
    ("state/ocdbt.process_0/d", delete),
    ("state/ocdbt.process_0/d/49e79abf", empty),
]
"""On these its restore raises, and ``latest_step`` names the step all the same."""


@pytest.mark.parametrize(("name", "damage"), UNNOTICED, ids=lambda value: getattr(value, "__name__", value))
def test_what_orbax_does_without_may_be_absent(tmp_path: Path, name: str, damage: Callable[[Path], None]) -> None:
    damage(build(tmp_path, "4") / name)

    assert look(tmp_path)["4"].state == "committed"


@pytest.mark.parametrize(("name", "damage"), FATAL, ids=lambda value: getattr(value, "__name__", value))
def test_what_orbax_cannot_restore_is_incomplete(tmp_path: Path, name: str, damage: Callable[[Path], None]) -> None:
    build(tmp_path, "2")
    damage(build(tmp_path, "4") / name)

    seen = look(tmp_path)

    assert (seen["4"].state, seen["4"].is_latest) == ("incomplete", True)
    assert newest_committed(tmp_path, "orbax") == seen["2"]


def test_a_flipped_byte_keeps_the_step_committed_and_changes_its_digest(tmp_path: Path) -> None:
    data = build(tmp_path, "4") / "state" / "ocdbt.process_0" / "d" / "49e79abf"
    before = look(tmp_path)["4"]
    data.write_bytes(data.read_bytes()[:-1] + b"\x01")
    after = look(tmp_path)["4"]

    assert (before.state, after.state) == ("committed", "committed")
    assert before.digest != after.digest


def test_a_json_item_may_hold_nan_but_no_abyss(tmp_path: Path) -> None:
    item = build(tmp_path, "4") / "progress" / "metadata"
    item.write_text('{"loss": NaN}')
    with_nan = look(tmp_path)["4"].state
    item.write_text("[" * 100_000)

    assert (with_nan, look(tmp_path)["4"].state) == ("committed", "incomplete")


def test_files_have_classes(tmp_path: Path) -> None:
    step = build(tmp_path, "4")
    state = step / "state"

    data = paths_of(tmp_path, "orbax", "data")

    assert data[:2] == (state / "ocdbt.process_0/d/49e79abf", state / "d/091741d0")
    assert data[-1] == step / "progress/metadata"
    assert set(paths_of(tmp_path, "orbax", "metadata")) == {
        step / "_CHECKPOINT_METADATA",
        state / "_METADATA",
        state / "_sharding",
        state / "array_metadatas/process_0",
        state / "manifest.ocdbt",
        state / "ocdbt.process_0/manifest.ocdbt",
    }
    assert {path.name for path in paths_of(tmp_path, "orbax", "commit-marker")} == {"commit_success.txt"}
    assert paths_of(tmp_path, "orbax", "pointer") == ()
    assert paths_of(tmp_path, "orbax", "step") == (step,)


def test_steps_have_paths(tmp_path: Path) -> None:
    assert step_path(tmp_path, "orbax", 15) == tmp_path / "15"
    assert temporary_path(tmp_path, "orbax", 15) == tmp_path / "15.orbax-checkpoint-tmp"

    build(tmp_path, "0010")

    assert step_path(tmp_path, "orbax", 10) == tmp_path / "0010"
    assert step_path(tmp_path, "orbax", 15) == tmp_path / "0015"
