"""What is kept of the cluster when a run did not end well: objects as they were, and what every pod has printed."""

import json
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import urllib3

from harness.clock import Clock
from harness.targets.kubernetes.api import (
    CLUSTER_QUEUES,
    EVENTS,
    JOBS,
    LINE_BYTES,
    NODES,
    PODS,
    PROVISIONING_REQUESTS,
    RAY_CLUSTERS,
    RAY_JOBS,
    WORKLOADS,
    Api,
    ApiError,
    Resource,
    name_of,
)

LOG_BYTES_MAX = 4 << 20
"""Of one container: the end of a traceback is in it, and ten pods do not fill a disk."""

KEPT = (PODS, NODES, JOBS, RAY_JOBS, RAY_CLUSTERS, WORKLOADS, PROVISIONING_REQUESTS, CLUSTER_QUEUES, EVENTS)


COLLECTED_S = 30.0
"""For all of it, while the job's processes still run: objects take a second, and a log from a node that is cut off 5."""


def collect(api: Api, namespace: str, directory: Path, clock: Clock) -> None:
    """Keep it; what cannot be read, or not in time, is left out.

    Raises:
        OSError: When it cannot be written.
    """
    end_s = clock.monotonic_s() + COLLECTED_S
    directory.mkdir(parents=True, exist_ok=True)
    for resource in KEPT:
        if clock.monotonic_s() < end_s:
            _keep_objects(api, resource, namespace if resource.is_namespaced else "", directory)
    for name, container in _containers(api, namespace) if clock.monotonic_s() < end_s else ():
        if clock.monotonic_s() < end_s:
            with suppress(ApiError, urllib3.exceptions.HTTPError), closing(api.log(name, namespace, container, follows=False)) as log:
                _copy(log, directory / f"{name}-{container}.log", lambda: clock.monotonic_s() < end_s)


def _keep_objects(api: Api, resource: Resource, namespace: str, directory: Path) -> None:
    with suppress(ApiError):
        objects = api.list(resource, namespace)
        (directory / f"{resource.plural}.json").write_text(json.dumps(objects, indent=1), encoding="utf-8")


def _containers(api: Api, namespace: str) -> list[tuple[str, str]]:
    """Pods and containers."""
    try:
        return [(name_of(pod), container["name"]) for pod in api.list(PODS, namespace) for container in pod["spec"]["containers"]]
    except ApiError:
        return []


def _copy(log: urllib3.BaseHTTPResponse, path: Path, is_in_time: Callable[[], bool]) -> None:
    with path.open("wb") as file:
        while is_in_time() and (data := log.read1(LINE_BYTES)) and file.tell() < LOG_BYTES_MAX:
            file.write(data)
