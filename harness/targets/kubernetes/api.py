"""The API server as this target uses it: raw JSON objects, one error, and a deadline on every call.

Inside this room objects stay as the server has them: most are of custom resources, for which no client has types. Small typed functions
read them, and what leaves the room are events.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import urllib3
from kubernetes import client, config

from harness.errors import BrokenHarnessError
from harness.kind.cluster import ALLOW_LABEL, RUN_ID_LABEL

Object = dict[str, Any]
"""An object of the cluster, as JSON."""

CALL_S = 15.0
"""A healthy API server answers in milliseconds, one on a busy machine of two cores in a few seconds."""

CONNECT_S = 5.0
LOG_S = 5.0
"""For what a container has printed so far. The kubelet answers in milliseconds; where a node is cut off nobody does."""

WATCH_S = 240
"""The server ends a watch after so long; without this it picks 5 to 10 minutes."""

WATCH_SILENCE_S = 90.0
"""Bookmarks come about every minute: a watch that says nothing for longer is dead."""

FIELD_MANAGER = "chaos-harness"
BAD_REQUEST, UNAUTHORIZED, FORBIDDEN, NOT_FOUND, CONFLICT, GONE, INVALID, TOO_MANY_REQUESTS, SERVER_ERROR = (
    400,
    401,
    403,
    404,
    409,
    410,
    422,
    429,
    500,
)
LINE_BYTES = 64 << 10


@dataclass(frozen=True, slots=True)
class Resource:
    """A kind of object by its place in the API; ``api_version`` as in manifests, ``plural`` as in paths."""

    api_version: str
    plural: str
    is_namespaced: bool = True

    def path(self, *, namespace: str = "", name: str = "", subresource: str = "") -> str:
        """Where the objects are, or one of them; no namespace of a namespaced kind: those of all namespaces."""
        parts = ["api" if "/" not in self.api_version else "apis", self.api_version]
        parts += ["namespaces", namespace] if self.is_namespaced and namespace else []
        parts += [part for part in (self.plural, name, subresource) if part]
        return "/" + "/".join(quote(part, safe="/") for part in parts)


PODS = Resource("v1", "pods")
NODES = Resource("v1", "nodes", is_namespaced=False)
EVENTS = Resource("v1", "events")
NAMESPACES = Resource("v1", "namespaces", is_namespaced=False)
SERVICES = Resource("v1", "services")
CONFIG_MAPS = Resource("v1", "configmaps")
POD_TEMPLATES = Resource("v1", "podtemplates")
RESOURCE_QUOTAS = Resource("v1", "resourcequotas")
JOBS = Resource("batch/v1", "jobs")
PRIORITY_CLASSES = Resource("kueue.x-k8s.io/v1beta1", "workloadpriorityclasses", is_namespaced=False)
RAY_JOBS = Resource("ray.io/v1", "rayjobs")
RAY_CLUSTERS = Resource("ray.io/v1", "rayclusters")
WORKLOADS = Resource("kueue.x-k8s.io/v1beta1", "workloads")
LOCAL_QUEUES = Resource("kueue.x-k8s.io/v1beta1", "localqueues")
CLUSTER_QUEUES = Resource("kueue.x-k8s.io/v1beta1", "clusterqueues", is_namespaced=False)
TOPOLOGIES = Resource("kueue.x-k8s.io/v1beta1", "topologies", is_namespaced=False)
RESOURCE_FLAVORS = Resource("kueue.x-k8s.io/v1beta1", "resourceflavors", is_namespaced=False)
ADMISSION_CHECKS = Resource("kueue.x-k8s.io/v1beta1", "admissionchecks", is_namespaced=False)
PROVISIONING_CONFIGS = Resource("kueue.x-k8s.io/v1beta1", "provisioningrequestconfigs", is_namespaced=False)
PROVISIONING_REQUESTS = Resource("autoscaling.x-k8s.io/v1", "provisioningrequests")

_BY_KIND: Mapping[str, Resource] = {
    "Service": SERVICES,
    "ConfigMap": CONFIG_MAPS,
    "ResourceQuota": RESOURCE_QUOTAS,
    "Job": JOBS,
    "RayJob": RAY_JOBS,
    "LocalQueue": LOCAL_QUEUES,
    "ClusterQueue": CLUSTER_QUEUES,
    "Topology": TOPOLOGIES,
    "ResourceFlavor": RESOURCE_FLAVORS,
    "AdmissionCheck": ADMISSION_CHECKS,
    "ProvisioningRequestConfig": PROVISIONING_CONFIGS,
    "WorkloadPriorityClass": PRIORITY_CLASSES,
}


_MISTYPED = re.compile(r"expected (list|map|string|numeric|boolean)|failed to create typed patch")
"""Source: sigs.k8s.io/structured-merge-diff v6, typed/helpers.go."""


class ApiError(BrokenHarnessError):
    """A call that the API server refused or did not answer.

    Attributes:
        attempted: The verb, like ``patch``.
        what: The object, as ``plural/name`` or ``plural/namespace/name``.
        status: The HTTP status; 0 when no answer came.
        reason: The server's reason, like ``Conflict``, or why no answer came.
        message: Its message.
    """

    def __init__(self, *, attempted: str, what: str, status: int, reason: str, message: str = "") -> None:
        self.attempted, self.what, self.status, self.reason, self.message = attempted, what, status, reason, message
        answer = f"the API server said {status} {reason}" if status else f"no answer: {reason}"
        super().__init__(f"cannot {attempted} {what}: {answer}" + (f": {message}" if message else ""))

    @property
    def is_of_another(self) -> bool:
        """Whether who answered is not the cluster of our kubeconfig: it does not know us, or shows a certificate that we do not."""
        return self.status == UNAUTHORIZED or "CERTIFICATE_VERIFY_FAILED" in self.reason

    @property
    def is_passing(self) -> bool:
        """Whether it may be answered otherwise later: no answer came, or the server could not do its work."""
        return not self.is_of_writing and (self.status in (0, TOO_MANY_REQUESTS) or self.status >= 500)

    @property
    def is_of_writing(self) -> bool:
        """Whether an object was refused for how it is written: by its schema, by the server's own rules, or by a webhook's.

        Source: kubernetes v1.34: 400, 422; a webhook that denies says 403; to apply a list where a mapping is to be, or such, is 500; an
        object of a version that is not served has no place, which is 404, as one in a namespace that is gone has none.
        """
        is_denied = self.status == FORBIDDEN and "denied the request" in self.message
        is_mistyped = self.status == SERVER_ERROR and _MISTYPED.search(self.message) is not None
        is_unserved = self.status == NOT_FOUND and self.attempted in ("apply", "create") and "namespaces" not in self.message
        return self.status in (BAD_REQUEST, INVALID) or is_denied or is_mistyped or is_unserved


@dataclass(frozen=True, slots=True)
class Listing:
    """Objects at one moment, and the version from which a watch goes on."""

    items: list[Object]
    version: str


def resource_of(manifest: Object) -> Resource | None:
    """The resource that a manifest is of, in the version that it names; None for kinds that no manifest may bring."""
    known = _BY_KIND.get(str(manifest.get("kind", "")))
    version = str(manifest.get("apiVersion", ""))
    if known is None or version.partition("/")[0] != known.api_version.partition("/")[0]:
        return None
    return Resource(version, known.plural, known.is_namespaced)


class Api:
    """One cluster, by its kubeconfig and context alone. Any thread may call."""

    def __init__(self, kubeconfig: Path, context: str) -> None:
        self._client: client.ApiClient = config.new_client_from_config(config_file=str(kubeconfig), context=context)  # type: ignore[no-untyped-call]
        self._pool: urllib3.PoolManager = self._client.rest_client.pool_manager
        self._address = str(self._client.configuration.host).rstrip("/")

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        """An object; None when there is none.

        Raises:
            ApiError: When the server refuses or does not answer.
        """
        try:
            return self._call("GET", "get", resource, namespace, name)
        except ApiError as error:
            if error.status == NOT_FOUND:
                return None
            raise

    def list(self, resource: Resource, namespace: str = "", selector: str = "") -> list[Object]:
        """All objects, of one namespace or of all, with the labels that ``selector`` asks for.

        Raises:
            ApiError: As ``get``.
        """
        return self.listing(resource, namespace, selector).items

    def listing(self, resource: Resource, namespace: str = "", selector: str = "") -> Listing:
        """As ``list``, with the version.

        Raises:
            ApiError: As ``get``.
        """
        found = self._call("GET", "list", resource, namespace, query={"labelSelector": selector})
        return Listing(items=list(found.get("items") or []), version=str(found.get("metadata", {}).get("resourceVersion", "")))

    def create(self, resource: Resource, body: Object, namespace: str = "") -> Object:
        """Make an object.

        Raises:
            ApiError: As ``get``; with status 409 when it is there already.
        """
        return self._call("POST", "create", resource, namespace, body=body, what=str(body["metadata"].get("name", "")))

    def apply(self, resource: Resource, body: Object, namespace: str = "") -> Object:
        """Make an object or let it be as the body says: what the body does not name stays.

        Raises:
            ApiError: As ``get``.
        """
        query = {"fieldManager": FIELD_MANAGER, "force": "true"}
        name = str(body["metadata"]["name"])
        return self._call("PATCH", "apply", resource, namespace, name, body=body, query=query, content="application/apply-patch+yaml")

    def patch(self, resource: Resource, name: str, body: Object, namespace: str = "", subresource: str = "") -> Object:
        """Change fields of an object by a merge patch: lists are replaced, null removes.

        Raises:
            ApiError: As ``get``; with status 404 when it is not there.
        """
        content = "application/merge-patch+json"
        return self._call("PATCH", "patch", resource, namespace, name, body=body, subresource=subresource, content=content)

    def delete(self, resource: Resource, name: str, namespace: str = "", grace_s: int | None = None, uid: str = "") -> bool:
        """Begin to delete an object with all that it owns; false when it, or the very one with ``uid``, is not there.

        Raises:
            ApiError: As ``get``.
        """
        body: Object = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
        body |= {} if grace_s is None else {"gracePeriodSeconds": grace_s}
        body |= {"preconditions": {"uid": uid}} if uid else {}
        try:
            self._call("DELETE", "delete", resource, namespace, name, body=body)
        except ApiError as error:
            if error.status == NOT_FOUND or (uid and error.status == CONFLICT):
                return False
            raise
        return True

    def evict(self, name: str, namespace: str, uid: str = "") -> None:
        """Evict a pod.

        Raises:
            ApiError: With status 404 when it is gone, 409 when it is another one, 429 when a disruption budget forbids it.
        """
        options: Object = {"preconditions": {"uid": uid}} if uid else {}
        body: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": namespace}}
        self._call("POST", "evict", PODS, namespace, name, subresource="eviction", body=body | {"deleteOptions": options})

    def watch(self, resource: Resource, namespace: str, selector: str, version: str) -> urllib3.BaseHTTPResponse:
        """Open a watch: lines of JSON, each ``{"type", "object"}``, until the server ends it. The caller closes it.

        Raises:
            ApiError: As ``get``; with status 410 when the version is too old.
        """
        query = {"watch": "1", "allowWatchBookmarks": "true", "timeoutSeconds": str(WATCH_S), "resourceVersion": version}
        timeout = urllib3.Timeout(connect=CONNECT_S, read=WATCH_SILENCE_S)
        return self._open("GET", "watch", resource.path(namespace=namespace), query | {"labelSelector": selector}, timeout=timeout)

    def log(self, pod: str, namespace: str, container: str, *, follows: bool = True) -> urllib3.BaseHTTPResponse:
        """What a container prints, from its first line to its last, or to now. The caller closes it.

        Raises:
            ApiError: As ``get``; with status 400 while the container has not started.
        """
        query = {"follow": "true" if follows else "", "container": container}
        timeout = urllib3.Timeout(connect=CONNECT_S, read=None if follows else LOG_S)  # a job may be silent for long
        return self._open("GET", "follow the log of", PODS.path(namespace=namespace, name=pod, subresource="log"), query, timeout=timeout)

    def close(self) -> None:
        """Let the connections go."""
        self._pool.clear()

    def _authorization(self) -> Mapping[str, str]:
        """Headers that say who calls, where no certificate does."""
        return {}

    def _call(  # noqa: PLR0913  one place that knows how a call is made
        self,
        method: str,
        attempted: str,
        resource: Resource,
        namespace: str = "",
        name: str = "",
        *,
        subresource: str = "",
        body: Object | None = None,
        query: Mapping[str, str] | None = None,
        content: str = "application/json",
        what: str = "",
    ) -> Object:
        path = resource.path(namespace=namespace, name=name, subresource=subresource)
        data = None if body is None else json.dumps(body).encode()
        timeout = urllib3.Timeout(connect=CONNECT_S, read=CALL_S)
        response = self._open(method, attempted, path, query or {}, timeout=timeout, body=data, content=content, what=what)
        with closing(response):
            try:
                answer: Object = json.loads(response.read(decode_content=True))
            except (urllib3.exceptions.HTTPError, OSError, ValueError) as error:
                raise ApiError(attempted=attempted, what=path, status=0, reason=str(error)) from error
        return answer

    def _open(
        self,
        method: str,
        attempted: str,
        path: str,
        query: Mapping[str, str],
        *,
        timeout: urllib3.Timeout,
        body: bytes | None = None,
        content: str = "application/json",
        what: str = "",
    ) -> urllib3.BaseHTTPResponse:
        url = f"{self._address}{path}?{urlencode({name: value for name, value in query.items() if value})}"
        headers = {"Accept": "application/json", "Content-Type": content, **self._authorization()}
        shown = path.rpartition("/v")[2].partition("/")[2] + (f"/{what}" if what else "")
        try:
            response = self._pool.request(
                method, url, body=body, headers=headers, timeout=timeout, preload_content=False, retries=False, redirect=False
            )
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise ApiError(attempted=attempted, what=shown, status=0, reason=str(error)) from error
        if response.status >= 300:
            with closing(response):
                raise _refusal(attempted, shown, response)
        return response


def _refusal(attempted: str, what: str, response: urllib3.BaseHTTPResponse) -> ApiError:
    """The error that the server's Status object tells, whatever its body is."""
    try:
        status = json.loads(response.read(decode_content=True))
        reason, message = str(status.get("reason", "")), str(status.get("message", ""))
    except (urllib3.exceptions.HTTPError, OSError, ValueError, AttributeError):
        reason, message = response.reason or "", ""
    return ApiError(attempted=attempted, what=what, status=response.status, reason=reason or str(response.reason), message=message)


def lines_of(response: urllib3.BaseHTTPResponse) -> Iterator[bytes]:
    """The lines of a stream as they come; a last one that no newline ended is not given.

    Raises:
        urllib3.exceptions.HTTPError: When the stream breaks.
    """
    rest = b""
    while data := response.read1(LINE_BYTES):
        *lines, rest = (rest + data).split(b"\n")
        yield from lines


def labels_of(thing: Object) -> Mapping[str, str]:
    """Its labels."""
    return thing["metadata"].get("labels") or {}


def is_run_namespace(namespace: Object, run_id: str) -> bool:
    """Whether a namespace says that we may act in it, and that it is of a run: only then it is deleted with all that it holds."""
    labels = labels_of(namespace)
    return (labels.get(ALLOW_LABEL), labels.get(RUN_ID_LABEL)) == ("true", run_id)


def annotations_of(thing: Object) -> Mapping[str, str]:
    """Its annotations."""
    return thing["metadata"].get("annotations") or {}


def name_of(thing: Object) -> str:
    """Its name."""
    return str(thing["metadata"]["name"])


def uid_of(thing: Object) -> str:
    """Its uid."""
    return str(thing["metadata"].get("uid", ""))


def conditions_of(thing: Object) -> Sequence[Object]:
    """Its conditions."""
    return (thing.get("status") or {}).get("conditions") or []
