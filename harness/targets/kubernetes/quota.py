"""Quota of chips as the cluster keeps it: of a flavor in a queue of Kueue, of a namespace in a ResourceQuota."""

import copy

from harness.errors import UndoError
from harness.kind import RUN_ID_LABEL
from harness.kind.topology import TPU_RESOURCE
from harness.quantities import is_same_quantity, whole_number
from harness.targets.kubernetes.api import CLUSTER_QUEUES, CONFLICT, RESOURCE_QUOTAS, Api, ApiError, Object, conditions_of
from harness.undo import RestoreQuota

LIMIT_NAME = "chaos-harness-limit"
REQUESTED = f"requests.{TPU_RESOURCE}"
"""How a ResourceQuota names an extended resource. Source: https://kubernetes.io/docs/concepts/policy/resource-quotas/."""

TRIES_MAX = 5
"""Kueue writes to its queues while we do; each try reads anew, and nobody writes five times in the milliseconds between."""


def nominal_quota(queue: Object, flavor: str, resource: str = TPU_RESOURCE) -> str | None:
    """The nominal quota as it is written; None when the queue has no such flavor."""
    found = _entry(queue, flavor, resource)
    return None if found is None else str(found["nominalQuota"])


def counted_quota(queue: Object, flavor: str) -> int | None:
    """The nominal quota that Kueue counts with; None while it has not taken in the newest change."""
    active: Object = next((condition for condition in conditions_of(queue) if condition["type"] == "Active"), {})
    quota = nominal_quota(queue, flavor)
    is_taken_in = active.get("observedGeneration") == queue["metadata"].get("generation")
    return whole_number(quota) if is_taken_in and quota is not None else None


def free_chips(queue: Object, flavor: str) -> int:
    """What of the nominal quota nobody has reserved."""
    return max(0, whole_number(nominal_quota(queue, flavor) or 0) - reserved_chips(queue).get(flavor, 0))


def reserved_chips(queue: Object) -> dict[str, int]:
    """By flavor, the chips that are reserved, as Kueue counts them."""
    return {
        reserved["name"]: whole_number(resource.get("total") or 0)
        for reserved in (queue.get("status") or {}).get("flavorsReservation") or []
        for resource in reserved.get("resources") or []
        if resource["name"] == TPU_RESOURCE
    }


def set_nominal_quota(api: Api, queue: str, flavor: str, quota: str, *, resource: str = TPU_RESOURCE) -> None:
    """Change a nominal quota, and read it back.

    Raises:
        LookupError: When there is no such queue, or it has no such flavor.
        ApiError: When the API server does not do it.
        UndoError: When it says otherwise after that.
    """
    for _ in range(TRIES_MAX):
        found = api.get(CLUSTER_QUEUES, queue)
        if found is None or nominal_quota(found, flavor, resource) is None:
            raise LookupError(f"there is no queue {queue!r} with flavor {flavor!r} of {resource}")
        groups = copy.deepcopy(found["spec"]["resourceGroups"])
        entry = _entry({"spec": {"resourceGroups": groups}}, flavor, resource)
        assert entry is not None
        entry["nominalQuota"] = quota
        version = {"resourceVersion": found["metadata"]["resourceVersion"]}
        try:
            written = api.patch(CLUSTER_QUEUES, queue, {"metadata": version, "spec": {"resourceGroups": groups}})
        except ApiError as error:
            if error.status != CONFLICT:
                raise
            continue
        if is_same_quantity(nominal_quota(written, flavor, resource) or "", quota):
            return
    raise UndoError(attempted=f"set the quota of flavor {flavor} in queue {queue} to {quota}", reason="somebody else keeps changing it")


def restore_nominal_quota(api: Api, action: RestoreQuota) -> str:
    """Give a nominal quota back, where it is what the fault has written; say what was done.

    Raises:
        ApiError: When the API server does not do it.
        UndoError: When it says otherwise after that.
    """
    found = api.get(CLUSTER_QUEUES, action.queue)
    stands = None if found is None else nominal_quota(found, action.flavor, action.resource)
    if stands is not None and (why := action.why_left(stands)):
        return why
    try:
        set_nominal_quota(api, action.queue, action.flavor, action.quota, resource=action.resource)
    except LookupError as error:
        return f"no quota to restore: {error}"
    return f"the quota of flavor {action.flavor} is {action.quota} again"


def limit(api: Api, namespace: str, chips: int, run_id: str) -> None:
    """Limit the chips of a namespace.

    Raises:
        ApiError: When the API server does not do it.
    """
    body: Object = {
        "apiVersion": RESOURCE_QUOTAS.api_version,
        "kind": "ResourceQuota",
        "metadata": {"name": LIMIT_NAME, "namespace": namespace, "labels": {RUN_ID_LABEL: run_id}},
        "spec": {"hard": {REQUESTED: str(chips)}},
    }
    api.apply(RESOURCE_QUOTAS, body, namespace)


def limited_to(api: Api, namespace: str) -> int | None:
    """The chips to which the quota controller limits a namespace; None while it does not.

    Raises:
        ApiError: When the API server does not answer.
    """
    found = api.get(RESOURCE_QUOTAS, LIMIT_NAME, namespace)
    hard = ((found or {}).get("status") or {}).get("hard") or {}
    return whole_number(hard[REQUESTED]) if REQUESTED in hard else None


def _entry(queue: Object, flavor: str, resource: str) -> Object | None:
    """Where the quota stands in the specification of a queue."""
    return next(
        (
            entry
            for group in queue["spec"].get("resourceGroups") or []
            for known in group["flavors"]
            if known["name"] == flavor
            for entry in known["resources"]
            if entry["name"] == resource
        ),
        None,
    )
