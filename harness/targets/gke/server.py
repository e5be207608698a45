"""The API server of a cluster on a project: its address and authority as Kubernetes Engine tells them, its caller by a token."""

from collections.abc import Mapping

import urllib3

from harness.targets.gcp.adopting import AdoptedCluster
from harness.targets.gcp.calling import Caller
from harness.targets.gcp.connection import Clients
from harness.targets.kubernetes.api import TOO_MANY_REQUESTS, UNAUTHORIZED, Api, ApiError

ATTEMPTS_MAX = 5
"""A server that refuses as often as this is not asked again by the same call."""

CONNECTIONS = 16
"""Eight watches, logs of the pods of a slice, and calls beside them."""

BUSY = frozenset({502, 503, 504})
"""The server, or what is before it, cannot do its work now; the request may have been done all the same."""

STREAMS = frozenset({"watch", "follow the log of"})
"""Who reads them opens them again."""

FORBIDS = "evict"
"""Here 429 says that a disruption budget forbids it, and no rate.

Source: https://kubernetes.io/docs/concepts/scheduling-eviction/api-eviction/
"""


class ServerApi(Api):
    """One cluster. A token that has expired is renewed; what may be asked twice is, while the server is busy.

    Args:
        cluster: As Kubernetes Engine tells of it.
        clients: Have the token.
        caller: Tells how long to wait.
    """

    def __init__(self, cluster: AdoptedCluster, clients: Clients, caller: Caller) -> None:
        self._pool = urllib3.PoolManager(maxsize=CONNECTIONS, cert_reqs="CERT_REQUIRED", ca_cert_data=cluster.authority)
        self._address = cluster.address
        self._clients, self._caller = clients, caller

    def _authorization(self) -> Mapping[str, str]:
        """A token that holds for a while; it is for this server alone, which is why no redirect is followed."""
        return self._clients.authorization()

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
        has_renewed = False
        attempt = 1
        while True:
            try:
                return super()._open(method, attempted, path, query, timeout=timeout, body=body, content=content, what=what)
            except ApiError as error:
                if error.status == UNAUTHORIZED and not has_renewed:
                    self._clients.renew()
                    has_renewed = True
                    continue
                if attempt >= ATTEMPTS_MAX or not _may_be_repeated(method, error):
                    raise self._redacted(error) from None  # what it says may quote what we sent
            self._caller.clock.sleep(self._caller.pause_s(attempt))
            attempt += 1

    def _redacted(self, error: ApiError) -> ApiError:
        """The same without anything secret."""
        redact = self._caller.secrets.redact
        return ApiError(
            attempted=error.attempted, what=error.what, status=error.status, reason=redact(error.reason), message=redact(error.message)
        )


def _may_be_repeated(method: str, error: ApiError) -> bool:
    """Whether a second request is no second deed, and may be answered otherwise."""
    if error.attempted in STREAMS or error.is_of_another:
        return False
    if error.status == TOO_MANY_REQUESTS:
        return error.attempted != FORBIDS
    return method != "POST" and (error.status in BUSY or not error.status)
