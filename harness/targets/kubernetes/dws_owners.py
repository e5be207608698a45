"""For whom a ProvisioningRequest is, asked of the API server where the watches have not told yet."""

from collections.abc import Callable
from typing import Literal

from harness.targets.kubernetes.api import JOBS, RAY_CLUSTERS, RAY_JOBS, WORKLOADS, Api, ApiError, Object

Owner = int | Literal["stranger", "unknown"]
"""A task; nobody of ours, which is certain; or not known yet."""

_OWNERS = {"Workload": WORKLOADS, "Job": JOBS, "RayJob": RAY_JOBS, "RayCluster": RAY_CLUSTERS}
"""What Kueue makes a request for, link by link. Source: kueue v0.17.0, pkg/controller/{admissionchecks/provisioning,jobs}."""


class Owners:
    """Follows an object's owners up to the job that was submitted.

    Args:
        api: The cluster.
        task_of: The task of an object, by itself and what was seen before; None when that does not tell.
    """

    def __init__(self, api: Api, task_of: Callable[[Object], int | None]) -> None:
        self._api, self._task_of = api, task_of

    def known(self, thing: Object) -> int | None:
        """The task, when it is known without a question."""
        return self._task_of(thing)

    def ask(self, thing: Object) -> Owner:
        """Ask for the owners, one after the other; unknown while one cannot be read, or is not the one that is named.

        Raises:
            ApiError: When the API server refuses the question.
        """
        task = self._task_of(thing)
        if task is not None:
            return task
        controllers = [one for one in thing["metadata"].get("ownerReferences") or [] if one.get("kind") in _OWNERS]
        if not controllers:
            return "stranger"
        owner = controllers[0]
        try:
            found = self._api.get(_OWNERS[owner["kind"]], owner["name"], thing["metadata"].get("namespace", ""))
        except ApiError as error:
            if error.is_passing:
                return "unknown"
            raise
        if found is None or found["metadata"].get("uid") != owner["uid"]:
            return "unknown"  # it is going, and what it owns goes with it
        return self.ask(found)
