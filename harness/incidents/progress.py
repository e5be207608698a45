"""How far the attempts of an incident had come, by what they say of steps and of saves."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from harness.history import Done, SaveBegun, SaveEnded, StepDone
from harness.incidents.entries import Entry, order_of
from harness.incidents.timeline import AttemptStory, Timeline
from harness.incidents.timestamps import NANOSECONDS


@dataclass(frozen=True)
class Progress:
    """The steps that each attempt tells of, and what was known of all of them at a moment."""

    timeline: Timeline
    _told: dict[tuple[int, int], dict[int, Entry]] = field(default_factory=dict)

    def told(self, story: AttemptStory) -> dict[int, Entry]:
        """Steps that an attempt tells of, by themselves or by a save, each with the first entry that does.

        That it is complete is no word of a step: which one is the last is then only what its configuration says.
        """
        place = (story.task, story.number)
        if place not in self._told:
            steps: dict[int, Entry] = {}
            for step, entry in self._words_of(story):
                steps.setdefault(step, entry)
            self._told[place] = steps
        return self._told[place]

    def told_apart(self, story: AttemptStory) -> tuple[set[int], set[int]]:
        """Steps of which an attempt tells by themselves, and those of which it tells by a save."""
        saves = {id(entry) for kind in (SaveBegun, SaveEnded) for _, entry in story.of_type(kind)}
        apart: tuple[set[int], set[int]] = (set(), set())
        for step, entry in self._words_of(story):
            apart[id(entry) in saves].add(step)
        return apart

    def _words_of(self, story: AttemptStory) -> Iterator[tuple[int, Entry]]:
        ends = self._plain_ends(story)
        return ((event.step, entry) for event, entry in story.of_type(StepDone) if id(entry) not in ends)

    def _plain_ends(self, story: AttemptStory) -> set[int]:
        """Entries that say that it is complete, and nothing of a step beside that."""
        ends = {id(entry) for _, entry in story.of_type(Done)}
        if not ends:
            return ends
        step = self.timeline.words.patterns.step
        return ends - {id(entry) for line, entry in story.lines() if id(entry) in ends and line.search(step) is not None}

    def reached(self, story: AttemptStory) -> int | None:
        """How far an attempt had come by its own words; None: it says nothing of that. Steps that are counted from 0 are one more."""
        steps = self.told(story)
        begun = story.resumed[0] if story.resumed is not None and story.says_how_it_resumed else None
        is_from_zero = any(0 in self.told(each) for each in self.timeline.tasks[story.task])
        told = max(steps) + is_from_zero if steps else None
        return max((each for each in (begun, told) if each is not None), default=None)

    def untold_s(self, stories: Sequence[AttemptStory]) -> float:
        """Seconds in which attempts may have done steps that they do not tell: from the last one that they do to their end."""
        lasts = (max(self.told(each).values(), key=order_of, default=each.first) for each in stories)
        return sum(max(0, each.last.t_ns - last.t_ns) for each, last in zip(stories, lasts, strict=True)) / NANOSECONDS

    def known_before(self, entry: Entry) -> tuple[int, Entry] | None:
        """How far anybody had come before an entry, with the entry that says so: tasks may share a checkpoint."""
        place = bisect_left(self._known, order_of(entry), key=lambda known: order_of(known[2]))
        return self._known[place - 1][:2] if place else None

    def saved_before(self, entry: Entry) -> int | None:
        """The newest step that was saved before an entry, or of which a save had begun."""
        saves = (each for each in self.timeline.seen if order_of(each.entry) < order_of(entry))
        return max((each.event.step for each in saves if isinstance(each.event, SaveBegun | SaveEnded)), default=None)

    @cached_property
    def _known(self) -> list[tuple[int, Entry, Entry]]:
        """By time: the furthest step so far, the entry that says it, and the one at which that was so."""
        points: list[tuple[int, Entry]] = []
        for story in self.timeline.attempts:
            points += self.told(story).items()
            if story.resumed is not None and story.says_how_it_resumed:
                points.append(story.resumed)
        known: list[tuple[int, Entry, Entry]] = []
        for step, entry in sorted(points, key=lambda point: order_of(point[1])):
            before = known[-1] if known and known[-1][0] >= step else (step, entry, entry)
            known.append((before[0], before[1], entry))
        return known
