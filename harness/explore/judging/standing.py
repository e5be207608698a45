"""Which checkpoints stand in a state, whatever their layout: all that only one save makes is there, as it was when it was acknowledged.

A job that restores an older step, and finds a checkpoint of the next one whole when it comes there, need not save it again.
"""

from collections import Counter
from collections.abc import Collection, Mapping

from harness.explore.data_file import DataFile
from harness.explore.pieces import pieces_of
from harness.explore.recipe import Piece
from harness.explore.replay import Replay
from harness.explore.trees import BranchTree


def made_by_saves(replayed: Replay, data: DataFile, *, root: str) -> Mapping[int, frozenset[Piece]]:
    """By acknowledged step: what is new since the acknowledgement before, but for paths that other saves write too, like a pointer.

    Args:
        replayed: The recording.
        data: Its data.
        root: The checkpoint directory that was recorded.
    """
    system, before = replayed.initial.fork(), frozenset[Piece]()
    made: dict[int, frozenset[Piece]] = {}
    for step in replayed.steps:
        system.apply(step.edits)
        if step.save is not None:
            now = frozenset(pieces_of(BranchTree(system.tree()), data, root=root))
            made[step.save.step] = now - before
            before = now
    writers = Counter(piece.path for pieces in made.values() for piece in pieces)
    return {step: frozenset(piece for piece in pieces if writers[piece.path] == 1) for step, pieces in made.items()}


def steps_standing(made: Mapping[int, frozenset[Piece]], pieces: Collection[Piece]) -> frozenset[int]:
    """Steps whose checkpoints stand in a state; a save that made nothing of its own cannot be told."""
    there = frozenset(pieces)
    return frozenset(step for step, own in made.items() if own and own <= there)
