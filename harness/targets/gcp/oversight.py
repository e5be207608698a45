"""Watches over a run on a project while it lasts: the lock is ours, owners still allow it, and it stays within the limits of its plan."""

import os
from collections.abc import Mapping
from types import TracebackType

import msgspec

from harness.errors import BrokenHarnessError, TargetUnavailableError
from harness.targets.gcp.advice import cleaning_of
from harness.targets.gcp.calling import Caller
from harness.targets.gcp.connection import Clients
from harness.targets.gcp.guard import Reading, abort_reason, used_up_reason
from harness.targets.gcp.lock_holders import LockLostError
from harness.targets.gcp.owner_labels import OwnerLabels
from harness.targets.gcp.place import Place
from harness.targets.gcp.plan import Plan
from harness.targets.gcp.plan_usage import PlanUsage, Share
from harness.targets.gcp.project_holding import LOCK_VARIABLE, lock_of
from harness.targets.gcp.run_jobs import RunJob, find_run_jobs
from harness.targets.gcp.submission import Jobs

LOOKED_EVERY_S = 30.0
"""Each look is four reads. A label that was taken back is obeyed at the next one: later where large checkpoints are being read."""

PATIENCE_S = 1800.0
"""For another run to free the project."""


class SharedProjectError(TargetUnavailableError):
    """Somebody who works with another bucket has the project."""

    def __init__(self, *, project: str, found: RunJob) -> None:
        super().__init__(
            target="gcp",
            reason=f"project {project} is in use: {found.name} is the job of run {found.label}, with the bucket {found.bucket}",
            advice=f"wait until that ends; if it is over, {cleaning_of(found.bucket)} removes what it has left",
        )


class RunAbortedError(BrokenHarnessError):
    """A run ended itself: to go on would have been against what was allowed."""

    def __init__(self, *, project: str, reason: str) -> None:
        self.project, self.reason = project, reason
        super().__init__(f"the run on project {project} has ended itself: {reason}; what it made is removed")


class Oversight:
    """Of one run, from ``begin`` to ``end``. Without a plan, on an emulator, there is nothing to watch over.

    Args:
        clients: Google's.
        caller: Does the calls.
        place: Where.
        plan: That was applied.
        environment: Tells whether the harness that began us has the lock.
    """

    def __init__(
        self,
        clients: Clients,
        caller: Caller,
        place: Place,
        *,
        plan: Plan | None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self._clients, self._caller, self._place, self._plan = clients, caller, place, plan
        self._usage = PlanUsage(plan, caller.clock) if plan is not None else None
        self._share = Share(gpus=0, gpu_hours=0.0)
        self._run_id = ""
        self._nonce = environment.get(LOCK_VARIABLE, "")
        self._lock = lock_of(place, clients, caller)
        self._began_s = self._looked_s = caller.clock.monotonic_s()
        self._is_hastened = False
        self._jobs = Jobs(clients, caller)
        self._executions_before: frozenset[str] = frozenset()

    @property
    def lock(self) -> str:
        """Tells the lock that the run is under from every other, to be said on the run's job; empty: none is needed."""
        return "" if self._plan is None else self._nonce or self._lock.nonce

    def require_alone(self) -> None:
        """See that no job of somebody else's run is there, whose lock we may not see. Called when our own job is there to be seen.

        Who comes second sees the first one's job. Two that come at once see one another, and both end: neither has run anything.

        Raises:
            SharedProjectError: When somebody has.
            CallError: When nobody can tell.
        """
        if self._plan is None:
            return
        for found in find_run_jobs(self._jobs, self._place):
            if found.is_allowed and found.lock not in ("", self.lock) and found.bucket != self._place.bucket:
                raise SharedProjectError(project=self._place.project, found=found)

    def begin(self, run_id: str, digest: str = "") -> None:
        """Have the project: by the harness that began us, or by a lock of our own. ``digest``: of the scenario that is run.

        Raises:
            LockedError: When another does not free it.
            LockLostError: When our harness's lock is not ours any more.
            RunAbortedError: When the plan has used up its limits.
            StoreError: When it cannot be written down that a run begins.
        """
        if self._plan is None or self._usage is None:
            return
        if not self._nonce:
            self._lock.wait(run_id, patience_s=PATIENCE_S, say=lambda _: None)
        elif not self._holds_lock():
            raise LockLostError(project=self._place.project, reason="another has it, or nobody")
        self._began_s = self._looked_s = self._caller.clock.monotonic_s()
        reason = used_up_reason(self._reading(self._usage), self._plan.limits)
        if reason:
            raise RunAbortedError(project=self._place.project, reason=reason)
        self._executions_before = self._executions()
        self._share = self._usage.share_of(digest)
        self._usage.begin(run_id, self._share)
        self._run_id = run_id

    def look(self, *, at_once: bool = False) -> None:
        """See that it may go on; called often, it looks now and then, but for ``at_once``, as before a fault acts.

        Raises:
            RunAbortedError: When it may not.
            CallError: When the project does not answer.
        """
        now_s = self._caller.clock.monotonic_s()
        is_due = at_once or self._is_hastened or now_s - self._looked_s >= LOOKED_EVERY_S
        if self._plan is None or self._usage is None or not is_due:
            return
        self._looked_s, self._is_hastened = now_s, False
        reading = msgspec.structs.replace(
            self._reading(self._usage),
            labels=OwnerLabels(self._clients, self._caller, self._place, self._plan).read(),
            holds_lock=self._holds_lock(),
            foreign_executions=tuple(sorted(self._executions() - self._executions_before)),
        )
        reason = abort_reason(reading, self._plan.limits)
        if reason:
            raise RunAbortedError(project=self._place.project, reason=reason)

    def hasten(self) -> None:
        """Look at the next call, whenever the last look was: somebody has seen that something is not as it was."""
        self._is_hastened = True

    def end(self, *, is_over: bool = True) -> None:
        """Free what is ours; ``is_over``: nothing of the run is left, so that it counts no longer. Harmless twice."""
        run_id, self._run_id = self._run_id, ""
        try:
            if run_id and is_over and self._usage is not None:
                self._usage.end(run_id)
        finally:
            self._lock.free()

    def leave(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """As ``end``, at the end of a ``with`` block; after an error there, something of the run may go on."""
        del error, trace
        self.end(is_over=kind is None)

    def _reading(self, usage: PlanUsage) -> Reading:
        """What the plan has used: by what was written down, and at least what this run has by a clock that nobody sets."""
        used, own_s = usage.used(), self._caller.clock.monotonic_s() - self._began_s
        return Reading(
            elapsed_s=max(used.elapsed_s, own_s),
            gpu_hours=max(used.gpu_hours, own_s * self._share.gpus / 3600.0),
            labels={},
            holds_lock=True,
            hours=self._plan.hours if self._plan is not None else "GPU-hours",
        )

    def _holds_lock(self) -> bool:
        if self._nonce:
            holder = self._lock.holder()
            return holder is not None and holder.nonce == self._nonce
        try:
            self._lock.keep()
        except LockLostError:
            return False
        return True

    def _executions(self) -> frozenset[str]:
        """Of the adopted job itself, of which we only run copies."""
        assert self._plan is not None
        is_adopted = any(resource.kind == "job" and resource.action == "adopt" for resource in self._plan.resources)
        return frozenset(self._jobs.list_running(self._place.job_name)) if is_adopted else frozenset()
