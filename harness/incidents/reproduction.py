"""A scenario with the timing of an incident: the same faults, in the same attempts, at the same steps.

What the job did by itself, as a crash, no fault can cause: it is told as a note, and the job has to do it again by itself.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.incidents.cluster_reproduction import cluster_injections, cluster_notes, cluster_of
from harness.incidents.diagnosis import Diagnosis
from harness.incidents.fault_moments import FaultMoments, fault_of
from harness.incidents.pace import Pace
from harness.incidents.timeline import AttemptStory, Timeline
from harness.scenario import Expectation, Injection, Scenario, Victim, Workload
from harness.scenario.expectations import Completes, GraceConduct, ResumesFromNewestDurable, WithinRetries
from harness.scenario.faults import EndGrace, ExpireTimeout, Maintenance

INJECTIONS_MAX = 16
"""As many as a scenario may have."""

_SIGKILL = 9


@dataclass(frozen=True, slots=True)
class Reproduction:
    """A scenario, and what of the incident it cannot do."""

    scenario: Scenario
    notes: tuple[str, ...]


def reproduce(timeline: Timeline, diagnoses: Sequence[Diagnosis], workload: Workload, *, speed: float = 1.0) -> Reproduction:
    """The scenario of an incident, on a workload.

    Args:
        timeline: The incident.
        diagnoses: What was found in it: why the scenario is tried.
        workload: The job that plays it. Where its environment has ``STEPS`` and ``STEP_SECONDS``, as the jobs of the catalogue, it is given
            the length and the pace of the incident.
        speed: How many times faster than the incident it goes.
    """
    pace = Pace(timeline, workload, speed)
    maker = _Maker(timeline, pace, FaultMoments(pace))
    kinds = {diagnosis.kind for diagnosis in diagnoses}
    injections, notes = list(maker.injections()), list(maker.notes())
    if timeline.platform == "kubernetes":
        injections, notes = cluster_injections(diagnoses, timeline, maker.moments.step_before), list(cluster_notes(diagnoses))
    if len(injections) > INJECTIONS_MAX:
        notes.append(f"{len(injections) - INJECTIONS_MAX} later faults are left out")
    scenario = Scenario(
        name=scenario_name(timeline.name),
        why=_why(timeline, diagnoses),
        workload=pace.workload,
        platform=pace.platform,
        cluster=cluster_of(diagnoses, timeline, speed=speed),
        injections=tuple(injections[:INJECTIONS_MAX]),
        expects=tuple(maker.expects(len(injections))),
        within_budget=not kinds & {"retries-exhausted", "cancelled"},
        deadline_s=pace.deadline_s,
        tags=("reproduced",),
    )
    return Reproduction(scenario, tuple(notes))


def scenario_name(name: str) -> str:
    """The name of an incident as a scenario's: ``reproduced-train-x7k2p``."""
    words = re.findall(r"[a-z0-9]+", name.lower()[:400])
    return "-".join(["reproduced", *words])[:100].rstrip("-") if words else "reproduced-incident"


def _why(timeline: Timeline, diagnoses: Sequence[Diagnosis]) -> str:
    says = " ".join(diagnoses[0].says.split())[:300] if diagnoses else "nothing was found in it"
    return f"made from the log of {timeline.name[:100]}: {says}"


@dataclass(frozen=True, slots=True)
class _Maker:
    """Makes the parts of the scenario."""

    timeline: Timeline
    pace: Pace
    moments: FaultMoments

    def injections(self) -> Iterator[Injection]:
        """The faults of all attempts, by time."""
        ended = [story for story in self.timeline.attempts if fault_of(story, self.timeline) is not None]
        for story in sorted(ended, key=lambda story: story.last.t_ns):
            fault = fault_of(story, self.timeline)
            if fault is None or story.number > self.pace.platform.max_retries:
                continue
            name = f"task-{story.task}-attempt-{story.number}"
            victim = Victim(task=story.task)
            yield Injection(fault=fault, at=self.moments.trigger(story), victim=victim, attempts=(story.number,), name=name)
            if (
                isinstance(fault, Maintenance | ExpireTimeout)
                and story.signal == _SIGKILL
                and (end := self.moments.end_of_grace(story)) is not None
            ):
                yield Injection(fault=EndGrace(), at=end, victim=victim, attempts=(story.number,), name=f"{name}-grace")

    def notes(self) -> Iterator[str]:
        """What no fault can do."""
        for story in self.timeline.attempts:
            if story.exit is not None and not story.succeeded and fault_of(story, self.timeline) is None:
                code = story.exit[0].exit_code
                how = f"exit code {code}" if code is not None else f"signal {story.exit[0].signal}"
                yield f"attempt {story.number} of task {story.task} ended by itself ({how}): no fault does that, the job has to do it again"
        if self.pace.scale < 1.0:
            yield f"{self.pace.steps:,} steps are played with {self.pace.workload.steps:,}"

    def expects(self, faults: int) -> Iterator[Expectation]:
        """What a job owes that meets this."""
        yield Completes()
        own = len([story for story in self.timeline.attempts if story.exit and not story.succeeded and not fault_of(story, self.timeline)])
        needed = max((len(stories) + (not self._is_settled(stories[-1])) for stories in self.timeline.tasks.values()), default=1)
        yield WithinRetries(attempts_max=min(needed, self.pace.platform.max_retries + 1), own_failures_max=own)
        every = self.pace.workload.save_every or self.pace.save_every
        if faults and every:
            yield ResumesFromNewestDurable(lost_steps_max=every)
        if any(story.notice is not None for story in self.timeline.attempts) and self.timeline.platform == "cloud-run":
            yield GraceConduct()

    def _is_settled(self, last: AttemptStory) -> bool:
        """Whether no attempt was to come after the last one of a task."""
        return last.succeeded or last.exit is None or self.timeline.is_cancelled or self.timeline.ending is not None
