"""A checkpoint stands in a state when all that only its save makes is there, whatever the layout."""

from pathlib import Path

import pytest

from harness.explore.data_file import DataFile
from harness.explore.judging.standing import made_by_saves, steps_standing
from harness.explore.pieces import pieces_of
from harness.explore.replay import Replay, replay
from harness.explore.trees import BranchTree
from tests.unit.explore.recordings import ROOT, Recording


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Replay, DataFile]:
    """Two saves, each a directory that is renamed into its place, and a pointer to the newest that is replaced."""
    recording = Recording(tmp_path / "log")
    for step in (4, 8):
        recording.mkdir(f"{step}.tmp")
        recording.save_file(f"{step}.tmp/data", b"weights %d" % step)
        recording.rename(f"{step}.tmp", f"{step}")
        recording.save_file("latest.tmp", b"%d" % step)
        recording.rename("latest.tmp", "latest")
        recording.say("save.end", step=step)
    recording.end()
    log = recording.log()
    return replay(log), DataFile(log.data_path)


def standing(recorded: tuple[Replay, DataFile]) -> list[set[int]]:
    """After each operation and acknowledgement."""
    replayed, data = recorded
    made, system, found = made_by_saves(replayed, data, root=ROOT), replayed.initial.fork(), []
    for step in replayed.steps:
        system.apply(step.edits)
        found.append(set(steps_standing(made, pieces_of(BranchTree(system.tree()), data, root=ROOT))))
    return found


def test_a_checkpoint_stands_from_its_last_operation_on_and_the_pointer_does_not_matter(recorded: tuple[Replay, DataFile]) -> None:
    found = standing(recorded)
    renames = [index for index, step in enumerate(recorded[0].steps) if step.path in ("4.tmp", "8.tmp") and step.kind == "rename"]

    assert found[: renames[0]] == [set()] * renames[0]
    assert found[renames[0] : renames[1]] == [{4}] * (renames[1] - renames[0])
    assert found[renames[1] :] == [{4, 8}] * (len(found) - renames[1])


def test_other_bytes_or_no_layout_at_all_are_no_checkpoint(recorded: tuple[Replay, DataFile], tmp_path: Path) -> None:
    made = made_by_saves(*recorded, root=ROOT)
    whole = frozenset().union(*made.values())
    in_place = Recording(tmp_path / "in-place")
    in_place.create("checkpoint")
    for step in (4, 8):
        in_place.write("checkpoint", b"weights %d" % step)
        in_place.say("save.end", step=step)
    log = in_place.log()

    assert steps_standing(made, whole) == {4, 8}
    assert steps_standing(made, [piece for piece in whole if piece.path != "8/data"]) == {4}
    assert steps_standing(made_by_saves(replay(log), DataFile(log.data_path), root=ROOT), whole) == frozenset()
