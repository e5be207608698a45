"""Drives a target as the runner does, without faults, checkers or a store: start, poll until something was seen, stop."""

import os
import sys
import uuid
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from harness.capabilities import Launch, Processes, Target
from harness.clock import SystemClock
from harness.history import AttemptExited, BarrierReached, Event, LogLine
from harness.targets import create

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 60.0  # no test needs a tenth of it; the rest is for a loaded machine
TICK_S = 0.02

E = TypeVar("E", bound=Event)

PYTHON = (sys.executable, "-S", "-c")  # without site: starts twice as fast

PRELUDE = """
import os, signal, subprocess, sys, time
from workloads.protocol import emit
attempt = int(os.environ["CLOUD_RUN_TASK_ATTEMPT"])
"""


def python(code: str) -> tuple[str, ...]:
    """A job in Python that can ``emit`` and knows its ``attempt``."""
    return (*PYTHON, PRELUDE + code)


class Run:
    """One run of a small job on a target. ``seen`` is its history so far."""

    def __init__(self, name: str, home: Path, command: Sequence[str], **launch: Any) -> None:
        self.clock = SystemClock()
        self.target: Any = create(name, self.clock)  # which capabilities it has is what the tests ask
        self.seen: list[Event] = []
        self.releases = True
        checkpoint_dir = home / "checkpoints"
        checkpoint_dir.mkdir(parents=True, exist_ok=True)
        base = Launch(
            run_id=uuid.uuid4().hex,
            job="contract-job",
            command=tuple(command),
            directory=ROOT,
            environment={"PATH": os.environ["PATH"]},
            checkpoint_dir=checkpoint_dir,
            logs_dir=home / "logs",
            max_retries=0,
            epoch_s=self.clock.monotonic_s(),
        )
        self.launch = replace(base, **launch)

    def start(self) -> "Run":
        target: Target = self.target
        target.start(self.launch)
        return self

    def poll(self) -> list[Event]:
        """One turn of the loop: wait, poll, let go who waits at the barrier."""
        self.target.wait(TICK_S)
        events = list(self.target.poll())
        self.seen += events
        if self.releases:
            for event in events:
                if isinstance(event, BarrierReached):
                    self.target.release(event)
        return events

    def until(self, kind: type[E], matches: Callable[[E], bool] = lambda _: True, *, nth: int = 1) -> E:
        """Go on until an event of that kind was seen for the nth time in the run; returns it."""
        return self.until_true(
            lambda: found[nth - 1] if len(found := [event for event in self.of(kind) if matches(event)]) >= nth else None
        )

    def until_true(self, condition: Callable[[], Any]) -> Any:
        deadline_s = self.clock.monotonic_s() + DEADLINE_S
        while not (value := condition()):
            assert self.clock.monotonic_s() < deadline_s, f"not seen in {DEADLINE_S} s: {self.seen[-20:]}"
            assert not self.target.is_finished(), f"the run ended before: {self.seen[-20:]}"
            self.poll()
        return value

    def finish(self) -> list[Event]:
        """Go on to the end of the execution."""
        deadline_s = self.clock.monotonic_s() + DEADLINE_S
        while not self.target.is_finished():
            assert self.clock.monotonic_s() < deadline_s, f"not finished in {DEADLINE_S} s: {self.seen[-20:]}"
            self.poll()
        return self.seen

    def stop(self) -> list[Event]:
        events = list(self.target.stop())
        self.seen += events
        return events

    def of(self, kind: type[E]) -> list[E]:
        return [event for event in self.seen if isinstance(event, kind)]

    def exits(self) -> list[AttemptExited]:
        return self.of(AttemptExited)

    def lines(self, stream: str = "stdout") -> list[str]:
        return [line.text for line in self.of(LogLine) if line.stream == stream]

    def victim(self, **fields: int) -> Processes:
        return Processes(**fields)
