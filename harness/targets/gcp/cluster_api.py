"""The Kubernetes API of a GKE cluster, as far as undos need it; Kubernetes Engine tells its address and certificate, the token is ours."""

import base64
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

import msgspec

from harness.targets.gcp.calling import Caller, Effect, Request
from harness.targets.gcp.connection import Clients

if TYPE_CHECKING:
    from google.cloud.container_v1 import Cluster

MERGE = "application/merge-patch+json"

DELETION: Mapping[str, str] = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Background"}
"""With all that it owns: who says nothing of it leaves the pods of a Job behind, and they hold what they have.

Source: kubernetes v1.34, pkg/registry/batch/job/strategy.go (DefaultGarbageCollectionPolicy: batch/v1 orphans, for compatibility).
"""


class Answer(NamedTuple):
    """What an API server said."""

    status: int
    body: bytes


Exchange = Callable[[str, str, Mapping[str, str], bytes, float], Answer]
"""Sends verb, path, headers and body, with the seconds that it may last."""


class ClusterApi:
    """Objects of one cluster.

    Args:
        name: Full name of the cluster.
        caller: For retries and errors.
        exchange: Sends once.
    """

    def __init__(self, name: str, caller: Caller, exchange: Exchange) -> None:
        self._name, self._caller, self._exchange = name, caller, exchange

    def get(self, path: str) -> dict[str, object]:
        """An object.

        Raises:
            ResourceMissingError: When it is not there.
        """
        return self._do("GET", path, b"", Effect.READ)

    def patch(self, path: str, change: Mapping[str, object]) -> dict[str, object]:
        """Merge a change into an object; with a resource version in it, only where nobody has changed it since.

        Raises:
            ResourceMissingError: When it is not there.
        """
        return self._do("PATCH", path, msgspec.json.encode(change), Effect.IDEMPOTENT)

    def delete(self, path: str) -> None:
        """Begin to delete an object with all that it owns.

        Raises:
            ResourceMissingError: When it is not there.
        """
        self._do("DELETE", path, msgspec.json.encode(DELETION), Effect.IDEMPOTENT)

    def _do(self, verb: str, path: str, body: bytes, effect: Effect) -> dict[str, object]:
        request = Request(service="kubernetes", method=verb, resource=f"{self._name}{path}", effect=effect)
        headers = {"Content-Type": MERGE if verb == "PATCH" else "application/json"} if body else {}

        def send(timeout_s: float) -> bytes:
            answer = self._exchange(verb, path, headers, body, timeout_s)
            if answer.status >= 400:
                from google.api_core.exceptions import from_http_status

                raise from_http_status(answer.status, _message(answer.body))  # type: ignore[no-untyped-call]
            return answer.body

        found = msgspec.json.decode(self._caller.call(request, send) or b"{}")
        return found if isinstance(found, dict) else {}


def api_of(clients: Clients, caller: Caller, cluster: "Cluster", name: str) -> ClusterApi:
    """The API of a cluster that Kubernetes Engine has told of."""
    import requests

    authority = base64.b64decode(cluster.master_auth.cluster_ca_certificate)
    address = f"https://{cluster.endpoint}"

    def exchange(verb: str, path: str, headers: Mapping[str, str], body: bytes, timeout_s: float) -> Answer:
        with tempfile.NamedTemporaryFile(suffix=".pem") as file:
            Path(file.name).write_bytes(authority)
            answer = requests.request(
                verb,
                f"{address}{path}",
                headers={**headers, **clients.authorization()},
                data=body or None,
                timeout=timeout_s,
                verify=file.name,
                allow_redirects=False,  # a token is for this server alone
            )
        return Answer(answer.status_code, answer.content)

    return ClusterApi(name, caller, exchange)


def path_of(api_version: str, resource: str, namespace: str, name: str) -> str:
    """Where an object is: ``/apis/kueue.x-k8s.io/v1beta1/clusterqueues/cluster-queue``."""
    root = "/api/" if "/" not in api_version else "/apis/"
    place = f"/namespaces/{quote(namespace, safe='')}" if namespace else ""
    return f"{root}{api_version}{place}/{resource}/{quote(name, safe='')}"


def _message(body: bytes) -> str:
    """What a Status object says."""
    try:
        found = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return "it gave no reason"
    return str(found.get("message", "it gave no reason")) if isinstance(found, dict) else "it gave no reason"
