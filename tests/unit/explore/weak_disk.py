"""What a weak disk can leave, told the long way: no operation is ever taken for moot, and every state is played from the beginning.

A second opinion on ``harness.explore.models.posix_weak``, with one operation missing or torn, or all that was not synced missing. It shares the edits and the file system with
the model, which are held against real directories elsewhere, and nothing else.
"""

from collections.abc import Iterator, Sequence

from harness.explore.content import ZEROS
from harness.explore.file_system import Drop, Edit, FileSystem, Put, Resize, Write
from harness.explore.operations import Synced
from harness.explore.replay import Replay, Step
from harness.explore.trees import BranchTree
from tests.unit.explore.recordings import Recording

Left = tuple[frozenset[tuple[str, bytes | str]], int]
"""A tree, and how many saves were acknowledged until then."""


def left_by(recording: Recording) -> set[Left]:
    """Every state after the loss of a node."""
    replayed = recording.replay()
    return {each for end in range(len(replayed.steps) + 1) for each in _left_at(recording, replayed, replayed.steps[:end])}


def _left_at(recording: Recording, replayed: Replay, done: Sequence[Step]) -> Iterator[Left]:
    saves = sum(step.save is not None for step in done)
    for instead in ({}, *({number: edits} for number, edits in _losses(done)), dict(_durable(done))):
        system = replayed.initial.fork()
        for number, step in enumerate(done):
            system.apply(instead.get(number, step.edits))
        yield shown(recording, system), saves


def shown(recording: Recording, system: FileSystem) -> frozenset[tuple[str, bytes | str]]:
    """All that can be seen."""
    return frozenset(recording.shown(BranchTree(system.tree())).items())


def _losses(done: Sequence[Step]) -> Iterator[tuple[int, list[Edit]]]:
    """One step that may be lost or torn at the end of these, and what there is in its place."""
    for number, step in enumerate(done):
        later = [each.entry for each in done[number + 1 :] if isinstance(each.entry, Synced)]
        synced = {entry.node for entry in later}
        if not step.edits or any(entry.scope == "all" for entry in later):
            continue
        names = [edit for edit in step.edits if isinstance(edit, Put | Drop)]
        if names and not synced & {edit.directory for edit in names}:
            yield number, [edit for edit in step.edits if not isinstance(edit, Put | Drop)]
        for at, edit in enumerate(step.edits):
            if isinstance(edit, Resize) and edit.node not in synced:
                yield number, []
            if isinstance(edit, Write) and edit.node not in synced:
                yield from ((number, [*step.edits[:at], *torn, *step.edits[at + 1 :]]) for torn in _torn(edit))


def _durable(done: Sequence[Step]) -> Iterator[tuple[int, list[Edit]]]:
    """Of each step what is durable at the end of these."""
    for number, step in enumerate(done):
        later = [each.entry for each in done[number + 1 :] if isinstance(each.entry, Synced)]
        is_everything, synced = any(entry.scope == "all" for entry in later), {entry.node for entry in later}
        has_names = is_everything or any(edit.directory in synced for edit in step.edits if isinstance(edit, Put | Drop))
        yield number, [edit for edit in step.edits if _is_there(edit, synced, has_names=has_names, is_everything=is_everything)]


def _is_there(edit: Edit, synced: set[int], *, has_names: bool, is_everything: bool) -> bool:
    if isinstance(edit, Put | Drop):
        return has_names
    return is_everything or not isinstance(edit, Write | Resize) or edit.node in synced


def _torn(write: Write) -> Iterator[list[Edit]]:
    start, size = write.span
    yield []
    yield [Resize(write.node, write.offset + size, grows=True)]
    yield [Write(write.node, write.offset, (ZEROS, size))]
    yield [Write(write.node, write.offset, (start, size // 2))]
