"""The queue of the run: its quota, who else is in it, and what the victim's workload may keep."""

from abc import abstractmethod

from harness.capabilities import Processes
from harness.kind.topology import TPU_RESOURCE
from harness.quantities import whole_number
from harness.targets.kubernetes.api import (
    CLUSTER_QUEUES,
    JOBS,
    LOCAL_QUEUES,
    NOT_FOUND,
    PRIORITY_CLASSES,
    RESOURCE_QUOTAS,
    WORKLOADS,
    Api,
    ApiError,
    Object,
    Resource,
    conditions_of,
    name_of,
    uid_of,
)
from harness.targets.kubernetes.dws import DwsSimulator
from harness.targets.kubernetes.grounds import ClusterHosting, Hosting
from harness.targets.kubernetes.occupying import (
    Occupant,
    admitted_chips,
    class_name,
    deletions,
    is_admitted,
    is_gone,
    occupant_name,
    submit,
    told,
    workload_of,
)
from harness.targets.kubernetes.quota import LIMIT_NAME, counted_quota, free_chips, limit, limited_to, nominal_quota, set_nominal_quota
from harness.targets.kubernetes.refusals import told_as_lookup_errors
from harness.undo import ClusterAction, DeleteObject, Reactivate, RestoreQuota

DEACTIVATED_BY = "DeactivatedDueTo"
"""What the reason of an eviction begins with when Kueue has deactivated the workload for a cause of its own."""

CHANGEABLE_WORKLOADS = Resource("kueue.x-k8s.io/v1beta2", "workloads")
"""In v1beta1 a rule of the schema refuses every change of an admitted workload without a priority class.

Seen with Kueue 0.17.0: "no such key: priorityClassSource evaluating rule: priorityClassSource is immutable while workload quota reserved".
"""


class QueueChanging(ClusterHosting):
    """The part of a target that is a ``QueueHost``, but for capacity that is revoked: that is whose who provisions it."""

    # ---- quota -------------------------------------------------------------------------------------------------------

    def quota_of(self, flavor: str) -> int:
        """See ``QueueHost``."""
        with told_as_lookup_errors():
            queue = self._queue()
        quota = nominal_quota(queue, flavor)
        if quota is None:
            raise LookupError(f"queue {name_of(queue)!r} has no quota of {TPU_RESOURCE} of flavor {flavor!r}")
        return whole_number(quota)

    def set_quota(self, flavor: str, chips: int) -> None:
        """See ``QueueHost``."""
        with told_as_lookup_errors():
            set_nominal_quota(self.grounds.api, name_of(self._queue()), flavor, str(chips))

    def quota_in_force(self, flavor: str) -> int | None:
        """See ``QueueHost``."""
        try:
            return counted_quota(self._queue(), flavor)
        except (ApiError, LookupError):
            return None  # it is asked again

    def quota_undo(self, flavor: str, *, to: int) -> tuple[ClusterAction, ...]:
        """See ``QueueHost``."""
        quota = str(self.quota_of(flavor))
        return (RestoreQuota(queue=name_of(self._queue()), flavor=flavor, resource=TPU_RESOURCE, quota=quota, wrote=str(to)),)

    def limit_namespace(self, chips: int | None) -> None:
        """See ``QueueHost``."""
        grounds = self.grounds
        with told_as_lookup_errors():
            if chips is None:
                grounds.api.delete(RESOURCE_QUOTAS, LIMIT_NAME, grounds.namespace)
            else:
                limit(grounds.api, grounds.namespace, chips, grounds.launch.run_id)

    def is_limited_to(self, chips: int | None) -> bool:
        """See ``QueueHost``."""
        try:
            return limited_to(self.grounds.api, self.grounds.namespace) == chips
        except (ApiError, LookupError):
            return False  # it is asked again

    def limit_undo(self) -> tuple[ClusterAction, ...]:
        """See ``QueueHost``."""
        kind = RESOURCE_QUOTAS
        return (DeleteObject(api_version=kind.api_version, resource=kind.plural, namespace=self.grounds.namespace, name=LIMIT_NAME),)

    # ---- another job -------------------------------------------------------------------------------------------------

    def occupy(self, name: str, *, flavor: str, chips: int) -> str:
        """See ``QueueHost``."""
        with told_as_lookup_errors():
            wanted = chips or free_chips(self._queue(), flavor)
            if not wanted:
                raise LookupError(f"no chip of flavor {flavor!r} is free")
            job = submit(self.grounds.api, self.grounds.placeholder_image, self._occupant(name, flavor, wanted))
        self.grounds.ahead.add(occupant_name(name))
        return f"job {name_of(job)} for {wanted} chips of flavor {flavor}"

    def occupied(self, name: str, *, flavor: str) -> str:
        """See ``QueueHost``."""
        grounds = self.grounds
        try:
            job = grounds.api.get(JOBS, occupant_name(name), grounds.namespace)
            workload = None if job is None else workload_of(grounds.api, job)
        except ApiError:
            return ""  # it is asked again
        if workload is None or not is_admitted(workload):
            return ""
        held = admitted_chips(workload)
        if set(held) != {flavor}:
            raise LookupError(f"a job for chips of flavor {flavor!r} was admitted to {held}")
        grounds.ahead.discard(occupant_name(name))
        return told(workload)

    def preempt(self, name: str, victim: Processes) -> str:
        """See ``QueueHost``."""
        held = admitted_chips(self._workload(victim))
        if not held:
            raise LookupError(f"the workload of task {victim.task} holds no chips that another job could take")
        with told_as_lookup_errors():
            queue = self._queue()
            policy = ((queue["spec"].get("preemption") or {}).get("withinClusterQueue")) or "Never"
            if policy == "Never":
                raise LookupError(f"queue {name_of(queue)!r} preempts nobody: spec.preemption.withinClusterQueue is {policy}")
            flavor, taken = next(iter(held.items()))
            chips = taken + free_chips(queue, flavor)  # with less it would be admitted beside the victim
            job = submit(self.grounds.api, self.grounds.placeholder_image, self._occupant(name, flavor, chips, is_preempting=True))
        return f"job {name_of(job)} of higher priority for {chips} chips of flavor {flavor}"

    def has_admitted(self, name: str) -> bool:
        """See ``QueueHost``."""
        try:
            grounds = self.grounds
            job = grounds.api.get(JOBS, occupant_name(name), grounds.namespace)
            return job is not None and is_admitted(workload_of(grounds.api, job))
        except (ApiError, LookupError):
            return False  # it is asked again

    def vacate(self, name: str) -> None:
        """See ``QueueHost``."""
        grounds = self.grounds
        grounds.ahead.discard(occupant_name(name))
        with told_as_lookup_errors():
            grounds.api.delete(JOBS, occupant_name(name), grounds.namespace)
            grounds.api.delete(PRIORITY_CLASSES, class_name(grounds.namespace, occupant_name(name)))

    def is_vacated(self, name: str) -> bool:
        """See ``QueueHost``."""
        try:
            return is_gone(self.grounds.api, self.grounds.namespace, occupant_name(name))
        except (ApiError, LookupError):
            return False  # it is asked again

    def occupation_undo(self, name: str) -> tuple[ClusterAction, ...]:
        """See ``QueueHost``."""
        return deletions(self.grounds.namespace, occupant_name(name))

    # ---- the victim's own --------------------------------------------------------------------------------------------

    def set_active(self, victim: Processes, *, is_active: bool) -> bool:
        """See ``QueueHost``."""
        workload = self.grounds.inventory.workload(victim.task)
        if workload is None:
            return False
        with told_as_lookup_errors():
            return activate(self.grounds.api, self.grounds.namespace, name_of(workload), is_active=is_active)

    def reactivate(self, victim: Processes) -> str:
        """See ``QueueHost``."""
        grounds = self.grounds
        known = grounds.inventory.workload(victim.task)
        with told_as_lookup_errors():
            workload = None if known is None else grounds.api.get(WORKLOADS, name_of(known), grounds.namespace)
            if workload is None:
                return ""
            name, uid = name_of(workload), uid_of(workload)
            if is_deactivated_for_good(workload):
                return f"workload {name} ({uid}) was deleted" if grounds.api.delete(WORKLOADS, name, grounds.namespace, uid=uid) else ""
            return f"workload {name} was activated" if activate(grounds.api, grounds.namespace, name, is_active=True) else ""

    def activation_undo(self, victim: Processes) -> tuple[ClusterAction, ...]:
        """See ``QueueHost``."""
        return (Reactivate(namespace=self.grounds.namespace, name=name_of(self._workload(victim))),)

    def _queue(self) -> Object:
        """The ClusterQueue behind the queue of the run.

        Raises:
            LookupError: When there is none.
        """
        grounds = self.grounds
        local = grounds.api.get(LOCAL_QUEUES, grounds.launch.cluster.queue, grounds.namespace)
        if local is None:
            raise LookupError(f"namespace {grounds.namespace!r} has no queue {grounds.launch.cluster.queue!r}")
        name = str(local["spec"]["clusterQueue"])
        queue = grounds.api.get(CLUSTER_QUEUES, name)
        if queue is None:
            raise LookupError(f"there is no ClusterQueue {name!r}")
        return queue

    def _workload(self, victim: Processes) -> Object:
        found = self.grounds.inventory.workload(victim.task)
        if found is None:
            raise LookupError(f"task {victim.task} has no workload")
        return found

    def _occupant(self, name: str, flavor: str, chips: int, *, is_preempting: bool = False) -> Occupant:
        grounds = self.grounds
        return Occupant(
            namespace=grounds.namespace,
            name=occupant_name(name),
            queue=grounds.launch.cluster.queue,
            flavor=flavor,
            chips=chips,
            run_id=grounds.launch.run_id,
            is_preempting=is_preempting,
        )


class QueueHosting(QueueChanging, Hosting):
    """The part of the target ``kind`` that is a ``QueueHost``."""

    @property
    @abstractmethod
    def dws(self) -> DwsSimulator:
        """Who provisions capacity.

        Raises:
            LookupError: When no execution runs.
        """

    def revoke_capacity(self, victim: Processes) -> tuple[str, ...]:
        """See ``QueueHost``."""
        requests = [request for request in self.grounds.inventory.requests(victim.task) if _is_provisioned(request)]
        if not requests:
            raise LookupError(f"task {victim.task} has no ProvisioningRequest that is provisioned")
        with told_as_lookup_errors():
            nodes = self.dws.revoke(name_of(requests[-1]))
        pods = self.grounds.inventory.pods(victim.task)
        self.grounds.note_hurt(pod for pod in pods if (pod.get("spec") or {}).get("nodeName") in nodes)
        return nodes


def activate(api: Api, namespace: str, name: str, *, is_active: bool) -> bool:
    """Activate or deactivate a workload; false when it is not there.

    Raises:
        ApiError: When the API server does not do it.
    """
    try:
        api.patch(CHANGEABLE_WORKLOADS, name, {"spec": {"active": is_active}}, namespace)
    except ApiError as error:
        if error.status == NOT_FOUND:
            return False
        raise
    return True


def is_deactivated_for_good(workload: Object) -> bool:
    """Whether Kueue itself has deactivated a workload: it is never queued again, whatever ``spec.active`` says.

    Source: kueue v0.17.0, pkg/controller/core/workload_controller.go: a workload that is active again becomes ``Requeued`` only when the
    reason is ``Deactivated``; that of a rejected check is ``DeactivatedDueToAdmissionCheck``. Before the eviction it is the target.
    """
    held = [(condition["type"], condition["reason"]) for condition in conditions_of(workload) if condition["status"] == "True"]
    return any(kind == "DeactivationTarget" or (kind == "Evicted" and reason.startswith(DEACTIVATED_BY)) for kind, reason in held)


def _is_provisioned(request: Object) -> bool:
    held = {condition["type"] for condition in conditions_of(request) if condition["status"] == "True"}
    return "Provisioned" in held and not held & {"CapacityRevoked", "Failed"}
