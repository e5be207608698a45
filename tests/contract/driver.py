"""Drives a target as the runner does, without faults, checkers or a store: start, poll until something was seen, stop."""

import os
import sys
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from harness.capabilities import ImageHost, Launch, Processes, Target
from harness.clock import SystemClock
from harness.history import AttemptExited, BarrierReached, Event, LogLine
from harness.targets import create

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 60.0  # no test needs a tenth of it; the rest is for a loaded machine
TICK_S = 0.02

OWN_WORDS = ("Times of this attempt's events, on the harness's clock,", "In its grace the job was not held after a save:")
"""What the harness itself says of an attempt, beside what its platform does."""

E = TypeVar("E", bound=Event)


@dataclass(frozen=True, kw_only=True)
class Traits:
    """Where targets may differ, each as its ``fidelity`` says.

    Attributes:
        has_namespace: An attempt's first process is PID 1 of a namespace of its own: signals without a handler are dropped, orphans come to it, and
            the kernel ends all with it, uncounted.
        has_image: Variables and files are those of an image: paths in the job are not those of this machine.
        is_remote: A service runs the job, and an agent beside it tells of it: processes are known as far as they were told of, nothing of the
            image is, the service alone ends and retries, and what a run has made stays until it is stopped.
    """

    has_namespace: bool
    has_image: bool
    is_remote: bool = False

    def leftovers(self, count: int) -> int:
        """How many of ``count`` that outlived the first process are told."""
        return 0 if self.has_namespace else count


TRAITS: Mapping[str, Traits] = {
    "local": Traits(has_namespace=False, has_image=False),
    "docker": Traits(has_namespace=True, has_image=True),
    "gcp": Traits(has_namespace=False, has_image=True, is_remote=True),
}
"""The targets that play executions of Cloud Run jobs."""

EVERY: Mapping[str, Traits] = {
    **TRAITS,
    "kind": Traits(has_namespace=True, has_image=True),
}
"""All of them."""

SEEN_HERE = [name for name, traits in TRAITS.items() if not traits.is_remote]
"""Where the processes of a job are those of this machine or of a container on it."""

PYTHON = ("{python}", "-S", "-c")  # without site: starts twice as fast

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
        self.traits = EVERY[name]
        self.seen: list[Event] = []
        self.releases = True
        checkpoint_dir = home / "checkpoints"
        checkpoint_dir.mkdir(parents=True, exist_ok=True)
        python = self.target.interpreter() if isinstance(self.target, ImageHost) else sys.executable
        base = Launch(
            run_id=uuid.uuid4().hex,
            job="contract-job",
            command=tuple(part.replace("{python}", python) for part in command),
            directory=ROOT,
            environment={} if self.traits.has_image else {"PATH": os.environ["PATH"]},
            checkpoint_dir=checkpoint_dir,
            logs_dir=home / "logs",
            max_retries=0,
            epoch_s=self.clock.monotonic_s(),
        )
        launch["environment"] = {**base.environment, **launch.get("environment", {})}
        self.launch = replace(base, **launch)

    def start(self) -> "Run":
        target: Target = self.target
        if self.traits.is_remote:
            from tests.contract.project import CONTRACT

            self.target.check_scenario(CONTRACT, self.launch)  # on a project nothing begins that was not planned
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
        """What was printed there; on ``system`` what the platform says, and not how exact the harness's own times are."""
        return [line.text for line in self.of(LogLine) if line.stream == stream and not line.text.startswith(OWN_WORDS)]

    def victim(self, **fields: int) -> Processes:
        return Processes(**fields)
