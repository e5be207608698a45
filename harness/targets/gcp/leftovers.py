"""What a run has made on a project, found and removed: by its label, and by its prefix in the bucket. Nothing else is touched."""

import os
from contextlib import closing
from typing import TYPE_CHECKING

from harness.clock import Clock
from harness.errors import HarnessError
from harness.targets.gcp.calling import Caller
from harness.targets.gcp.connection import EMULATOR_VARIABLE, EmulatorGoneError, connect, emulator_addresses
from harness.targets.gcp.failures import ResourceMissingError
from harness.targets.gcp.footprint import Footprint, read_footprint, remove_footprint
from harness.targets.gcp.guard import RUN_LABEL, run_prefix
from harness.targets.gcp.lock_holders import LockedError
from harness.targets.gcp.object_removal import remove_objects
from harness.targets.gcp.place import Place
from harness.targets.gcp.project_holding import lock_of
from harness.targets.gcp.run_jobs import find_run_jobs, remove_run_job
from harness.targets.gcp.run_names import run_job_name, run_label
from harness.targets.gcp.secrets import Secrets
from harness.targets.gcp.submission import Jobs

if TYPE_CHECKING:
    from harness.targets.gcp.connection import Clients


def remove_run(run_id: str, place: Place, clients: "Clients", caller: Caller, *, is_all: bool = True) -> list[str]:
    """Remove everything that a run has made but what is in a cluster; one line for each thing. ``is_all``: there is nothing else.

    Raises:
        HarnessError: When something cannot be ended or removed: it is looked for again by ``harness clean``. Objects stay until the job
            is gone: what it has saved is not taken from under a job that runs.
    """
    removed: list[str] = []
    if place.job:  # else it was on a cluster
        own, label = run_job_name(place, run_id), run_label(run_id)
        jobs = Jobs(clients, caller)
        found = [job for job in find_run_jobs(jobs, place) if job.label == label]
        names = sorted(job.name for job in found if job.name == own or (job.is_allowed and job.bucket == place.bucket))
        if own not in names and _is_labelled(jobs, own, label):  # a list may be late
            names.append(own)
        removed += [f"deleted job {name}" for name in names if remove_run_job(clients, caller, place.project, name)]
    count = remove_objects(clients, caller, place.bucket, run_id)
    if count:
        removed.append(f"deleted {count} objects below gs://{place.bucket}/{run_prefix(run_id)}")
    if is_all:
        remove_footprint(run_id)
    return removed


def _is_labelled(jobs: Jobs, name: str, label: str) -> bool:
    try:
        return jobs.get(name).labels.get(RUN_LABEL) == label
    except ResourceMissingError:
        return False


def left_behind(run_id: str) -> list[str]:
    """What a run has left, one line each; asks the project only where the run was written down to have been there."""
    footprint = read_footprint(run_id)
    if footprint is None:
        return []
    if is_gone(footprint):
        return [_note_of(footprint)]
    return [f"job and objects of the run in {footprint.place.parent}, gs://{footprint.place.bucket}"]


def remove_left_behind(run_id: str, clock: Clock) -> list[str]:
    """Remove it all; one line for each thing done.

    Raises:
        HarnessError: When the project does not answer, or refuses.
    """
    footprint = read_footprint(run_id)
    if footprint is None:
        return []
    if is_gone(footprint):  # nobody to ask, again and again until the deadline
        return _forget_emulated(footprint)
    secrets = Secrets()
    environment = {**os.environ, EMULATOR_VARIABLE: footprint.emulator}
    try:
        clients = connect(footprint.place.project, environment, secrets)
    except EmulatorGoneError:  # just now
        return _forget_emulated(footprint)
    try:
        caller = Caller(clock=clock, secrets=secrets, renew=clients.renew, problem=clients.problem)
        return remove_run(run_id, footprint.place, clients, caller)
    except HarnessError:
        if not is_gone(footprint):
            raise
        return _forget_emulated(footprint)
    finally:
        clients.close()


def require_free_project(run_id: str, clock: Clock) -> None:
    """See that nobody else has the project of a run that has died: what it owes would be done to it in the middle of theirs.

    Where nobody can tell, nothing is left undone for that.

    Raises:
        LockedError: When somebody has it.
    """
    footprint = read_footprint(run_id)
    if footprint is None or is_gone(footprint):
        return
    secrets = Secrets()
    environment = {**os.environ, EMULATOR_VARIABLE: footprint.emulator}
    try:
        with closing(connect(footprint.place.project, environment, secrets)) as clients:
            caller = Caller(clock=clock, secrets=secrets, renew=clients.renew, problem=clients.problem)
            lock_of(footprint.place, clients, caller).require_free(over_dead=True)
    except LockedError:
        raise
    except HarnessError:
        return


def _forget_emulated(footprint: Footprint) -> list[str]:
    remove_footprint(footprint.run_id)
    return [f"removed {_note_of(footprint)}"]


def _note_of(footprint: Footprint) -> str:
    return f"note of what the run had on the emulator at {footprint.emulator}, all of it gone with that"


def is_gone(footprint: Footprint) -> bool:
    """Whether a run was on an emulator where nobody listens any more."""
    addresses = emulator_addresses({EMULATOR_VARIABLE: footprint.emulator})
    return addresses is not None and bool(addresses.silent())
