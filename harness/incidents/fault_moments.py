"""When the fault of an incident came: as a trigger that comes at the same moment of the job, as exact as the job can be seen."""

from dataclasses import dataclass

from harness.history import JobEvent, SaveBegun, StepDone
from harness.incidents.entries import Entry
from harness.incidents.moments import step_pace_s
from harness.incidents.pace import Pace
from harness.incidents.timeline import AttemptStory, Timeline
from harness.incidents.timestamps import NANOSECONDS
from harness.scenario import Fault, Trigger
from harness.scenario.faults import CancelExecution, ExpireTimeout, Kill, Maintenance
from harness.scenario.triggers import AfterSeconds, AtMarker, AtStep, OnLog

_SIGKILL = 9


@dataclass(frozen=True, slots=True)
class FaultMoments:
    """Places the faults of an incident in the life of the workload that plays it."""

    pace: Pace

    def trigger(self, story: AttemptStory) -> Trigger:
        """When the fault came: at the step that was done last, after the save that was, or after so many seconds."""
        moment = _moment_of(story)
        told = self.pace.workload.outside.logs
        if (
            isinstance(fault_of(story, self.pace.timeline), Kill)
            and self.pace.workload.speaks_protocol
            and (nth := _save_cut_short(story, self.pace.timeline))
        ):
            return AtMarker(event="save.begin", nth=nth)
        step = self.step_before(story, moment)
        if step and (self.pace.workload.speaks_protocol or told.step):
            return AtStep(step=step)
        saves = [entry for _, entry in story.saves_ended() if entry.t_ns <= moment.t_ns]
        if saves and told.saved:
            return OnLog(pattern=told.saved, nth=len(saves))
        return AfterSeconds(seconds=round(max(0.0, (moment.t_ns - story.first.t_ns) / NANOSECONDS) / self.pace.speed, 3))

    def step_before(self, story: AttemptStory, moment: Entry) -> int:
        """The step that an attempt had done last at a moment, as the workload counts; 0 where that cannot be told."""
        resumed = story.resumed[0] if story.resumed is not None else 0
        done = [(event.step, entry) for event, entry in story.of_type(StepDone) if entry.t_ns <= moment.t_ns]
        after = [event.step for event, entry in story.of_type(StepDone) if entry.t_ns > moment.t_ns]
        step, entry = max(done, key=lambda each: each[0], default=(resumed, story.first))
        pace_s = step_pace_s(self.pace.timeline)
        if after and self._counts_by_saves(story):
            step = min(after)  # the save after the notice says how far it was
        elif self._counts_by_saves(story) and pace_s:
            between = int((moment.t_ns - entry.t_ns) / NANOSECONDS / pace_s)
            step += min(max(between, 0), max(self.pace.save_every - 1, 0))
        if step <= resumed:
            return 0
        last = self.pace.workload.steps - 1 if self.pace.workload.steps > 1 else step
        return max(1, min(round(step * self.pace.scale), last))

    def _counts_by_saves(self, story: AttemptStory) -> bool:
        """Whether all that is known of its steps is which of them it saved."""
        return not story.tells_steps and bool(story.of_type(StepDone))

    def end_of_grace(self, story: AttemptStory) -> Trigger | None:
        """Where the grace ended: in the save after the notice, where the job can be stopped there; else its own clock ends it."""
        notice = story.notice
        if notice is None or not self.pace.workload.speaks_protocol:
            return None
        before = [step for step, entry in story.saves_begun() if entry.t_ns < notice.t_ns]
        after = [step for step, entry in story.saves_begun() if entry.t_ns >= notice.t_ns]
        return AtMarker(event="save.begin", nth=len(before) + len(after)) if after else None


def fault_of(story: AttemptStory, timeline: Timeline) -> Fault | None:
    """What ended an attempt, as a fault; None: nothing did, or the job itself."""
    is_last = story is timeline.tasks[story.task][-1]
    if (story.exit is None and is_last) or (story.succeeded and story.notice is None):
        return None
    if timeline.is_cancelled and is_last:
        return CancelExecution()
    if "timed-out" in story.platform:
        return ExpireTimeout()
    if story.notice is not None:
        return Maintenance()
    return Kill() if "out-of-memory" in story.platform or story.signal == _SIGKILL else None


def _moment_of(story: AttemptStory) -> Entry:
    """When the fault came: the notice, else the word of the platform, else the end."""
    return story.notice or story.platform.get("out-of-memory") or (story.exit[1] if story.exit is not None else story.last)


def _save_cut_short(story: AttemptStory, timeline: Timeline) -> int:
    """Which save of the attempt it died in, counted from 1; 0 where it died in none, or went on from it."""
    words = [each for each in story.seen if isinstance(each.event, JobEvent)]
    if not words or not isinstance(words[-1].event, SaveBegun) or story.saves_ended():
        return 0
    later = (each.resumed for each in timeline.tasks[story.task] if each.number > story.number)
    resumed = next((each for each in later if each is not None), None)
    return len(story.saves_begun()) if resumed is not None and resumed[0] < words[-1].event.step else 0
