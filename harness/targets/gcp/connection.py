"""Makes the clients of a place: real ones with Application Default Credentials, or ones that talk to an emulator on loopback.

The project is always the place's own. ``google.auth.default`` knows one as well (of the environment, of gcloud): it is not looked at.
"""

import contextlib
import ipaddress
import re
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from harness.errors import TargetUnavailableError, UsageError
from harness.targets.gcp.secrets import Secrets

if TYPE_CHECKING:
    from google.api_core.operations_v1 import OperationsClient
    from google.auth.credentials import Credentials
    from google.cloud.compute_v1 import InstancesClient, ZoneOperationsClient
    from google.cloud.container_v1 import ClusterManagerClient
    from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client
    from google.cloud.run_v2 import ExecutionsClient, JobsClient, TasksClient
    from google.cloud.storage import Client as StorageClient

EMULATOR_VARIABLE = "HARNESS_GCP_EMULATOR"

SCOPE = "https://www.googleapis.com/auth/cloud-platform"

STORAGE_ENDPOINT = "https://storage.googleapis.com"
"""Said to the client in so many words: ``STORAGE_EMULATOR_HOST`` and ``API_ENDPOINT_OVERRIDE`` would send one client of many elsewhere."""

EXTRA = "pip install 'chaos-harness[gcp]'"

ANSWER_S_MAX = 1.0
"""A port of this machine takes or refuses a connection within microseconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatorAddresses:
    """Where an emulator listens: ``127.0.0.1:PORT`` each."""

    grpc: str
    http: str

    def silent(self) -> list[str]:
        """Those of the two where nobody takes a connection: its process is gone, and with it what it held."""
        return [f"{name}={address}" for name, address in (("grpc", self.grpc), ("http", self.http)) if not _takes_connections(address)]

    def __str__(self) -> str:
        """As in ``HARNESS_GCP_EMULATOR``."""
        return f"grpc={self.grpc},http={self.http}"


class EmulatorGoneError(TargetUnavailableError):
    """The environment names an emulator, and none is there."""

    def __init__(self, addresses: EmulatorAddresses) -> None:
        super().__init__(
            target="gcp",
            reason=f"no emulator answers at {addresses}; is it still running? {EMULATOR_VARIABLE} names it",
            advice=f"start one with `harness emulate`, have one for the command alone with --emulator, or unset {EMULATOR_VARIABLE}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Clients:
    """Google's own clients, all of one project.

    Attributes:
        jobs: Cloud Run Admin API v2.
        executions: The same.
        tasks: The same.
        operations: Long operations of Cloud Run.
        logging: Cloud Logging API v2.
        storage: Cloud Storage JSON API.
        clusters: Kubernetes Engine API v1.
        instances: Compute Engine API v1.
        zone_operations: The same.
        is_emulator: Whether they talk to an emulator.
        problem: Why nothing is answered any more, however often it is asked: an emulator's process is gone; empty: there is nothing known.
        renew: Gets a new token; does nothing where there are none.
        authorization: Headers with a token that holds for a while; none where there are no credentials.
        close: Closes their connections.
    """

    jobs: "JobsClient"
    executions: "ExecutionsClient"
    tasks: "TasksClient"
    operations: "OperationsClient"
    logging: "LoggingServiceV2Client"
    storage: "StorageClient"
    clusters: "ClusterManagerClient"
    instances: "InstancesClient"
    zone_operations: "ZoneOperationsClient"
    is_emulator: bool
    problem: Callable[[], str]
    renew: Callable[[], None]
    authorization: Callable[[], Mapping[str, str]]
    close: Callable[[], None]


def emulator_addresses(environment: Mapping[str, str]) -> EmulatorAddresses | None:
    """Where the emulator is, when the environment names one: ``HARNESS_GCP_EMULATOR=grpc=127.0.0.1:4001,http=127.0.0.1:4002``.

    Raises:
        UsageError: When the variable cannot be read, or names an address that is not on this machine's loopback.
    """
    value = environment.get(EMULATOR_VARIABLE, "")
    if not value:
        return None
    parts = dict(part.strip().partition("=")[::2] for part in value.split(","))
    if set(parts) != {"grpc", "http"}:
        raise UsageError(f"{EMULATOR_VARIABLE} is {value!r}; write it as grpc=127.0.0.1:PORT,http=127.0.0.1:PORT")
    for address in parts.values():
        _require_loopback(address)
    return EmulatorAddresses(grpc=parts["grpc"], http=parts["http"])


def connect(project: str, environment: Mapping[str, str], secrets: Secrets) -> Clients:
    """The clients for a project. Nothing is asked of any service yet; whether an emulator is there is seen at its ports.

    Raises:
        UsageError: When the environment names an emulator that is not on loopback.
        EmulatorGoneError: When it names one that is not there.
        TargetUnavailableError: When the clients are not installed, or there are no credentials.
    """
    addresses = emulator_addresses(environment)
    if addresses is not None and addresses.silent():
        raise EmulatorGoneError(addresses)
    try:
        import google.cloud.compute_v1
        import google.cloud.container_v1
        import google.cloud.logging_v2
        import google.cloud.run_v2
        import google.cloud.storage  # noqa: F401  all of them, before anything is opened
    except ImportError as error:
        raise TargetUnavailableError(target="gcp", reason=f"{error.name} is not installed", advice=EXTRA) from error
    if addresses is not None:
        return _emulated(project, addresses)
    return _real(project, secrets)


def _require_loopback(address: str) -> None:
    host, _, port = address.rpartition(":")
    try:
        is_loopback = host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        is_loopback = False
    if not is_loopback or not re.fullmatch(r"\d{1,5}", port):
        raise UsageError(
            f"{EMULATOR_VARIABLE} names {address!r}, which is not a port on loopback; an emulator is called without encryption: "
            f"name one of this machine, or unset {EMULATOR_VARIABLE}"
        )


def _takes_connections(address: str) -> bool:
    """Whether somebody listens; one who is too busy to say so does."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=ANSWER_S_MAX).close()
    except (ConnectionRefusedError, OverflowError):  # the latter of a port that cannot be
        return False
    except OSError:
        return True
    return True


def _real(project: str, secrets: Secrets) -> Clients:
    from google.cloud.compute_v1 import InstancesClient, ZoneOperationsClient
    from google.cloud.container_v1 import ClusterManagerClient
    from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client
    from google.cloud.run_v2 import ExecutionsClient, JobsClient, TasksClient
    from google.cloud.storage import Client as StorageClient

    credentials = _credentials(secrets)
    jobs, logging = JobsClient(credentials=credentials), LoggingServiceV2Client(credentials=credentials)
    executions, tasks = ExecutionsClient(credentials=credentials), TasksClient(credentials=credentials)
    clusters = ClusterManagerClient(credentials=credentials)
    instances, zone_operations = InstancesClient(credentials=credentials), ZoneOperationsClient(credentials=credentials)
    storage = StorageClient(project=project, credentials=credentials, client_options={"api_endpoint": STORAGE_ENDPOINT})

    def renew() -> None:
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import Request

        with contextlib.suppress(GoogleAuthError):  # the call that is sent again says so
            credentials.refresh(Request())  # type: ignore[no-untyped-call]

    def authorization() -> Mapping[str, str]:
        if not credentials.valid:
            renew()
        return {"Authorization": f"Bearer {credentials.token}"}

    def close() -> None:
        for client in (jobs, executions, tasks, logging, clusters, instances, zone_operations):
            client.transport.close()  # type: ignore[no-untyped-call]
        storage.close()

    return Clients(
        jobs=jobs,
        executions=executions,
        tasks=tasks,
        operations=jobs.transport.operations_client,
        logging=logging,
        storage=storage,
        clusters=clusters,
        instances=instances,
        zone_operations=zone_operations,
        is_emulator=False,
        problem=str,
        renew=renew,
        authorization=authorization,
        close=close,
    )


def _credentials(secrets: Secrets) -> "Credentials":
    """Application Default Credentials; the project that comes with them is thrown away.

    Raises:
        TargetUnavailableError: When there are none.
    """
    import google.auth
    from google.auth.exceptions import GoogleAuthError

    try:
        credentials, _ = google.auth.default(scopes=[SCOPE])
    except GoogleAuthError as error:
        reason = secrets.redact(str(error)).rstrip(" .")
    else:
        for name in ("token", "refresh_token", "client_secret"):
            secrets.watch(partial(getattr, credentials, name, None))
        return credentials
    raise TargetUnavailableError(target="gcp", reason=reason, advice="run `gcloud auth application-default login`")


def _emulated(project: str, addresses: EmulatorAddresses) -> Clients:
    """Clients without credentials, over plain connections that never leave this machine."""
    import grpc
    from google.auth.credentials import AnonymousCredentials
    from google.cloud.compute_v1 import InstancesClient, ZoneOperationsClient
    from google.cloud.compute_v1.services.instances.transports import InstancesRestTransport
    from google.cloud.compute_v1.services.zone_operations.transports import ZoneOperationsRestTransport
    from google.cloud.container_v1 import ClusterManagerClient
    from google.cloud.container_v1.services.cluster_manager.transports import ClusterManagerGrpcTransport
    from google.cloud.logging_v2.services.logging_service_v2 import LoggingServiceV2Client
    from google.cloud.logging_v2.services.logging_service_v2.transports import LoggingServiceV2GrpcTransport
    from google.cloud.run_v2 import ExecutionsClient, JobsClient, TasksClient
    from google.cloud.run_v2.services.executions.transports import ExecutionsGrpcTransport
    from google.cloud.run_v2.services.jobs.transports import JobsGrpcTransport
    from google.cloud.run_v2.services.tasks.transports import TasksGrpcTransport
    from google.cloud.storage import Client as StorageClient

    channel = grpc.insecure_channel(addresses.grpc)
    nobody = AnonymousCredentials()  # type: ignore[no-untyped-call]
    jobs = JobsClient(transport=JobsGrpcTransport(channel=channel))
    instances = InstancesClient(
        transport=InstancesRestTransport(host=addresses.http, credentials=nobody, url_scheme="http"),
    )
    zone_operations = ZoneOperationsClient(
        transport=ZoneOperationsRestTransport(host=addresses.http, credentials=nobody, url_scheme="http"),
    )
    storage = StorageClient(project=project, credentials=nobody, client_options={"api_endpoint": f"http://{addresses.http}"})

    def problem() -> str:
        return f"the emulator at {addresses} is gone" if addresses.silent() else ""

    def close() -> None:
        channel.close()
        instances.transport.close()  # type: ignore[no-untyped-call]
        zone_operations.transport.close()  # type: ignore[no-untyped-call]
        storage.close()

    return Clients(
        jobs=jobs,
        executions=ExecutionsClient(transport=ExecutionsGrpcTransport(channel=channel)),
        tasks=TasksClient(transport=TasksGrpcTransport(channel=channel)),
        operations=jobs.transport.operations_client,
        logging=LoggingServiceV2Client(transport=LoggingServiceV2GrpcTransport(channel=channel)),
        storage=storage,
        clusters=ClusterManagerClient(transport=ClusterManagerGrpcTransport(channel=channel)),
        instances=instances,
        zone_operations=zone_operations,
        is_emulator=True,
        problem=problem,
        renew=lambda: None,
        authorization=dict,
        close=close,
    )
