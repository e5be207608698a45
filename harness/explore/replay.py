"""The recorded operations as edits: where each name and each byte went, found by playing the whole log once.

Models play these edits again, in part or in another order: an edit names directories by their nodes, so it also means something where an
earlier rename is left out.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass

from harness.explore.file_system import Edit, FileSystem
from harness.explore.judgement import SaveSeen
from harness.explore.operation_log import OperationLog
from harness.explore.operations import AnyEntry, Blind, Elsewhere, Ended, Printed, Refused, Said
from harness.explore.player import Player

Acknowledges = Callable[[AnyEntry], SaveSeen | None]
"""Tells the entries that acknowledge a save."""


def spoken_save(entry: AnyEntry) -> SaveSeen | None:
    """The save that an event of the protocol acknowledges: ``save.end``."""
    said = fields_of(entry) if isinstance(entry, Said) else {}
    step, digests = said.get("step"), said.get("digests")
    if said.get("event") != "save.end" or type(step) is not int:
        return None
    return SaveSeen(step=step, digests={str(part): str(value) for part, value in digests.items()} if isinstance(digests, dict) else {})


def fields_of(said: Said) -> dict[str, object]:
    """The fields of an event; none where the line is no event."""
    try:
        fields = json.loads(said.line)
    except (ValueError, RecursionError):
        return {}
    return fields if isinstance(fields, dict) else {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One moment after which a run can die: an operation, or an acknowledgement.

    Attributes:
        at: Index of the entry.
        entry: What happened.
        edits: What it changes; nothing where it only opens, closes, syncs or tells.
        path: What it acts on, before it acts where it renames or removes; empty: something without a name.
        save: The save that it acknowledges.
    """

    at: int
    entry: AnyEntry
    edits: tuple[Edit, ...] = ()
    path: str = ""
    save: SaveSeen | None = None

    @property
    def kind(self) -> str:
        """``create``, ``write``, ...; ``event`` or ``print`` for an acknowledgement."""
        return str(self.entry.__struct_config__.tag)


@dataclass(frozen=True, slots=True)
class Replay:
    """A log, understood.

    Attributes:
        log: The log itself.
        initial: What was there when recording began. Never changed: play on a fork.
        steps: What came, in order.
        gaps: What in the log contradicts itself, a sentence each: somebody else wrote, so that nothing that follows from it is certain.
    """

    log: OperationLog
    initial: FileSystem
    steps: tuple[Step, ...]
    gaps: tuple[str, ...] = ()


def replay(log: OperationLog, acknowledges: Acknowledges = spoken_save) -> Replay:
    """Play a log once, and find what each entry changed."""
    player = Player()
    player.bring(log.header.initial)
    player.take_edits()
    initial = player.system.fork()
    steps = []
    for entry in log.entries:
        save = acknowledges(entry)
        if not isinstance(entry, Said | Printed | Blind | Elsewhere | Refused | Ended):
            path, edits = player.play(entry)
            steps.append(Step(at=entry.index, entry=entry, path=path, edits=edits, save=save))
        elif save is not None:
            steps.append(Step(at=entry.index, entry=entry, save=save))
    return Replay(log, initial, tuple(steps), tuple(player.gaps))
