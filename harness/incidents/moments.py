"""The time-line in words: what a person wants to know of it, in order, without every step."""

from collections.abc import Iterator, Sequence
from itertools import pairwise

import msgspec

from harness.history import (
    AttemptExited,
    AttemptStarted,
    ClusterEventSeen,
    Done,
    Event,
    Located,
    LogLine,
    PoolScaled,
    ProvisioningSeen,
    Restored,
    SaveBegun,
    SaveEnded,
    SigtermSeen,
    Started,
    StepDone,
)
from harness.incidents.sightings import Seen
from harness.incidents.timeline import Timeline
from harness.incidents.timestamps import NANOSECONDS

MOMENTS_MAX = 400
"""Of one incident; of more the middle is left out, and the history has all."""

SILENCE_S_MIN = 60.0
SILENCE_FACTOR = 10.0
"""A silence of an attempt is told when it is longer than a minute and than ten times what is usual between its words."""

_TEXT_MAX = 200


class Moment(msgspec.Struct, frozen=True, kw_only=True):
    """Something that happened.

    Attributes:
        t_s: Seconds since the first entry.
        at: The timestamp of the entry.
        task, attempt: Where; None where it is of the whole.
        what: In words.
        insert_id: Of the entry.
    """

    t_s: float
    at: str
    what: str
    insert_id: str = ""
    task: int | None = None
    attempt: int | None = None


class Gap(msgspec.Struct, frozen=True, kw_only=True):
    """A time in which nothing was said.

    Attributes:
        kind: ``between-attempts``: from the last word of one to the first of the next. ``silence``: inside an attempt.
        begin_s, seconds: When it began, and how long it was.
        task, attempt: Whose; for a gap between two, the one that came after it.
    """

    kind: str
    begin_s: float
    seconds: float
    task: int
    attempt: int


def moments_of(timeline: Timeline) -> tuple[tuple[Moment, ...], int]:
    """The moments in order of time, and how many in the middle are left out."""
    found = [moment for each in timeline.seen if (moment := _moment(each, timeline)) is not None]
    if len(found) <= MOMENTS_MAX:
        return tuple(found), 0
    half = MOMENTS_MAX // 2
    return (*found[:half], *found[-half:]), len(found) - 2 * half


def _moment(each: Seen, timeline: Timeline) -> Moment | None:
    what = _told(each.event)
    if not what:
        return None
    is_placed = isinstance(each.event, Located) and not (isinstance(each.event, LogLine) and each.event.stream == "audit")
    return Moment(
        t_s=timeline.t_s(each.entry),
        at=each.entry.at,
        what=what,
        insert_id=each.entry.insert_id,
        task=each.event.task if is_placed and isinstance(each.event, Located) else None,
        attempt=each.event.attempt if is_placed and isinstance(each.event, Located) else None,
    )


def _told(event: Event) -> str:
    """An event in words; empty where it is told by another one, or not worth a line."""
    match event:
        case AttemptStarted():
            return "its first entry"
        case Restored(step=step):
            return f"resumes from step {step}"
        case Started(restored_step=0):
            return "starts from scratch"
        case SaveBegun(step=step):
            return f"saves step {step}"
        case SaveEnded(step=step):
            return f"has saved step {step}"
        case SigtermSeen():
            return "notices SIGTERM"
        case Done():
            return "says that it is complete"
        case AttemptExited(exit_code=code, signal=signal):
            return f"exit code {code}" if signal is None else f"signal {signal}"
        case LogLine(stream="system" | "audit", text=text):
            return "" if text.startswith(("Container called exit", "Container terminated")) else _short(text)
        case _:
            return _told_of_cluster(event)


def _told_of_cluster(event: Event) -> str:
    match event:
        case ClusterEventSeen(object_name=name, reason=reason, message=message):
            return _short(f"{name}: {reason}: {message}")
        case PoolScaled(pool=pool, nodes=nodes, why=why, error=error):
            return _short(f"autoscaler: {why}: {pool}" + (f": {error}" if error else f" by {nodes}"))
        case ProvisioningSeen(name=name, conditions=conditions):
            return _short(f"{name}: {', '.join(f'{each.type}={each.status}' for each in conditions)}")
        case _:
            return ""


def _short(text: str) -> str:
    line = " ".join(text[: 4 * _TEXT_MAX].split())
    return line if len(line) <= _TEXT_MAX else f"{line[: _TEXT_MAX - 1]}…"


def gaps_of(timeline: Timeline) -> tuple[Gap, ...]:
    """The gaps between attempts, and the longest silence of each attempt where it stands out; in order of time."""
    found: list[Gap] = []
    for task, stories in timeline.tasks.items():
        for index, story in enumerate(stories):
            if index and story.first.t_ns > stories[index - 1].last.t_ns:
                before = stories[index - 1].last
                seconds = (story.first.t_ns - before.t_ns) / NANOSECONDS
                gap = Gap(kind="between-attempts", begin_s=timeline.t_s(before), seconds=seconds, task=task, attempt=story.number)
                found.append(gap)
            found += _silence(story.seen, timeline, task=task, attempt=story.number)
    return tuple(sorted(found, key=lambda gap: (gap.begin_s, gap.task)))


def _silence(seen: Sequence[Seen], timeline: Timeline, *, task: int, attempt: int) -> Iterator[Gap]:
    moments = sorted({each.entry.t_ns for each in seen})
    lengths = sorted(after - before for before, after in pairwise(moments))
    if len(lengths) < 2:
        return
    usual_s, longest_s = lengths[len(lengths) // 2] / NANOSECONDS, lengths[-1] / NANOSECONDS
    if longest_s >= max(SILENCE_S_MIN, SILENCE_FACTOR * usual_s):
        begin_ns = next(before for before, after in pairwise(moments) if after - before == lengths[-1])
        yield Gap(kind="silence", begin_s=(begin_ns - timeline.epoch_ns) / NANOSECONDS, seconds=longest_s, task=task, attempt=attempt)


def step_pace_s(timeline: Timeline) -> float | None:
    """Seconds that a step takes, by the median of what lies between the words of steps; None where no two are told."""
    paces: list[float] = []
    for story in timeline.attempts:
        steps = [(step.step, entry.t_ns) for step, entry in story.of_type(StepDone)]
        for (first, first_ns), (second, second_ns) in pairwise(steps):
            if second > first and second_ns > first_ns:
                paces.append((second_ns - first_ns) / NANOSECONDS / (second - first))
    return sorted(paces)[len(paces) // 2] if paces else None
