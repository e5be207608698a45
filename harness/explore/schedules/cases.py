"""A case: a schedule on a job somewhere, and what came of running it."""

import hashlib
import re
from collections.abc import Iterator

import msgspec

from harness.history import BarrierReached, Event, FaultRequested, JobEvent, Marked
from harness.scenario import Injection, Scenario, Schedule, encode
from harness.scenario.triggers import EVENT_NAME, AtMarker, OnEffect
from harness.supervision.path_classes import path_class
from harness.verdict import Outcome, Verdict

Signature = tuple[str, ...]
"""How a run failed: the names of the checkers that called it invalid, each with the class of the path that it names first, sorted.

Two runs that fail alike have one signature; a smaller schedule that fails in another way is another failure.
"""

_PATH = re.compile(r"(?<![\w/{:.-])(?:[\w.+-]+/)+[\w.+-]+|(?<![\w/{:.-])[\w+-]+\.(?:json|bin|txt|npy|npz|pt|ckpt|tmp[\w-]*)(?![\w/])")
"""A relative path in a sentence: it has a slash, or an ending that files of checkpoints have."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """What is run.

    Attributes:
        scenario: The job, its promises and the faults.
        target: Where.
        seed: Of the job.
    """

    scenario: Scenario
    target: str = "local"
    seed: int = 0

    @property
    def injections(self) -> tuple[Injection, ...]:
        """The faults."""
        return self.scenario.injections

    def with_injections(self, injections: tuple[Injection, ...]) -> "Case":
        """The same job under other faults.

        Raises:
            RefusedValueError: When they are no schedule of that job.
        """
        return msgspec.structs.replace(self, scenario=msgspec.structs.replace(self.scenario, injections=injections))

    def key(self, workload_key: str = "") -> str:
        """What the verdict hangs on, as a name: cases that differ in words alone have one."""
        scenario = msgspec.structs.replace(
            self.scenario, name="a-case", why="a case", tags=(), injections=canonical(self.scenario.schedule).injections
        )
        data = encode(scenario) + f"{self.target} {self.seed} {workload_key}".encode()
        return hashlib.sha256(data).hexdigest()


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a case.

    Attributes:
        outcome: The verdict.
        signature: How it failed; empty unless invalid.
        run: The run directory.
        markers: By the name of an injection, the marker that the job had said last when it acted.
    """

    outcome: Outcome
    signature: Signature = ()
    run: str = ""
    markers: dict[str, AtMarker] = {}


def canonical(schedule: Schedule) -> Schedule:
    """The same faults in one form: names that nobody refers to are left out, and what can be said in two ways is said in one."""
    awaited = {injection.at.of for injection in schedule.injections if isinstance(injection.at, OnEffect)}
    return Schedule(injections=tuple(_canonical(injection, awaited) for injection in schedule.injections))


def _canonical(injection: Injection, awaited: set[str]) -> Injection:
    victim = injection.victim
    if victim.rank == "coordinator":
        victim = msgspec.structs.replace(victim, rank=0)
    name = injection.name if injection.name in awaited else ""
    return msgspec.structs.replace(injection, name=name, victim=victim, attempts=tuple(sorted(injection.attempts)))


def signature_of(verdict: Verdict) -> Signature:
    """How a run failed."""
    if verdict.outcome is not Outcome.INVALID:
        return ()
    return tuple(sorted({f"{finding.checker} {_class_in(finding.reason)}".strip() for finding in verdict.worst()}))


def markers_before(events: tuple[Event, ...]) -> dict[str, AtMarker]:
    """By the name of an injection that acted, what the rank that it hit, or the first one, had said last in the attempt."""
    return dict(_markers_before(events))


def _markers_before(events: tuple[Event, ...]) -> Iterator[tuple[str, AtMarker]]:
    counts: dict[tuple[int, int, int, str], int] = {}
    last: dict[tuple[int, int, int], AtMarker] = {}
    for event in events:
        if isinstance(event, FaultRequested):
            marker = last.get((event.task, event.attempt, max(0, event.rank)))
            if marker is not None:
                yield event.injection, marker
        elif isinstance(event, JobEvent) and not isinstance(event, BarrierReached):
            word = event.name if isinstance(event, Marked) else str(event.__struct_config__.tag)
            where = (event.task, event.attempt, event.rank)
            counts[*where, word] = counts.get((*where, word), 0) + 1
            if EVENT_NAME.fullmatch(word):
                last[where] = AtMarker(event=word, nth=counts[*where, word], rank=event.rank)


def _class_in(sentence: str) -> str:
    found = _PATH.search(sentence)
    return path_class(found[0]) if found else ""
