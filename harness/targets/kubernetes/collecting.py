"""What is kept of the cluster when a run did not end well: objects as they were, and what every pod has printed."""

import json
from contextlib import closing, suppress
from pathlib import Path

import urllib3

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
    name_of,
)

LOG_BYTES_MAX = 4 << 20
"""Of one container: the end of a traceback is in it, and ten pods do not fill a disk."""

KEPT = (PODS, NODES, JOBS, RAY_JOBS, RAY_CLUSTERS, WORKLOADS, PROVISIONING_REQUESTS, CLUSTER_QUEUES, EVENTS)


def collect(api: Api, namespace: str, directory: Path) -> None:
    """Keep it; what cannot be read is left out.

    Raises:
        OSError: When it cannot be written.
    """
    directory.mkdir(parents=True, exist_ok=True)
    for resource in KEPT:
        with suppress(ApiError):
            objects = api.list(resource, namespace if resource.is_namespaced else "")
            (directory / f"{resource.plural}.json").write_text(json.dumps(objects, indent=1), encoding="utf-8")
    with suppress(ApiError):
        for pod in api.list(PODS, namespace):
            for container in pod["spec"]["containers"]:
                _keep_log(api, name_of(pod), namespace, container["name"], directory)


def _keep_log(api: Api, pod: str, namespace: str, container: str, directory: Path) -> None:
    with suppress(ApiError, urllib3.exceptions.HTTPError), closing(api.log(pod, namespace, container, follows=False)) as log:
        _copy(log, directory / f"{pod}-{container}.log")


def _copy(log: urllib3.BaseHTTPResponse, path: Path) -> None:
    with path.open("wb") as file:
        while (data := log.read1(LINE_BYTES)) and file.tell() < LOG_BYTES_MAX:
            file.write(data)
