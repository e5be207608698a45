"""The end of a run on a project's cluster: its namespace goes with all that is in it, and with it the pods."""

from collections.abc import Iterator

from harness.clock import Clock
from harness.errors import BrokenHarnessError
from harness.kind import RUN_ID_LABEL
from harness.targets.gke.namespaces import namespace_of
from harness.targets.kubernetes.api import (
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    Api,
    ApiError,
    is_run_namespace,
    labels_of,
    name_of,
    uid_of,
)

GONE_S = 180.0
"""Pods on a node that is away keep their namespace until their node is deleted, which takes GKE a minute or two. Not measured."""

POLL_S = 1.0


def remove_namespace(api: Api, run_id: str, clock: Clock) -> list[str]:
    """Remove a run's namespace, and wait until it is gone; one line for each thing done. Harmless twice.

    Raises:
        BrokenHarnessError: When it does not say that it is the run's, or is not gone in time.
        ApiError: When the API server does not do it.
    """
    name = namespace_of(run_id)
    done = list(_remove_classes(api, run_id))
    found = api.get(NAMESPACES, name)
    if found is None:
        return done
    if not is_run_namespace(found, run_id):
        raise BrokenHarnessError(
            f"namespace {name} does not say {RUN_ID_LABEL}: {run_id}; it is left as it is: delete it yourself if it may go"
        )
    api.delete(NAMESPACES, name, uid=uid_of(found))
    for pod in api.list(PODS, name):
        api.delete(PODS, name_of(pod), name, grace_s=0)
    end_s = clock.monotonic_s() + GONE_S
    while _is_there(api, name, uid_of(found)):
        if clock.monotonic_s() >= end_s:
            raise BrokenHarnessError(f"namespace {name} is still terminating after {GONE_S:g} s; run `harness clean` later")
        clock.sleep(POLL_S)
    return [*done, f"removed namespace {name}"]


def _is_there(api: Api, name: str, uid: str) -> bool:
    """Whether it is not known to be gone."""
    try:
        found = api.get(NAMESPACES, name)
    except ApiError as error:
        if not error.is_passing:
            raise
        return True
    return found is not None and uid_of(found) == uid


def _remove_classes(api: Api, run_id: str) -> Iterator[str]:
    """Priority classes have no namespace: those that a fault made say whose they are."""
    for one in api.list(PRIORITY_CLASSES, selector=f"{RUN_ID_LABEL}={run_id}"):
        if labels_of(one).get(RUN_ID_LABEL) == run_id and api.delete(PRIORITY_CLASSES, name_of(one), uid=uid_of(one)):
            yield f"removed priority class {name_of(one)}"
