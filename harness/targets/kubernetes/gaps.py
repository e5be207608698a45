"""What a watch has lost when it lists again: nothing of an object that did not change, and most changes tell what was between."""

from harness.targets.kubernetes.api import EVENTS, NODES, RAY_JOBS, Object, Resource, conditions_of

ENDS = ("Finished", "Complete", "Failed")
"""Conditions after which nothing is to be seen of a workload or a Job."""


def is_lost(resource: Resource, before: Object, after: Object | None) -> bool:
    """Whether an object may have gone through something that its look after a break, None when it is gone, does not tell.

    A condition that has the status it had but another ``lastTransitionTime`` went there and back; one with another status is told, late. A
    RayJob has no conditions to compare: its status may have been anything meanwhile. Of an object that is gone its end was not seen.
    An Event that goes or repeats is no news, and of a node that is gone that is all there is to tell.
    """
    if resource == EVENTS or (after is None and resource == NODES):
        return False
    if after is None:
        return not _has_ended(before)
    if before["metadata"].get("resourceVersion") == after["metadata"].get("resourceVersion"):
        return False
    if resource == RAY_JOBS:
        return True
    known = {str(one["type"]): one for one in conditions_of(before)}
    return any(_went_there_and_back(known.get(str(one["type"])), one) for one in conditions_of(after))


def _went_there_and_back(before: Object | None, after: Object) -> bool:
    if before is None or before["status"] != after["status"]:
        return False
    return bool(before.get("lastTransitionTime") != after.get("lastTransitionTime"))


def _has_ended(thing: Object) -> bool:
    phase = (thing.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed") or any(one["type"] in ENDS and one["status"] == "True" for one in conditions_of(thing))
