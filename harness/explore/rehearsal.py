"""The job, uninterrupted, twice: recorded, and bare. What every recovery is held against comes from here.

The bare run is tried like a recovery, from the empty state. Where the two do not end alike, the job does not repeat itself, and no
difference from it proves anything.
"""

import hashlib
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.errors import UsageError
from harness.explore.blindness import blindness_of
from harness.explore.blobs import STATE_BYTES_MAX
from harness.explore.comparison import difference_between
from harness.explore.data_file import DataFile
from harness.explore.elsewhere import written_elsewhere
from harness.explore.judgement import Recovery, SaveSeen
from harness.explore.judging.copies import digest_of_file
from harness.explore.judging.ended import ended_of
from harness.explore.judging.expected import CHANGES, EntryReader, Expected, expect
from harness.explore.judging.observation import observe
from harness.explore.judging.place import Place
from harness.explore.judging.standing import made_by_saves
from harness.explore.judging.trial import INSPECTION_FAILED
from harness.explore.judging.wording import how_it_ended
from harness.explore.operation_log import OperationLog, read_operation_log, refuse_cut_off
from harness.explore.operations import AnyEntry, Refused, Said, Truncated, Wrote
from harness.explore.own_path import NOT_THERE, NOTE, as_copied, names_itself, names_itself_in_links_only
from harness.explore.recipe import Recipe, StateTask, Tried
from harness.explore.recording import Recording, record
from harness.explore.replay import Acknowledges, Replay, replay
from harness.explore.result import Recorded
from harness.explore.subject import Subject
from harness.history import SaveEnded
from harness.runner.binding import inherited

RECORD_S_MAX = 600.0
"""For the job, uninterrupted: what takes longer is explored on a smaller run of it."""

RECOVERY_S_MIN, RECOVERY_RATIO = 30.0, 10.0
"""A recovery may take so long, or so many times as long as the whole job: a loaded machine is no crash loop."""

EMPTY = StateTask(state=hashlib.sha256(b"an uninterrupted run").hexdigest(), pieces=(), again=True, attempt=0)
"""Where an uninterrupted run begins: no state of a crash, though one may be as empty; it is a first attempt, as the recorded one is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsal:
    """What is known before anything is hurt.

    Attributes:
        recipe: How recovery is tried, now that it is known what the job says and how long it takes.
        replayed: The recording.
        golden: The bare run.
        recorded: The same for a reader.
    """

    recipe: Recipe
    replayed: Replay
    golden: Tried
    recorded: Recorded

    def expected(self, data: DataFile) -> Expected:
        """What every recovery owes."""
        return expected_of(self.replayed, self.golden, self.recipe, data=data, differs=self.recorded.differs)


@dataclass(frozen=True, slots=True)
class Recorder:
    """Where and how a job is recorded.

    Attributes:
        place: Where it runs; a scratch directory.
        log_directory: Where the log goes.
        run_id: Of the exploration.
    """

    place: Path
    log_directory: Path
    run_id: str

    def run(self, recipe: Recipe) -> tuple[Recording, Place]:
        """Record the job once.

        Raises:
            UsageError: When it does not come through.
        """
        place = Place(self.place, run_id=self.run_id, recipe=recipe, surroundings=inherited(os.environ))
        place.clear()
        place.checkpoints.mkdir(parents=True)
        recording = record(
            [place.fill(word) for word in recipe.command],
            root=place.checkpoints,
            log_directory=self.log_directory,
            environment=place.environment(0),
            cwd=Path(recipe.directory),
            timeout_s=RECORD_S_MAX,
        )
        if recording.timed_out:
            raise UsageError(f"the job did not end within {RECORD_S_MAX:.0f} s when left alone; explore a smaller run of it")
        if recording.exit_code != 0:
            ended = ended_of(-(recording.signal or 0) or recording.exit_code or 0, timed_out=False, seconds=0.0, said=recording.errors())
            how = how_it_ended(observe(ended, [])).replace("recovery", "it", 1)
            raise UsageError(f"the job does not come through when it is left alone, so nothing can be explored: {how}{_refused(recording)}")
        return recording, place


def _require_small(checkpoints: Path) -> None:
    """A state of which no copy is allowed would be read for minutes, and then be refused (a sparse file is as large as it looks)."""
    paths = (Path(folder, name) for folder, _, names in os.walk(checkpoints) for name in names)
    _allow(sum(path.lstat().st_size for path in paths), "the job leaves {} bytes in its checkpoint directory")


def _require_small_files(log: OperationLog) -> None:
    """The same of a file that was so large for a while only."""
    sizes = (
        entry.offset + entry.data.size if isinstance(entry, Wrote) else entry.size
        for entry in log.entries
        if isinstance(entry, Wrote | Truncated)
    )
    _allow(max(sizes, default=0), "for a while the job keeps a file of {} bytes")


def _allow(size: int, said: str) -> None:
    if size > STATE_BYTES_MAX:
        raise UsageError(f"{said.format(f'{size:,}')}, and {STATE_BYTES_MAX:,} are allowed; explore a smaller run of it")


def _refused(recording: Recording) -> str:
    """What the recorder does not let a job do; empty where it was not asked to."""
    entries = read_operation_log(recording.log_directory).entries
    names = [entry.call for entry in entries if isinstance(entry, Refused)]
    return f"; the recorder cannot follow {' and '.join(names)} and refuses it: let the job do without" if names else ""


def rehearse(subject: Subject, recorder: Recorder, try_bare: Callable[[Recipe], Tried], *, is_here: bool = True) -> Rehearsal:
    """Record the job, run it bare, and compare.

    What the recorded job has left is removed at once, so that it answers for no copy.

    Args:
        subject: The job.
        recorder: Where it is recorded.
        try_bare: Tries recovery from nothing by a recipe.
        is_here: Whether recoveries are tried on this machine, so that copies can lie where the job was recorded.

    Raises:
        UsageError: When the job does not come through, leaves too much, its recovery function cannot be called, or a check that was asked
            for sees nothing.
    """
    recording, place = recorder.run(subject.recipe)
    log = read_operation_log(recording.log_directory)
    _require_small(place.checkpoints)
    _require_small_files(log)
    speaks = any(isinstance(entry, Said) for entry in log.entries) if subject.speaks_protocol is None else subject.speaks_protocol
    recipe = msgspec.structs.replace(subject.recipe, speaks_protocol=speaks, timeout_s=RECORD_S_MAX)
    first = _observed(recording, log, recipe, place)
    place.clear()
    recipe, own_path, told = _placed(recipe, log, str(place.checkpoints), is_here=is_here)
    golden = try_bare(recipe)
    if golden.first is None:
        raise UsageError(f"the job cannot be run by itself: {_in_a_line(golden.lost)}")
    _check_what_was_asked_for(recipe, golden.first)
    replayed = replay(as_copied(log, checkpoints=recipe.checkpoints), acknowledges_of(recipe))
    timeout_s = recipe.recovery_timeout_s or max(RECOVERY_S_MIN, RECOVERY_RATIO * max(recording.seconds, golden.first.seconds))
    patterns, result = patterns_of(recipe), recipe.result.removeprefix("{checkpoint_dir}/")
    with DataFile(log.data_path) as data:
        elsewhere = written_elsewhere(log, patterns, data)
    return Rehearsal(
        recipe=msgspec.structs.replace(recipe, timeout_s=timeout_s),
        replayed=replayed,
        golden=golden,
        recorded=Recorded(
            seconds=recording.seconds,
            operations=sum(isinstance(entry, CHANGES) for entry in log.entries),
            saves=sum(step.save is not None for step in replayed.steps),
            blind=(*blindness_of(replayed, patterns, result=result), *elsewhere.blind, *own_path),
            notes=(*elsewhere.notes, *told),
            differs=difference_between(first, golden.first),
            bare_seconds=0.0 if recipe.recover else golden.first.seconds,
        ),
    )


def _placed(recipe: Recipe, log: OperationLog, place: str, *, is_here: bool) -> tuple[Recipe, tuple[str, ...], tuple[str, ...]]:
    """The recipe with the one place where copies must lie, if what is saved names it; why nothing follows from it; and what is told."""
    if recipe.checkpoints:
        return recipe, (), ()
    with DataFile(log.data_path) as data:
        if not names_itself(log, data):
            return recipe, (), ()
        if is_here:
            return msgspec.structs.replace(recipe, checkpoints=place), (), (NOTE,)
        return recipe, () if names_itself_in_links_only(log, data) else (NOT_THERE,), ()


def _check_what_was_asked_for(recipe: Recipe, golden: Recovery) -> None:
    """A check that looks at nothing after the uninterrupted run looks at nothing after any other.

    Raises:
        UsageError: When there is no result file, or the inspection fails.
    """
    if golden.exit_code != 0:
        return  # nothing is compared with it, and that is told
    if recipe.result and not golden.result:
        raise UsageError(f"the uninterrupted run left no {recipe.result}; correct the name of its result")
    if golden.inspected_after == INSPECTION_FAILED:
        command = " ".join(recipe.inspect)
        owed = 'it must exit with 0, and the last line that it prints be {"step": 10}'
        raise UsageError(f"of what the uninterrupted run left `{command}` does not say the step: {owed}")


def expected_of(replayed: Replay, golden: Tried, recipe: Recipe, *, data: DataFile, differs: str) -> Expected:
    """What every recovery owes after a crash of a recorded run."""
    assert golden.first is not None
    return expect(
        replayed.log.entries,
        golden.first,
        patterns=patterns_of(recipe),
        golden_again=golden.second,
        golden_differs=differs,
        is_timeout_given=recipe.recovery_timeout_s > 0,
        made=made_by_saves(replayed, data, root=replayed.log.header.root),
    )


def patterns_of(recipe: Recipe) -> dict[str, str] | None:
    """What its output is searched for; None where it speaks the protocol."""
    return None if recipe.speaks_protocol else recipe.patterns


def acknowledges_of(recipe: Recipe) -> Acknowledges:
    """Tells the entries of a log, asked in their order, that acknowledge a save."""
    reader = EntryReader(patterns_of(recipe))

    def acknowledged(entry: AnyEntry) -> SaveSeen | None:
        saves = [event for event in reader.events_of(entry) if isinstance(event, SaveEnded)]
        return SaveSeen(step=saves[-1].step, digests=saves[-1].digests) if saves else None

    return acknowledged


def read_rehearsed_log(directory: Path, recipe: Recipe) -> Replay:
    """A recording as it was understood when it was made.

    Raises:
        InvalidDocumentError: When it is not there, damaged or cut off.
    """
    log: OperationLog = read_operation_log(directory)
    refuse_cut_off(log)
    return replay(as_copied(log, checkpoints=recipe.checkpoints), acknowledges_of(recipe))


def _in_a_line(lost: str) -> str:
    """What was lost, and of a traceback the last line, which says why."""
    first, *rest = lost.splitlines() or [""]
    return f"{first.removesuffix('Traceback (most recent call last):').rstrip(' :')}: {rest[-1]}" if rest else first


def _observed(recording: Recording, log: OperationLog, recipe: Recipe, place: Place) -> Recovery:
    """The recorded run, observed like a recovery."""
    ended = ended_of(recording.exit_code or 0, timed_out=False, seconds=recording.seconds, said="")
    reader = EntryReader(patterns_of(recipe))
    events = [event for entry in log.entries for event in reader.events_of(entry)]
    result = recipe.result and digest_of_file(Path(place.fill(recipe.result)))
    return msgspec.structs.replace(observe(ended, events), result=result)
