"""Crashes in recovery: what one does before it has saved anything itself is recorded, and the next one must cope with any part of it.

One level deep, from states that look different: one for each set of path classes that a crash leaves.
"""

import os
from dataclasses import dataclass, replace
from pathlib import Path

from harness.explore.blindness import blindness_of
from harness.explore.blobs import BlobStore
from harness.explore.data_file import DataFile
from harness.explore.frontier import Due, Frontier, SurfaceName
from harness.explore.judging.ended import ended_of
from harness.explore.judging.expected import CHANGES, Announced, EntryReader, Expected, expect
from harness.explore.judging.observation import observe
from harness.explore.judging.place import Place
from harness.explore.judging.standing import made_by_saves
from harness.explore.judging.wording import how_it_ended
from harness.explore.operation_log import OperationLog, read_operation_log, refuse_cut_off
from harness.explore.operations import Closed, Opened
from harness.explore.own_path import UNSEEN, as_copied, names_itself, names_itself_in_links_only
from harness.explore.recipe import Recipe, StateTask
from harness.explore.recording import record
from harness.explore.rehearsal import acknowledges_of, patterns_of
from harness.explore.replay import Replay, replay
from harness.explore.result import STATE_CHARACTERS
from harness.history import SaveEnded
from harness.runner.binding import inherited
from harness.supervision.path_classes import path_class
from harness.verdict import Outcome

RECORDINGS_MAX = 12
"""Recoveries that are recorded: what they do first repeats itself soon."""

OPERATIONS_MAX = 40
"""Of a recovery that acknowledges no save: clean-up comes first, and what comes later is what the job itself was recorded with."""

RECORDING_S_MAX = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """A state whose recovery is recorded.

    Attributes:
        task: The state.
        at: The crash that left it: the index of the last entry of the job's own log.
        surfaces: Where it was found.
    """

    task: StateTask
    at: int
    surfaces: tuple[SurfaceName, ...]


def origins_of(frontier: Frontier) -> list[Origin]:
    """States that recovery copes with, the most telling of each look."""
    found: dict[frozenset[str], Due] = {}
    surfaces: dict[str, list[SurfaceName]] = {}
    for side in frontier.sides:
        for due in side.dues:
            if due.found.rank == 0 and due.outcome is Outcome.VALID and due.task.pieces:
                look = frozenset(path_class(piece.path) for piece in due.task.pieces)
                first = found.setdefault(look, due)
                if first.task.state == due.task.state:
                    surfaces.setdefault(due.task.state, []).append((side.model, side.scope))
    return [
        Origin(task=due.task, at=due.found.crash.at, surfaces=tuple(dict.fromkeys(surfaces[due.task.state])))
        for due in list(found.values())[:RECORDINGS_MAX]
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Where recoveries are recorded.

    Attributes:
        directory: Of their logs.
        scratch: Where they run.
        run_id: Of the exploration.
        blobs: Contents of files of states.
    """

    directory: Path
    scratch: Path
    run_id: str
    blobs: BlobStore

    def record(self, origin: Origin, recipe: Recipe) -> "Replay | Unrecorded":
        """Record recovery from a state, or say why nothing follows from it: it did not come through this time, or could not be seen."""
        place = Place(self.scratch, run_id=self.run_id, recipe=recipe, surroundings=inherited(os.environ))
        place.clear()
        task = origin.task
        self.blobs.materialise(task.pieces, place.checkpoints, changed=task.changed, links=task.links)
        log_directory = log_of(self.directory, task.state)
        timeout_s = min(RECORDING_S_MAX, recipe.timeout_s)
        recording = record(
            [place.fill(word) for word in recipe.command],
            root=place.checkpoints,
            log_directory=log_directory,
            environment=place.environment(1),
            cwd=Path(recipe.directory),
            timeout_s=timeout_s,
        )
        place.clear()  # lest what it has left answers for a copy
        if recording.timed_out:
            return Unrecorded(f"it did not end within {timeout_s:.0f} s", is_cut=timeout_s < recipe.timeout_s)
        if recording.exit_code != 0:
            code = -recording.signal if recording.signal else recording.exit_code or 0
            ended = ended_of(code, timed_out=False, seconds=recording.seconds, said=recording.errors())
            return Unrecorded(f"{how_it_ended(observe(ended, []))}, and had come through without the recorder")
        whole = replay(read_operation_log(log_directory), acknowledges_of(recipe))
        blind = next(blindness_of(whole, patterns_of(recipe), is_of_recovery=True), "") or _leads_away(whole.log, recipe)
        return Unrecorded(blind) if blind else read_recovery(log_directory, recipe)


def _leads_away(log: OperationLog, recipe: Recipe) -> str:
    """Why copies of what a recovery leaves would lead elsewhere; empty: they do not."""
    if recipe.checkpoints:
        return ""
    with DataFile(log.data_path) as data:
        return UNSEEN if names_itself(log, data) and not names_itself_in_links_only(log, data) else ""


@dataclass(frozen=True, slots=True)
class Unrecorded:
    """No crash of a recovery follows from its recording.

    Attributes:
        why: In words.
        is_cut: Whether it would only have taken longer than recoveries are recorded for.
    """

    why: str
    is_cut: bool = False


def log_of(directory: Path, state: str) -> Path:
    """Where the recording of the recovery from a state lies."""
    return directory / state[:STATE_CHARACTERS]


def read_recovery(log_directory: Path, recipe: Recipe) -> Replay:
    """What a recorded recovery did until its first own save was acknowledged.

    Raises:
        InvalidDocumentError: When the log is not there, damaged or cut off.
    """
    log = as_copied(read_operation_log(log_directory), checkpoints=recipe.checkpoints)
    reader = EntryReader(patterns_of(recipe))
    changes = 0
    end = len(log.entries)
    for number, entry in enumerate(log.entries, start=1):
        changes += isinstance(entry, CHANGES)
        if changes > OPERATIONS_MAX or any(isinstance(event, SaveEnded) for event in reader.events_of(entry)):
            end = number
            break
    else:
        refuse_cut_off(log)
    return replay(OperationLog(log.header, log.entries[:end], log.directory, is_whole=True), acknowledges_of(recipe))


def changes_anything(replayed: Replay) -> bool:
    """Whether there is anything that a crash could cut."""
    return any(isinstance(step.entry, CHANGES) and not isinstance(step.entry, Opened | Closed) for step in replayed.steps)


def expected_in(replayed: Replay, before: Expected, origin_at: int, recipe: Recipe, data: DataFile) -> Expected:
    """What the next recovery owes after a crash of a recovery: what the job had promised when it crashed first, and what this one adds.

    Args:
        replayed: The recorded recovery.
        before: What every recovery of the job owes.
        origin_at: The first crash.
        recipe: How recovery is tried.
        data: Of the recorded recovery.
    """
    own = expect(replayed.log.entries, before.golden, patterns=patterns_of(recipe))
    end = before.said_until(origin_at)
    return Expected(
        golden=before.golden,
        golden_differs=before.golden_differs,
        golden_again=before.golden_again,
        announced=(*(_earlier(told) for told in before.announced if told.index <= end), *own.announced),
        begun=(*((0, step) for index, step in before.begun if index <= end), *own.begun),
        acknowledged=(*((0, step) for index, step in before.acknowledged if index <= origin_at), *own.acknowledged),
        changes=own.changes,
        made={**before.made, **made_by_saves(replayed, data, root=replayed.log.header.root)},
        kept_before=before.promised_step(origin_at),
        is_of_recovery=True,
        may_count_from_0=before.may_count_from_0,
        is_timeout_given=before.is_timeout_given,
    )


def _earlier(told: Announced) -> Announced:
    """What was told before this recording began."""
    return replace(told, index=0)
