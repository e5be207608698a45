"""The moments of a recording, addressed so that they can be found again in the next run of the job."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from harness.explore.journal import ACKNOWLEDGED, EVENT
from harness.explore.judgement import SaveSeen
from harness.explore.operations import AnyEntry, Closed, Created, Ended, Opened, Printed, Said, Synced, Truncated, Unlinked, Wrote
from harness.explore.replay import Replay, Step, fields_of
from harness.explore.result import Strip
from harness.explore.states import KillPoint
from harness.supervision.path_classes import path_class

START = KillPoint(marker="start", marker_nth=0, operation="", path_class="", nth=0)
"""Before anything was done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """What is known of the moment after a step, whatever the storage.

    Attributes:
        point: Its address; at an acknowledgement that of the word itself, without an operation.
        saves: All that was acknowledged until then.
        in_flight: Classes of the files that were open for writing, or written and not synced.
    """

    point: KillPoint
    saves: tuple[SaveSeen, ...] = ()
    in_flight: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Timeline:
    """All moments of a recording.

    Attributes:
        instants: By the index of the entry; 0: before the first.
        strip: Operations and words in order, for a page.
    """

    instants: Mapping[int, Instant]
    strip: tuple[Strip, ...]


def timeline(replay: Replay) -> Timeline:
    """Address every moment."""
    walk = _Walk()
    steps = {step.at: step for step in replay.steps}
    printed = {step.at for step in replay.steps if isinstance(step.entry, Printed | Ended)}
    for entry in replay.log.entries:
        if isinstance(entry, Said):
            walk.hear(entry)
        elif entry.index in printed:
            walk.speak(entry.index, ACKNOWLEDGED)
        if (step := steps.get(entry.index)) is not None:
            walk.pass_by(step)
    return Timeline(walk.instants, tuple(walk.strip))


class _Walk:
    """Goes through a log, and counts."""

    def __init__(self) -> None:
        self.instants = {0: Instant(point=START)}
        self.strip: list[Strip] = []
        self._marker, self._marker_nth = START.marker, START.marker_nth
        self._markers: Counter[str] = Counter()
        self._since: Counter[tuple[str, str]] = Counter()
        self._saves: tuple[SaveSeen, ...] = ()
        self._open: dict[int, tuple[int, str]] = {}
        self._unsynced: dict[int, str] = {}

    def hear(self, said: Said) -> None:
        """The job says a word: what follows is counted from there."""
        event = fields_of(said).get("event")
        if isinstance(event, str) and event:
            self.speak(said.index, event)

    def speak(self, index: int, event: str) -> None:
        """A word was heard, or what stands for it was printed."""
        self.strip.append(self._strip(index, EVENT, event))
        self._markers[event] += 1
        self._marker, self._marker_nth = event, self._markers[event]
        self._since.clear()

    def pass_by(self, step: Step) -> None:
        """A step is done."""
        if step.save is not None:
            self._saves = (*self._saves, step.save)
        if isinstance(step.entry, Said | Printed | Ended):
            point = KillPoint(marker=self._marker, marker_nth=self._marker_nth, operation="", path_class="", nth=0)
        else:
            kind, where = step.kind, path_class(step.path)
            self._since[kind, where] += 1
            nth = self._since[kind, where]
            point = KillPoint(marker=self._marker, marker_nth=self._marker_nth, operation=kind, path_class=where, nth=nth)
            self.strip.append(self._strip(step.at, kind, where))
            self._track(step.entry, where)
        in_flight = frozenset([where for _, where in self._open.values()] + [*self._unsynced.values()])
        self.instants[step.at] = Instant(point=point, saves=self._saves, in_flight=in_flight)

    def _strip(self, index: int, kind: str, where: str) -> Strip:
        return Strip(index=index, kind=kind, path_class=where, marker=self._marker, marker_nth=self._marker_nth)

    def _track(self, entry: AnyEntry, where: str) -> None:
        """Follow which files are open, and which are not synced."""
        if isinstance(entry, Created | Opened) and entry.handle:
            self._open[entry.handle] = (entry.node, where)
        elif isinstance(entry, Closed):
            self._open.pop(entry.handle, None)
        elif isinstance(entry, Wrote | Truncated):
            self._unsynced[entry.node] = where
        elif isinstance(entry, Synced) and entry.scope == "all":
            self._unsynced.clear()
        elif isinstance(entry, Synced | Unlinked):
            self._unsynced.pop(entry.node, None)
