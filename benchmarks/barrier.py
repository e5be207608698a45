"""Kills at a marker: how soon after the job has come to the barrier, and whether exactly there."""

import math
from collections.abc import Iterator, Mapping, Sequence

from benchmarks.figure import Effort, Figure, Goal, Measured, Row
from benchmarks.jobs import counter, run_judged
from harness.history import AttemptExited, BarrierReached, JobEvent, SaveBegun, SaveEnded, SignalSent
from harness.lineage import Attempt, Lineage, trace
from harness.runner import Run
from harness.runner.play import TICK_S
from harness.scenario import Injection
from harness.scenario.expectations import Completes, IntactCheckpoints, ResumesFromNewestDurable, WithinRetries
from harness.scenario.faults import Kill
from harness.scenario.triggers import AtMarker

KILLS_A_RUN = 10
"""As many as Cloud Run can retry."""

NTH = 2
"""The second save of each attempt: the first one has to be kept, and the next attempt goes on from it."""

LATENCY = Row(name="kill-latency", what="from the barrier to the kill, median", unit="ms", decimals=1)
LATENCY_P99 = Row(
    name="kill-latency-p99",
    what="the same, 99th percentile; the goal is one tick of the run loop",
    unit="ms",
    goal=Goal(limit=1000 * TICK_S),
    decimals=1,
)
EXACT = Row(
    name="kill-precision",
    what="kills at a marker that hit exactly there",
    unit="of 100",
    goal=Goal(limit=100.0, kind="at least"),
    decimals=0,
)

SCENARIO = counter(
    "a-kill-at-a-marker-hits-exactly-there",
    steps=5 * (KILLS_A_RUN + 2),
    step_s=0.002,
    injections=(Injection(fault=Kill(), at=AtMarker(event="save.begin", nth=NTH), attempts=tuple(range(KILLS_A_RUN)), name="kill"),),
    expects=(Completes(), IntactCheckpoints(), ResumesFromNewestDurable(lost_steps_max=5), WithinRetries(attempts_max=KILLS_A_RUN + 1)),
    max_retries=KILLS_A_RUN,
)


def measure(effort: Effort) -> Mapping[str, Measured]:
    """Kill the counter in the middle of a save, attempt after attempt, a hundred times in all."""
    latencies_ms: list[float] = []
    exact: list[bool] = []
    for _ in range(effort.rounds(100 // KILLS_A_RUN, 2)):
        _, run = run_judged(SCENARIO)
        assert run.verdict.is_valid, run.explain()
        latencies_ms += _latencies_ms(run)
        exact += _hits(trace(run.history.events))
    share = 100 * sum(exact) / len(exact)
    note = f"{len(exact)} kills"
    return {
        LATENCY.name: Measured(latencies_ms, note),
        LATENCY_P99.name: Measured([_percentile(latencies_ms, 0.99)], note),
        EXACT.name: Measured([share], note),
    }


def _latencies_ms(run: Run) -> Iterator[float]:
    """From the job's own word before it asks the barrier to the signal: a save that came before the armed one is let go and not counted."""
    reached: dict[int, float] = {}
    for event in run.history.events:
        if isinstance(event, BarrierReached):
            reached[event.attempt] = event.t_s
        elif isinstance(event, SignalSent):
            yield 1000 * (event.t_s - reached[event.attempt])


def _hits(lineage: Lineage) -> Iterator[bool]:
    for attempt in lineage.attempts[:KILLS_A_RUN]:
        yield _is_exact(attempt)


def _is_exact(attempt: Attempt) -> bool:
    """Whether the job has said and done nothing after the marker: the nth save was begun, and not a word after it."""
    words = [event for life in attempt.incarnations for event in life.events if not isinstance(event, BarrierReached)]
    begun = [event for event in words if isinstance(event, SaveBegun)]
    ended = [event for event in words if isinstance(event, SaveEnded)]
    return _was_killed(attempt.exit) and len(begun) == NTH and len(ended) == NTH - 1 and _last(words) is begun[-1]


def _was_killed(end: AttemptExited | None) -> bool:
    return end is not None and end.signal == 9


def _last(words: Sequence[JobEvent]) -> JobEvent:
    return words[-1]


def _percentile(samples: Sequence[float], share: float) -> float:
    return sorted(samples)[math.ceil(share * len(samples)) - 1]


FIGURE = Figure(rows=(LATENCY, LATENCY_P99, EXACT), measure=measure)
