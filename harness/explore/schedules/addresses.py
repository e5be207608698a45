"""Kill points of a recorded run as triggers, so that a live run can be hit there.

Counted is what a live run counts: from words that a trigger can name, and only what a process of the job did. So there is no address for a
kill point at a word that was only printed, or in the middle of an operation: nobody can be held there.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, get_args

from harness.explore.operation_log import OperationLog, read_operation_log
from harness.explore.operations import Change, Closed, Said
from harness.explore.replay import fields_of, replay
from harness.scenario.triggers import EVENT_NAME, AtOperation, OperationKind
from harness.store import RunDirectory
from harness.supervision.path_classes import path_class

When = Literal["before", "after"]

WHENS: tuple[When, ...] = get_args(When)


def read_recording(directory: Path) -> OperationLog:
    """The recorded run of a job, from what ``harness explore --keep`` has left.

    Args:
        directory: Its run directory, ``runs/explore-JOB/...``; or the one above, for the newest of the job.

    Raises:
        InvalidDocumentError: When there is no recording, or it cannot be read.
    """
    found = [directory, *sorted(directory.glob("*/"))]
    recorded = [each for each in (RunDirectory(path).recorded for path in found) if each.is_dir()]
    return read_operation_log((recorded or [RunDirectory(directory).recorded])[-1])


def operations_of(log: OperationLog, *, whens: Sequence[When] = ("after",)) -> tuple[AtOperation, ...]:
    """Every operation of a recorded run that a job can be held at, counted from the last word before it, as in a kill point.

    For ``Known(operations=...)`` of ``harness.strategies``. The recording is of the first rank, or of a job of one process: who did what is
    not told apart.

    Args:
        log: What was recorded.
        whens: Before it, after it, or both.
    """
    return tuple(_found(log, whens, since=None))


def operations_since(log: OperationLog, event: str, *, nth: int = 1, whens: Sequence[When] = ("after",)) -> tuple[AtOperation, ...]:
    """Every operation since the nth time that a word was said, counted from there: ``"sigterm"`` for all of a last save.

    Args:
        log: What was recorded.
        event: An event of the protocol, or a marker.
        nth: Its occurrence, from 1.
        whens: Before each, after each, or both.
    """
    return tuple(_found(log, whens, since=(event, nth)))


def markers_of(log: OperationLog) -> tuple[str, ...]:
    """What was said in a recorded run, each word once, in the order of their first time."""
    words = (word for entry in log.entries if isinstance(entry, Said) and (word := _word(entry)))
    return tuple(dict.fromkeys(words))


def _found(log: OperationLog, whens: Sequence[When], *, since: tuple[str, int] | None) -> Iterator[AtOperation]:
    paths = {step.at: step.path for step in replay(log).steps}
    words: Counter[str] = Counter()
    done: Counter[tuple[str, str]] = Counter()
    marker: tuple[str, int] = ("", 1)
    for entry in log.entries:
        if isinstance(entry, Said) and (word := _word(entry)):
            words[word] += 1
            if since is None or since == (word, words[word]):
                marker = (word, words[word])
                done.clear()
        elif isinstance(entry, Change) and not isinstance(entry, Closed) and entry.process:
            kind, where = str(entry.__struct_config__.tag), path_class(paths.get(entry.index, ""))
            done[kind, where] += 1
            if where and (since is None or since == marker):
                yield from _both(kind, where, done[kind, where], marker=marker, whens=whens)


def _both(kind: str, where: str, nth: int, *, marker: tuple[str, int], whens: Sequence[When]) -> Iterator[AtOperation]:
    operation = next(known for known in get_args(OperationKind) if known == kind)
    for when in WHENS:
        if when in whens:
            yield AtOperation(operation=operation, path=where, nth=nth, after=marker[0], after_nth=marker[1], when=when)


def _word(said: Said) -> str:
    word = fields_of(said).get("event")
    return word if isinstance(word, str) and EVENT_NAME.fullmatch(word) else ""
