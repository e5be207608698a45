"""Which entry says that all of an incident is complete."""

from harness.history import SubmissionSeen, WorkloadSeen
from harness.incidents.cluster_words import FINISHED_WELL
from harness.incidents.entries import Entry
from harness.incidents.timeline import Timeline


def completed_by(timeline: Timeline) -> Entry | None:
    """The entry that says that all of it is complete."""
    if timeline.ending is not None:
        return timeline.ending.entry if timeline.ending.succeeded and not timeline.ending.failed else None
    if timeline.platform == "kubernetes":
        return finished_by(timeline)
    lasts = [stories[-1] for stories in timeline.tasks.values()]
    ends = [story.exit[1] for story in lasts if story.exit is not None and story.succeeded]
    return ends[-1] if ends and len(ends) == len(lasts) else None


def finished_by(timeline: Timeline) -> Entry | None:
    """Of a job on a cluster: its workload is finished and has succeeded, its object complete, or it says so itself."""
    for each in reversed(timeline.seen):
        event = each.event
        if isinstance(event, WorkloadSeen) and finished_as(event) in FINISHED_WELL:
            return each.entry
        if isinstance(event, SubmissionSeen) and event.status in ("Complete", "SUCCEEDED"):
            return each.entry
    return next((story.done for story in reversed(timeline.attempts) if story.done is not None), None)


def finished_as(workload: WorkloadSeen) -> str:
    """The reason for which a workload is finished; empty: it is not."""
    finished = workload.condition("Finished")
    return finished.reason if finished is not None and finished.status == "True" else ""
