"""Why a recording is not the whole truth, in sentences: what follows from such a one is *unknown*, however it looks. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from harness.explore.judging.expected import CHANGES, EntryReader
from harness.explore.operations import AnyEntry, Blind, Closed, Created, Linked, MovedIn, Opened, Truncated, Wrote
from harness.explore.replay import Replay, Step
from harness.history import Restored, SaveBegun, SaveEnded

TOLD_MAX = 5
"""Of one kind: more say no more."""

_WORDS: Mapping[str, str] = {
    "mapped": "a file is written through a shared mapping, which no system call shows",
    "aio": "Linux AIO is used, which the recorder does not follow",
    "foreign": "somebody else changed the directory meanwhile",
    "user": "a process of another user wrote",
    "many": "files are written outside of the checkpoint directory",
    "call": "a system call that the log has no word for",
}

_NO_CONTENT = (Opened, Closed)
"""Changes that leave every byte and every name as it was (a file that is emptied by being opened is followed by more than that)."""


def blindness_of(replayed: Replay, patterns: Mapping[str, str] | None, *, result: str = "", is_of_recovery: bool = False) -> Iterator[str]:
    """The reasons, none where everything was seen.

    Args:
        replayed: The recording.
        patterns: Of a job that does not speak the protocol; None: it speaks it.
        result: Its result file, relative to the checkpoint directory; empty: none.
        is_of_recovery: Whether it may have nothing left to save.
    """
    log = replayed.log
    if not log.is_whole:
        yield "the recording was cut short"
    yield from _shortened([f"{_WORDS[kind]}: {detail}" for kind, detail in _blind(log.entries)])
    yield from _shortened(list(dict.fromkeys(replayed.gaps)))
    if is_of_recovery:
        return
    if not any(isinstance(entry, CHANGES) for entry in log.entries):
        yield "nothing was written below the checkpoint directory: the job saves somewhere else, or not at all"
        return
    tells = patterns is None or "saved" in patterns
    if tells and not any(step.save is not None for step in replayed.steps):
        yield "the job acknowledged no save, so there is nothing that a recovery could lose, or keep"
        return
    if not tells and result and _wrote_only(result, replayed.steps):
        yield f"nothing but its result, `{result}`, was written below the checkpoint directory: the job saves somewhere else, or not at all"
    yield from _saves_elsewhere(log.entries, EntryReader(patterns))


def _blind(entries: tuple[AnyEntry, ...]) -> Iterator[tuple[str, str]]:
    """Each thing once, with the path where it is not told."""
    told = Counter((entry.what, entry.detail, entry.path) for entry in entries if isinstance(entry, Blind))
    for what, detail, path in told:
        yield what, detail if not path or path in detail else f"{detail} ({path})"


def _shortened(sentences: list[str]) -> Iterator[str]:
    yield from sentences[:TOLD_MAX]
    if len(sentences) > TOLD_MAX:
        yield f"and {len(sentences) - TOLD_MAX} more such things"


def _wrote_only(result: str, steps: Sequence[Step]) -> bool:
    """Whether all that was written is the result, once, or what became it by a rename; one that is written again is a checkpoint too."""
    written, results, times, end = set[int](), set[int](), 0, 0
    for step in steps:
        entry = step.entry
        node = getattr(entry, "node", 0)
        if isinstance(entry, Created | Opened | MovedIn):
            times += 1
        if isinstance(entry, Wrote):
            times += entry.offset < end
            end = entry.offset + entry.data.size
        if isinstance(entry, MovedIn):
            results.update(item.node for item in entry.items if item.path == result)
            written.update(item.node for item in entry.items if item.kind == "file")
        elif isinstance(entry, Created | Opened | Wrote | Truncated | Linked):
            written.add(node)
        if result in {step.path, getattr(entry, "to", "")}:
            results.add(node)
    return bool(written) and written <= results and times <= 1


def _saves_elsewhere(entries: tuple[AnyEntry, ...], reader: EntryReader) -> Iterator[str]:
    """A save is acknowledged, and nothing was written since it began, or since the word before it: what it saved lies elsewhere.

    What is acknowledged in one text is acknowledged at one moment: when each of them was done, nobody was told.
    """
    changed, begun, since = 0, dict[int, int](), 0
    empty: list[int] = []
    late: list[int] = []
    for entry in entries:
        changed += isinstance(entry, CHANGES) and not isinstance(entry, _NO_CONTENT)
        before, saved = since, list[int]()
        for event in reader.events_of(entry):
            if isinstance(event, SaveBegun):
                begun.setdefault(event.step, changed)
            elif isinstance(event, SaveEnded):
                if event.rank == 0:
                    saved.append(event.step)
                    empty += [event.step] * (changed == begun.pop(event.step, before))
                since = changed
            elif isinstance(event, Restored):
                since = changed
        late += saved if len(set(saved)) > 1 else ()
    if empty:
        where = "it lies somewhere else, or was acknowledged before it was written"
        yield f"the save of {_steps(empty)} was acknowledged, and nothing was written for it below the checkpoint directory: {where}"
    if late:
        yield f"{_steps(late)} were acknowledged in one text, so when each was done nobody knows: {_BUFFERED}"


_BUFFERED = (
    "the output is buffered; flush it after each save, as PYTHONUNBUFFERED=1 does in Python, and `stdbuf -oL` or setvbuf for a program in C"
)


def _steps(steps: list[int]) -> str:
    more = ", ..." if len(steps) > TOLD_MAX else ""
    return f"step{'s' * (len(steps) > 1)} {', '.join(map(str, steps[:TOLD_MAX]))}{more}"
