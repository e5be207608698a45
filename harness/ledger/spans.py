"""An attempt's time, span by span, from what rank 0 said."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, get_args

import msgspec

from harness.history import Booted, Done, JobEvent, RestoreBegun, Restored, SaveBegun, SaveEnded, SigtermSeen, Started, StepDone
from harness.ledger.hits import Hits, ended_well
from harness.lineage import Attempt, Incarnation

Category = Literal["productive", "lost", "save", "provision", "start", "restore", "compile", "wind-down", "requeue", "detect"]
"""``productive``: steps that were retained; ``lost``: steps that were not, and the unfinished one at a death; ``save``: the job stood
still to save; ``provision``: attempt started, no process of the job spoke yet; ``start``: until it is ready to train, or until its first
step where it does not say so, but for ``restore``: loading checkpoints; ``compile``: what the first step took more than the others;
``wind-down``: from the last step after a notice, or the last word before a good end, to the exit; ``requeue``: between two attempts, or two
lives of one. On a cluster the time between two lives, and before the first, is told more finely, with ``detect``: see
``harness.ledger.waiting``."""

CATEGORIES: tuple[Category, ...] = get_args(Category)


class Span(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Seconds of one category."""

    category: Category
    begin_s: float
    end_s: float
    attempt: int
    step: int = -1

    @property
    def seconds(self) -> float:
        """Its length."""
        return self.end_s - self.begin_s


def spans_of(attempt: Attempt, begin_s: float, end_s: float, *, cuts: Mapping[int, int], hits: Hits) -> list[Span]:
    """An attempt's time, life by life."""
    spans: list[Span] = []
    cursor_s = begin_s
    for life, after in pairwise(attempt.incarnations):
        died_s, next_s = (min(max(t_s, cursor_s), end_s) for t_s in (hits.died_s(life, after), after.began_s))
        spans += _split_first_step(list(_walk(life, cursor_s, died_s, cuts[life.number])), life)
        if next_s > died_s:
            spans.append(Span(category="requeue", begin_s=died_s, end_s=next_s, attempt=attempt.number))
        cursor_s = max(died_s, next_s)
    last = attempt.incarnations[-1]
    return [*spans, *_split_first_step(list(_walk(last, cursor_s, end_s, cuts[last.number])), last)]


_CLOSING = frozenset({StepDone, SaveBegun, SaveEnded, Booted, RestoreBegun, Restored, Started, SigtermSeen, Done})
"""Words that say what the time before them was; markers and barriers do not."""


def _walk(life: Incarnation, begin_s: float, end_s: float, cut: int) -> Iterator[Span]:
    """Go through what rank 0 said; each word closes the span before it."""
    words = _words(life, end_s)
    phase = _Phase(cut=cut)
    cursor_s = begin_s
    for index, event in enumerate(words):
        category = phase.category_before(event, words, index)
        phase.hear(event)
        if category is None:
            continue
        until_s = max(cursor_s, event.t_s)
        step = event.step if isinstance(event, StepDone) else -1
        yield Span(category=category, begin_s=cursor_s, end_s=until_s, attempt=life.attempt, step=step)
        cursor_s = until_s
    if end_s > cursor_s:
        yield Span(category=phase.category_at_end(life), begin_s=cursor_s, end_s=end_s, attempt=life.attempt)


def _words(life: Incarnation, end_s: float) -> Sequence[JobEvent]:
    """What closes a span; that one host is done, in the log that a silent job's hosts share, does not while others train on."""
    words = [event for event in life.events if type(event) in _CLOSING and event.rank == 0 and event.t_s <= end_s]
    last = max((index for index, event in enumerate(words) if isinstance(event, StepDone)), default=-1)
    return [event for index, event in enumerate(words) if index > last or not isinstance(event, Done)]


@dataclass(slots=True)
class _Phase:
    """Where rank 0 of a life is; ``saving`` is the step of a save that it waits for, -1 when it does not."""

    cut: int
    spoken: bool = False
    trained: bool = False
    saving: int = -1
    restoring: bool = False
    leaving: bool = False

    def hear(self, event: JobEvent) -> None:
        """Go on with a word."""
        self.spoken = True
        if isinstance(event, StepDone):
            self.trained, self.saving = True, -1
        elif isinstance(event, SaveBegun):
            self.saving = event.step
        elif isinstance(event, SaveEnded):
            self.saving = -1 if event.step == self.saving else self.saving
        elif isinstance(event, RestoreBegun | Restored):
            self.restoring = isinstance(event, RestoreBegun)
        elif isinstance(event, Started):
            self.trained, self.restoring = True, False
        elif isinstance(event, SigtermSeen | Done):
            self.leaving = True

    def category_before(self, event: JobEvent, words: Sequence[JobEvent], index: int) -> Category | None:
        """What the time before a word was; None where the word closes nothing."""
        if isinstance(event, StepDone):
            return self._training(event.step)
        if isinstance(event, SaveEnded):
            return "save" if event.step == self.saving else None  # an asynchronous one: the job went on meanwhile
        if isinstance(event, SaveBegun):
            return "wind-down" if self.leaving else self._training(event.step) if self.trained else "start"
        if isinstance(event, Booted):
            return "provision"
        if isinstance(event, SigtermSeen):
            return self._before_notice(words, index)
        if isinstance(event, Done):
            return "wind-down"
        return "restore" if self.restoring else "start"

    def category_at_end(self, life: Incarnation) -> Category:
        """What the time from the last word to the end of the life was."""
        if not self.spoken:
            return "provision"
        return "wind-down" if self.leaving or ended_well(life) else self._unfinished()

    def _before_notice(self, words: Sequence[JobEvent], index: int) -> Category | None:
        """A notice that comes in the middle of something closes it only where that is given up."""
        following = next((word for word in words[index + 1 :] if not isinstance(word, SigtermSeen)), None)
        is_given_up = following is None or isinstance(following, SaveBegun | Done)
        return self._unfinished() if is_given_up and self.saving < 0 else None

    def _unfinished(self) -> Category:
        if not self.trained:
            return "restore" if self.restoring else "start"
        return "lost"

    def _training(self, step: int) -> Category:
        return "productive" if self.cut < 0 or step <= self.cut else "lost"


def _split_first_step(spans: list[Span], life: Incarnation) -> list[Span]:
    """Take out of a life's first step what it took longer than the median of the others: compilation.

    Of a life that never said when it was ready it is its start, and all of it where nothing tells how long a step takes: with Ray, or a
    model to be loaded, minutes pass before the first line on a step.
    """
    steps = [index for index, span in enumerate(spans) if span.step >= 0]
    is_told = life.started is not None
    if not steps or (is_told and len(steps) < 3):
        return spans
    first = spans[steps[0]]
    usual_s = statistics.median(spans[index].seconds for index in steps[1:]) if len(steps) >= 3 else 0.0
    border_s = first.end_s - usual_s
    if not first.begin_s < border_s or (is_told and border_s >= first.end_s):
        return spans
    parts = [
        msgspec.structs.replace(first, category="compile" if is_told else "start", end_s=border_s, step=-1),
        msgspec.structs.replace(first, begin_s=border_s),
    ]
    return [*spans[: steps[0]], *parts, *spans[steps[0] + 1 :]]
