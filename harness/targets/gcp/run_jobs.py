"""Ends and deletes the jobs of runs. What runs is cancelled first and seen to end: else it goes on and is billed, unseen."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from harness.errors import UndoError
from harness.targets.gcp.calling import Caller
from harness.targets.gcp.connection import Clients
from harness.targets.gcp.guard import LOCK_LABEL, RUN_LABEL, is_allowed
from harness.targets.gcp.job_volumes import AGENT_VOLUME
from harness.targets.gcp.place import Place
from harness.targets.gcp.submission import Jobs
from harness.targets.gcp.undoing import ProjectRestorer
from harness.undo import CancelRunExecution

if TYPE_CHECKING:
    from google.cloud.run_v2 import Job


@dataclass(frozen=True, slots=True, kw_only=True)
class RunJob:
    """A job that says it is a run's.

    Attributes:
        name: Full, with the ID of the project.
        label: The run's, on the job.
        is_allowed: Whether it carries the label of the owners, as all that a run makes does.
        bucket: Where its agent's volume is; empty: it has none.
        lock: Under whose lock it was made; empty: under none.
    """

    name: str
    label: str
    is_allowed: bool
    bucket: str
    lock: str = ""


def find_run_jobs(jobs: Jobs, place: Place) -> Iterator[RunJob]:
    """Those of the place's region that carry a run's label.

    Raises:
        CallError: When they cannot be listed.
    """
    for job in jobs.list_all(place.parent):
        label = job.labels.get(RUN_LABEL, "")
        if label:
            name = f"{place.parent}/jobs/{job.name.rpartition('/')[2]}"
            yield RunJob(
                name=name, label=label, is_allowed=is_allowed(dict(job.labels)), bucket=_bucket_of(job), lock=job.labels.get(LOCK_LABEL, "")
            )


def remove_run_job(clients: Clients, caller: Caller, project: str, name: str) -> bool:
    """Cancel what of a job runs, see it end, and delete the job; whether it was there.

    Raises:
        UndoError: When an execution could not be cancelled, or was not seen to end: then nothing is deleted; or the job stays.
        CallError: When the job cannot be deleted.
    """
    jobs = Jobs(clients, caller)
    running = jobs.list_running(name)
    if running:
        ProjectRestorer(clients, caller, project).restore(tuple(CancelRunExecution(name=execution) for execution in running))
    for _ in range(2):  # one answer that it is gone is not believed: what a run has left is forgotten then
        if jobs.delete(name):
            return True
        if not jobs.is_there(name):
            return False
    raise UndoError(attempted=f"delete {name}", reason="Cloud Run says that it is not there, and shows it")


def _bucket_of(job: "Job") -> str:
    return next((volume.gcs.bucket for volume in job.template.template.volumes if volume.name == AGENT_VOLUME), "")
