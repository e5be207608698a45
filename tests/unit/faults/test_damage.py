"""Damage is deterministic, read back from disk, and keeps the original."""

import hashlib
import json
import os
from pathlib import Path

import pytest

from harness import checkpoints
from harness.errors import InjectionError
from harness.scenario.faults import AddEmptyStep, AddStaleTemporary, DeletePath, FlipByte, TearRename, TruncateFile
from harness.undo import KeptOriginal, NothingToUndo

DATA = bytes(range(200))


def save(directory: Path, step: int) -> Path:
    path = directory / f"step_{step:08d}"
    path.mkdir()
    (path / "state.bin").write_bytes(DATA)
    (path / "small.bin").write_bytes(b"ab")
    files = {name: [len(data), hashlib.sha256(data).hexdigest()] for name, data in (("state.bin", DATA), ("small.bin", b"ab"))}
    (path / "manifest.json").write_text(json.dumps({"step": step, "files": files}))
    return path


@pytest.fixture
def newest(target) -> Path:
    save(target.directory, 5)
    return save(target.directory, 10)


def test_the_sample_is_what_the_layout_calls_committed(target, newest) -> None:
    assert [(seen.step, seen.state) for seen in checkpoints.survey(target.directory, "step-directories").checkpoints] == [
        (5, "committed"),
        (10, "committed"),
    ]


# ---- in the newest checkpoint --------------------------------------------------------------------------------------------


def test_one_bit_of_the_largest_data_file_flips(make, newest, tmp_path) -> None:
    fault = make(FlipByte(at_fraction=0.5))
    undo = fault.undo()
    copy = tmp_path / "kept" / "1-fault-task-1-attempt-2" / "state.bin"

    assert undo == KeptOriginal(path=str(newest / "state.bin"), copy=str(copy))
    assert not copy.exists()
    assert fault.observe(()) == ""
    assert fault.inject() == "data: step_00000010/state.bin"
    damaged = (newest / "state.bin").read_bytes()
    assert [position for position in range(len(DATA)) if damaged[position] != DATA[position]] == [100]
    assert damaged[100] == DATA[100] ^ 1
    assert copy.read_bytes() == DATA
    before, after = (hashlib.sha256(data).hexdigest()[:16] for data in (DATA, damaged))
    assert fault.observe(()) == f"state.bin: byte 100 of 200 was 0x64, is 0x65; digest was {before}, is {after}"


@pytest.mark.parametrize(("fraction", "position"), [(0.0, 0), (0.9999, 199)])
def test_the_byte_is_where_the_fraction_says(make, newest, fraction, position) -> None:
    make(FlipByte(at_fraction=fraction)).inject()

    assert (newest / "state.bin").read_bytes()[position] == DATA[position] ^ 1


@pytest.mark.parametrize(("fraction", "size"), [(0.5, 100), (0.0, 0)])
def test_a_file_is_cut_off(make, newest, fraction, size) -> None:
    fault = make(TruncateFile(keep_fraction=fraction))
    fault.inject()

    assert (newest / "state.bin").read_bytes() == DATA[:size]
    assert fault.observe(()) == f"state.bin: 200 bytes before, {size} after"


def test_a_file_of_a_class_is_deleted(make, newest, tmp_path) -> None:
    fault = make(DeletePath(path_class="metadata"))
    fault.inject()

    assert not (newest / "manifest.json").exists()
    assert fault.observe(()) == "manifest.json: file (metadata) is gone"
    assert (tmp_path / "kept" / "1-fault-task-1-attempt-2" / "manifest.json").exists()


def test_a_whole_step_is_deleted_and_kept(make, newest, tmp_path) -> None:
    fault = make(DeletePath(path_class="step"))
    fault.inject()

    assert not newest.exists()
    assert fault.observe(()) == "step_00000010: directory (step) is gone"
    assert (tmp_path / "kept" / "1-fault-task-1-attempt-2" / newest.name / "state.bin").read_bytes() == DATA


def test_a_pointer_is_deleted_and_its_end_left_alone(make, target, newest, tmp_path) -> None:
    (target.directory / "latest").symlink_to(newest.name)
    make(DeletePath(path_class="pointer")).inject()

    assert not os.path.lexists(target.directory / "latest")
    assert newest.exists()
    assert (tmp_path / "kept" / "1-fault-task-1-attempt-2" / "latest").readlink() == Path(newest.name)


@pytest.mark.parametrize("kind", [FlipByte(), TruncateFile(), DeletePath(), DeletePath(path_class="step")])
def test_where_nothing_is_committed_it_is_said_what_was_looked_for(make, target, kind) -> None:
    fault = make(kind)

    for act in (fault.undo, fault.inject):
        with pytest.raises(
            InjectionError, match=r"looked for a .*committed checkpoint \(layout step-directories\) in .*checkpoints and found none"
        ):
            act()
    assert fault.observe(()) == ""


@pytest.mark.parametrize("kind", [FlipByte(path_class="pointer"), TruncateFile(path_class="pointer")])
def test_a_link_has_no_bytes_to_damage(make, target, newest, kind) -> None:
    (target.directory / "latest").symlink_to(newest.name)

    with pytest.raises(InjectionError, match="no bytes of its own"):
        make(kind).inject()


@pytest.mark.parametrize("kind", [FlipByte(path_class="step"), TruncateFile(path_class="step")])
def test_a_directory_has_no_bytes_to_damage(make, newest, kind) -> None:
    with pytest.raises(InjectionError, match="not a regular file"):
        make(kind).inject()


@pytest.mark.parametrize(
    ("kind", "said"), [(FlipByte(path_class="pointer"), "no byte to flip"), (TruncateFile(path_class="pointer"), "cannot become shorter")]
)
def test_an_empty_file_cannot_be_damaged_further(make, target, newest, kind, said) -> None:
    (target.directory / "latest").write_bytes(b"")

    with pytest.raises(InjectionError, match=said):
        make(kind).inject()


def test_the_text_file_of_the_guide_can_be_damaged(make, target) -> None:
    path = target.directory / "job-task-1-checkpoint.txt"
    path.write_text("15")
    make(TruncateFile(keep_fraction=0.5), layout="text-file").inject()

    assert path.read_text() == "1"


# ---- beside the checkpoints ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("moved", "final"), [(0.0, 0), (0.5, 1), (0.9, 2)])
def test_a_rename_stops_half_way(make, target, newest, moved, final) -> None:
    fault = make(TearRename(moved_fraction=moved))

    fault.inject()

    assert len([path for path in newest.rglob("*") if path.is_file()]) == final
    assert len(list((target.directory / "step_00000010.tmp-0").iterdir())) == 3 - final
    assert f"{final} of 3 files" in fault.observe(())


def test_a_rename_of_one_file_cannot_stop_half_way(make, target) -> None:
    (target.directory / "step_00000005").mkdir()
    (target.directory / "step_00000005" / "manifest.json").write_text(json.dumps({"step": 5, "files": {}}))

    with pytest.raises(InjectionError, match="half way"):
        make(TearRename()).inject()


def test_an_empty_step_appears_under_a_later_final_name(make, target, newest) -> None:
    fault = make(AddEmptyStep(steps_ahead=5))

    assert isinstance(fault.undo(), NothingToUndo)
    fault.inject()
    assert list((target.directory / "step_00000015").iterdir()) == []
    assert fault.observe(()) == "step_00000015: a directory with 0 entries"


def test_an_empty_step_can_be_the_first(make, target) -> None:
    make(AddEmptyStep(steps_ahead=5)).inject()

    assert (target.directory / "step_00000005").is_dir()


def test_an_empty_step_needs_a_layout_with_directories(make) -> None:
    with pytest.raises(InjectionError, match="text-file keeps one file for all steps"):
        make(AddEmptyStep(), layout="text-file").inject()


def test_an_empty_step_does_not_touch_what_is_there(make, target, newest) -> None:
    (target.directory / "step_00000015").mkdir()

    with pytest.raises(InjectionError, match="exists"):
        make(AddEmptyStep(steps_ahead=5)).inject()


def test_a_checkpoint_without_a_step_has_no_later_one(make, target) -> None:
    (target.directory / "model.bin").write_bytes(DATA)

    with pytest.raises(InjectionError, match="says no step"):
        make(AddEmptyStep(), layout="files").inject()
    with pytest.raises(InjectionError, match="with a step"):
        make(AddStaleTemporary(), layout="files").inject()


def test_half_a_save_appears_under_the_temporary_name_of_the_next_step(make, target, newest) -> None:
    fault = make(AddStaleTemporary())
    fault.inject()
    temporary = target.directory / "step_00000015.tmp-0"

    assert (temporary / "state.bin").read_bytes() == DATA[:100]
    assert (temporary / "small.bin").read_bytes() == b"a"
    size = sum(file.stat().st_size for file in temporary.iterdir())
    assert fault.observe(()) == f"step_00000015.tmp-0: 3 files, {size} bytes"
    states = {(seen.step, seen.state) for seen in checkpoints.survey(target.directory, "step-directories").checkpoints}
    assert states == {(5, "committed"), (10, "committed"), (15, "temporary")}


def test_after_one_save_the_next_is_as_far_again(make, target) -> None:
    save(target.directory, 4)
    make(AddStaleTemporary()).inject()

    assert (target.directory / "step_00000008.tmp-0").is_dir()


def test_half_a_text_file_appears_under_its_temporary_name(make, target) -> None:
    (target.directory / "job-task-1-checkpoint.txt").write_text("15")
    make(AddStaleTemporary(), layout="text-file").inject()

    assert (target.directory / "job-task-1-checkpoint.txt.tmp").read_text() == "1"


def test_without_a_checkpoint_there_is_no_half_of_one(make, target) -> None:
    with pytest.raises(InjectionError, match="looked for a committed checkpoint"):
        make(AddStaleTemporary()).inject()


def test_a_temporary_that_is_there_already_is_left_alone(make, target, newest) -> None:
    (target.directory / "step_00000015.tmp-0").mkdir()

    with pytest.raises(InjectionError, match="there already"):
        make(AddStaleTemporary()).inject()


def test_damage_heals_by_saying_that_it_stays(make, newest) -> None:
    fault = make(FlipByte())
    fault.inject()

    assert fault.heal_after_s is None
    assert "stays" in fault.heal()
