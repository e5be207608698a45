"""The length and the pace of an incident, as a workload and a platform that play it are given them."""

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import msgspec

from harness.incidents.moments import step_pace_s
from harness.incidents.timeline import GRACE_S, AttemptStory, Timeline
from harness.incidents.timestamps import NANOSECONDS
from harness.scenario import Platform, Workload

STEPS_MAX = 2_000
"""Steps of a stand-in: a job of weeks is played with fewer steps, the faults at the same share of them."""

DEADLINE_SPARE_S = 60.0

GRACE_S_MIN = 0.5
"""A grace that is scaled to less measures the machine, not the job."""

_SIGKILL = 9


@dataclass(frozen=True)
class Pace:
    """Steps are scaled to what the workload is given, seconds by the speed.

    Attributes:
        timeline: The incident.
        given: The workload as it is.
        speed: How many times faster than the incident the scenario goes.
    """

    timeline: Timeline
    given: Workload
    speed: float

    @cached_property
    def steps_seen(self) -> int:
        """The highest step of the incident."""
        return max((story.last_step or 0 for story in self.timeline.attempts), default=0)

    @cached_property
    def save_every(self) -> int:
        """The usual distance between two saves; 0 where no two were seen."""
        found: list[int] = []
        for story in self.timeline.attempts:
            steps = sorted({step for step, _ in (*story.saves_begun(), *story.saves_ended())})
            found += [after - before for before, after in pairwise(steps)]
        return sorted(found)[len(found) // 2] if found else 0

    @property
    def is_paced(self) -> bool:
        """Whether the workload can be given the length of the incident."""
        return {"STEPS", "STEP_SECONDS"} <= self.given.environment.keys()

    @cached_property
    def steps(self) -> int:
        """The final step of the incident: where the job said it was done, else some more than it came to."""
        if any(story.done is not None for story in self.timeline.attempts):
            return self.steps_seen
        more = self.steps_seen + max(self.save_every, self.steps_seen // 4, 1)
        return max(more, self.timeline.words.steps, self.given.steps)

    @property
    def scale(self) -> float:
        """Steps of the workload for one of the incident."""
        return min(1.0, STEPS_MAX / max(self.steps, 1)) if self.is_paced else 1.0

    @cached_property
    def workload(self) -> Workload:
        """The workload, with the length and the pace of the incident where it takes them."""
        if not self.is_paced or not self.steps_seen:
            return self.given
        environment = {**self.given.environment, "STEPS": str(max(1, math.ceil(self.steps * self.scale)))}
        pace_s = step_pace_s(self.timeline)
        if pace_s is not None:
            environment["STEP_SECONDS"] = f"{min(max(pace_s / self.scale / self.speed, 0.001), 3600.0):.4g}"
        save_every = self.given.save_every
        if self.save_every and "SAVE_EVERY" in environment:
            save_every = max(1, round(self.save_every * self.scale))
            environment["SAVE_EVERY"] = str(save_every)
        return msgspec.structs.replace(self.given, environment=environment, steps=int(environment["STEPS"]), save_every=save_every)

    @cached_property
    def platform(self) -> Platform:
        """What the incident's platform granted, scaled; the timeout leaves room where none was reached."""
        granted = self.timeline.granted
        longest_s = max((self._lasted_s(story) for story in self.timeline.attempts), default=0.0)
        timeout_s = granted.timeout_s if granted.timeout_s is not None else 600.0
        used = max((story.number for story in self.timeline.attempts), default=0)
        tasks = min(max(granted.tasks or 0, max(self.timeline.tasks, default=0) + 1), 10_000)
        return Platform(
            tasks=tasks,
            max_retries=min(granted.max_retries if granted.max_retries is not None else self._retries(used), 10),
            timeout_s=max(timeout_s / self.speed, 2 * longest_s / self.speed, 60.0),
            grace_s=max(self.grace_s / self.speed, GRACE_S_MIN),
        )

    @cached_property
    def grace_s(self) -> float:
        """From SIGTERM to SIGKILL, where both were seen; else what the platform grants."""
        killed = [story for story in self.timeline.attempts if story.sigterm is not None and story.signal == _SIGKILL]
        seen = [(story.exit[1].t_ns - story.sigterm.t_ns) / NANOSECONDS for story in killed if story.exit and story.sigterm]
        return max(seen, default=GRACE_S) or GRACE_S

    def _retries(self, used: int) -> int:
        """The default; what was used, where that was all there was."""
        ended = self.timeline.ending is not None and self.timeline.ending.failed > 0
        return used if ended else max(3, used)

    @property
    def deadline_s(self) -> float:
        """Twice what the incident took, and some seconds to start."""
        wall_s = max((each.event.t_s for each in self.timeline.seen), default=0.0)
        pace_s = float(self.workload.environment.get("STEP_SECONDS", "0")) if self.is_paced else 0.0
        return DEADLINE_SPARE_S + 2 * max(wall_s / self.speed, self.workload.steps * pace_s)

    def _lasted_s(self, story: AttemptStory) -> float:
        return (story.last.t_ns - story.first.t_ns) / NANOSECONDS
