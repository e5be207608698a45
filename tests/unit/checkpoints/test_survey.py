"""A survey never raises for what a job does to its directory, and says what it could not see."""

import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.checkpoints import Survey, look, manifest, newest_committed, paths_of, step_path, survey, temporary_path
from harness.checkpoints.content import Budget
from harness.checkpoints.survey import CHECKPOINTS_MAX, LOST_MAX
from harness.checkpoints.tree import Tree, read_tree
from harness.history import CheckpointSeen
from harness.scenario import Layout
from harness.scenario.faults import PathClass

LAYOUTS: tuple[Layout, ...] = get_args(Layout)
CLASSES: tuple[PathClass, ...] = get_args(PathClass)

NAMES = st.sampled_from(
    [
        *(
            "10",
            "4",
            "4.orbax-checkpoint-tmp",
            "_METADATA",
            "_CHECKPOINT_METADATA",
            "manifest.ocdbt",
            "d",
            "ocdbt.process_0",
            "state",
            "metadata",
        ),
        *("step_00000010", "step_00000010.tmp-0", "step_00000005", "manifest.json", "state.json", "latest", "owner"),
        *("job-task-0-checkpoint.txt", "job-task-0-checkpoint.txt.tmp"),
        *("job", "checkpoint_000005", "checkpoint_manager_snapshot.json", "s.json", "array_metadatas", "commit_success.txt"),
        *("model_7.pt", "model_9.pt.tmp", os.fsdecode(b"\xff\xfe 3")),
    ]
)
CONTENTS = st.one_of(
    st.binary(max_size=30),
    st.sampled_from(
        [
            b"",
            b"15\n",
            b"{}",
            b"[NaN]",
            b'{"step": 10, "files": {}}',
            b'{"step": 10, "files": {"state.json": [2, "x"]}}',
            b'{"checkpoint_results": [{"checkpoint_dir_name": "checkpoint_000005", "metrics": {"step": 5}}]}',
            b'{"item_handlers": {"state": null}}',
            b"[" * 20_000,
        ]
    ),
)
TREES = st.recursive(
    st.one_of(CONTENTS, st.sampled_from(["fifo", "link:latest", "link:.", "link:/", "link:loop"])),
    lambda children: st.dictionaries(NAMES, children, max_size=5),
    max_leaves=20,
).filter(lambda tree: isinstance(tree, dict))


def build(path: Path, node: object) -> None:
    if isinstance(node, dict):
        path.mkdir(exist_ok=True)
        for name, child in node.items():
            build(path / name, child)
    elif isinstance(node, bytes):
        path.write_bytes(node)
    elif node == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(str(node).removeprefix("link:"))


@settings(deadline=None, max_examples=100)
@given(TREES, st.sampled_from(LAYOUTS))
def test_no_tree_breaks_a_survey(tree: dict[str, object], layout: Layout) -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        build(directory, tree)

        seen = survey(directory, layout)
        newest = newest_committed(directory, layout)
        chosen = [path for path_class in CLASSES for path in paths_of(directory, layout, path_class)]
        places = (step_path(directory, layout, 15), temporary_path(directory, layout, 15))
        ledger = manifest(directory)

    committed = [checkpoint for checkpoint in seen.checkpoints if checkpoint.state == "committed"]
    assert (newest in committed) if committed else newest is None
    assert newest is None or newest.step == max(checkpoint.step for checkpoint in committed)
    assert sum(checkpoint.is_latest for checkpoint in seen.checkpoints) <= 1
    assert [checkpoint.step for checkpoint in seen.checkpoints] == sorted(checkpoint.step for checkpoint in seen.checkpoints)
    assert all("symbolic link" in line for line in seen.lost)
    assert all(path.is_relative_to(directory) for path in (*chosen, *places))
    assert msgspec.json.decode(msgspec.json.encode(seen), type=type(seen)) == seen
    assert msgspec.json.encode(ledger)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_an_empty_directory_holds_nothing_and_hides_nothing(tmp_path: Path, layout: Layout) -> None:
    assert survey(tmp_path, layout) == survey(tmp_path, layout, only_step=5)
    assert survey(tmp_path, layout).checkpoints == survey(tmp_path, layout).lost == ()


@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_directory_that_is_gone_is_lost(tmp_path: Path, layout: Layout) -> None:
    seen = survey(tmp_path / "gone", layout)

    assert seen.checkpoints == ()
    assert seen.lost == ("the checkpoint directory: No such file or directory",)
    assert newest_committed(tmp_path / "gone", layout) is None
    assert paths_of(tmp_path / "gone", layout, "data") == paths_of(tmp_path / "gone", layout, "pointer") == ()


def act_before_reading(monkeypatch: pytest.MonkeyPatch, act: Callable[[Path], object]) -> list[Path]:
    """Call ``act`` with each path before it is read, as a job that works meanwhile would; returns what was read."""
    read_tree, read = look.read_tree, []

    def act_and_read(top: Path, budget: Budget) -> Tree:
        read.append(top)
        act(top)
        return read_tree(top, budget)

    monkeypatch.setattr(look, "read_tree", act_and_read)
    return read


def paths_in(checkpoints: tuple[CheckpointSeen, ...]) -> list[str]:
    return [checkpoint.path for checkpoint in checkpoints]


def test_a_checkpoint_replaced_while_it_is_read_is_found_under_its_new_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model_5.pt").write_bytes(b"1")

    def commit_the_next(top: Path) -> None:
        if (tmp_path / "model_5.pt").exists():
            (tmp_path / "model_10.pt").write_bytes(b"2")
            (tmp_path / "model_5.pt").unlink()

    act_before_reading(monkeypatch, commit_the_next)

    seen = survey(tmp_path, "files")

    assert paths_in(seen.checkpoints) == ["model_10.pt"]
    assert seen.lost == ()


def test_a_checkpoint_that_is_being_removed_is_incomplete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("5", "10"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "w").write_bytes(b"1")

    def remove_some(top: Path, budget: Budget) -> Tree:
        if top.name == "5":
            raise FileNotFoundError(2, "No such file or directory")
        return read_tree(top, budget)

    monkeypatch.setattr(look, "read_tree", remove_some)

    seen = survey(tmp_path, "files")

    assert [(each.path, each.state, each.digest != "") for each in seen.checkpoints] == [
        ("5", "incomplete", False),
        ("10", "committed", True),
    ]
    assert seen.lost == ()


def test_a_checkpoint_that_was_removed_is_gone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "5").mkdir()
    looks = iter(range(10))

    def remove_slowly(top: Path, budget: Budget) -> Tree:
        if next(looks) > 0:
            top.rmdir()
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(look, "read_tree", remove_slowly)

    assert survey(tmp_path, "files") == Survey(checkpoints=())


def test_a_directory_that_never_stands_still_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model_0.pt").write_bytes(b"1")

    def replace(top: Path) -> None:
        number = int(top.stem.removeprefix("model_"))
        top.rename(tmp_path / f"model_{number + 1}.pt")

    read = act_before_reading(monkeypatch, replace)

    seen = survey(tmp_path, "files")

    assert [path.name for path in read] == ["model_0.pt", "model_1.pt", "model_2.pt"]
    assert seen.checkpoints == ()
    assert seen.lost == ("model_2.pt: No such file or directory",)


def test_a_temporary_that_vanishes_is_no_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("model_5.pt", "model_10.pt.tmp"):
        (tmp_path / name).write_bytes(b"1")
    act_before_reading(monkeypatch, lambda top: top.unlink() if top.suffix == ".tmp" else None)

    seen = survey(tmp_path, "files")

    assert [(each.path, each.state, each.digest) for each in seen.checkpoints][1:] == [("model_10.pt.tmp", "temporary", "")]
    assert seen.lost == ()


def test_the_newest_committed_one_passes_over_what_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "5").mkdir()
    (tmp_path / "5" / "w").write_bytes(b"1")
    (tmp_path / "10").symlink_to("/elsewhere")

    newest = newest_committed(tmp_path, "files")

    assert newest is not None
    assert newest.path == "5"


def test_a_step_read_from_one_content_and_hashed_from_another_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "job-task-0-checkpoint.txt"
    file.write_bytes(b"5")
    contents = iter([b"10"])
    act_before_reading(monkeypatch, lambda top: file.write_bytes(next(contents, b"10")))

    seen = survey(tmp_path, "text-file")

    assert [checkpoint.step for checkpoint in seen.checkpoints] == [10]
    assert seen.lost == ()


def test_too_many_files_are_lost_and_the_limit_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for step, files in {5: 5, 10: 1}.items():
        (tmp_path / f"{step}").mkdir()
        for number in range(files):
            (tmp_path / f"{step}" / f"{number}").write_bytes(b"1")
    monkeypatch.setattr(look, "Budget", partial(Budget, entries_left=3))

    seen = survey(tmp_path, "files")

    assert paths_in(seen.checkpoints) == ["10"]
    assert seen.lost == ("5: more than 50000 files and directories in one look, and the run waits meanwhile",)


def test_too_many_bytes_leave_a_checkpoint_without_a_digest_and_say_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for step in (5, 10):
        (tmp_path / f"model_{step}.pt").write_bytes(b"123")
    monkeypatch.setattr(look, "Budget", partial(Budget, bytes_left=4))

    seen = survey(tmp_path, "files")

    assert [(each.step, each.state, each.digest != "") for each in seen.checkpoints] == [(5, "committed", False), (10, "committed", True)]
    assert seen.lost == ("model_5.pt: not hashed: more than 2147483648 bytes in one look, and the run waits meanwhile",)


def test_too_many_checkpoints_are_counted_and_the_newest_described(tmp_path: Path) -> None:
    for step in range(CHECKPOINTS_MAX + 5):
        (tmp_path / f"model_{step}.pt").write_bytes(b"1")

    seen = survey(tmp_path, "files")

    assert (len(seen.checkpoints), seen.checkpoints[0].step, seen.checkpoints[-1].is_latest) == (CHECKPOINTS_MAX, 5, True)
    assert seen.lost == ("5 older ones: not described: more than 1000 checkpoints in one look",)


def test_many_losses_are_counted(tmp_path: Path) -> None:
    for step in range(LOST_MAX + 3):
        (tmp_path / f"{step}").symlink_to("/elsewhere")

    lost = survey(tmp_path, "files").lost

    assert len(lost) == LOST_MAX + 1
    assert lost[-1] == "3 more could not be read"


def test_only_the_checkpoints_of_one_step_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("model_5.pt", "model_10.pt", "optim_10.pt", "model_10.pt.tmp"):
        (tmp_path / name).write_bytes(b"1")
    read = act_before_reading(monkeypatch, lambda top: None)

    seen = survey(tmp_path, "files", only_step=10)

    assert paths_in(seen.checkpoints) == ["model_10.pt.tmp", "model_10.pt", "optim_10.pt"]
    assert tmp_path / "model_5.pt" not in read
