"""From a death to the first step that had not been done before."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from harness.history import Done, StepDone
from harness.ledger.hits import Hits, ended_well
from harness.ledger.spans import Span
from harness.lineage import Incarnation


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """From a death to the first step that had not been done before.

    Attributes:
        attempt: The attempt that died.
        fault_s: When it was hit; when it ended, where nobody hit it.
        recovered_s: When the first new step was done, or the job was complete.
        lost_steps: Steps that it executed and that the next life to train did not go on from.
        parts: Seconds by category; ``detect`` is from the fault to the death, and until the platform noticed it, ``replay`` training, up to
            the first new step.
    """

    attempt: int
    fault_s: float
    recovered_s: float
    lost_steps: int
    parts: dict[str, float]

    @property
    def seconds(self) -> float:
        """The time to recover."""
        return self.recovered_s - self.fault_s

    @property
    def restart_s(self) -> float:
        """What of it would be spent if no work were lost."""
        return self.seconds - self.parts.get("replay", 0.0)


def recoveries_of(lives: Sequence[Incarnation], spans: Sequence[Span], hits: Hits) -> tuple[tuple[Recovery, ...], tuple[float, ...]]:
    """Every death: recovered from, or when it was hit."""
    found: list[Recovery] = []
    unrecovered_s: list[float] = []
    executed = 0
    for index, life in enumerate(lives):
        later = lives[index + 1 :]
        if later:
            died_s = hits.died_s(life, later[0])
        elif life.exit is not None and life.exit.cause != "stop" and not ended_well(life):
            died_s = life.exit.t_s
        else:
            break
        fault_s = min(hits.between(life.attempt, life.began_s, died_s), default=died_s)
        executed = max(executed, life.last_step(died_s))
        recovered_s = _recovered_s(later, executed)
        if recovered_s is None:
            unrecovered_s.append(fault_s)
            continue
        resumed = next((after.restored_step for after in later if after.restored_step is not None), 0)
        found.append(
            Recovery(
                attempt=life.attempt,
                fault_s=fault_s,
                recovered_s=recovered_s,
                lost_steps=max(0, life.last_step(died_s) - resumed),
                parts=_parts(spans, died_s, recovered_s, detected_s=died_s - fault_s),
            )
        )
    return tuple(found), tuple(unrecovered_s)


def _parts(spans: Sequence[Span], died_s: float, recovered_s: float, *, detected_s: float) -> dict[str, float]:
    parts: dict[str, float] = {"detect": detected_s}
    for span in _spans_between(spans, died_s, recovered_s):
        overlap_s = min(span.end_s, recovered_s) - max(span.begin_s, died_s)
        if overlap_s > 0:
            name = "replay" if span.category in ("productive", "lost") else span.category
            parts[name] = parts.get(name, 0.0) + overlap_s
    return parts


def _spans_between(spans: Sequence[Span], begin_s: float, end_s: float) -> Sequence[Span]:
    """Spans that lie in an interval in part or whole; they follow one another in time."""
    first = bisect_right(spans, begin_s, key=lambda span: span.end_s)
    last = bisect_right(spans, end_s, key=lambda span: span.begin_s)
    return spans[first:last]


def _recovered_s(later: Sequence[Incarnation], executed: int) -> float | None:
    """When a step was done that had not been done before, or the job was complete."""
    for life in later:
        for event in life.events:
            if event.rank == 0 and ((isinstance(event, StepDone) and event.step > executed) or isinstance(event, Done)):
                return event.t_s
    return None
