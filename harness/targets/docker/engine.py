"""The Docker engine as this target uses it: found by testcontainers, spoken to by the Docker client, with a deadline on every call.

Ryuk, the container that clears away after testcontainers, is not started: its image may not be to be had here, and it would end what a
killed harness leaves before ``harness clean`` has seen it. Our labels do its work.
"""

import contextlib
import os
import signal
import socket
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import docker.errors
import requests.exceptions
from docker.types import LogConfig, Mount
from testcontainers.core.config import testcontainers_config
from testcontainers.core.docker_client import DockerClient, get_docker_host

from harness.errors import BrokenHarnessError, TargetUnavailableError
from harness.kind.cluster import RUN_ID_LABEL
from harness.targets.docker.address import SOCKET

CALL_S_MAX = 30
"""For one answer of the engine: it starts a container within a second, ten times that on a busy machine."""

STATE_S_MAX = 1
"""For the state of a container, an answer of milliseconds: whoever waits longer for it may be waited for."""

ENGINE_ADVICE = "start Docker, or run `make docker-up`; `pip install 'chaos-harness[docker]'` brings the client"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """What a container is made of.

    Attributes:
        image: Its image.
        command: Program and arguments; the first takes the place of the image's entry point, as Cloud Run's ``command`` does.
        directory: Where it runs.
        environment: On top of the image's variables.
        mounts: Path on this machine, path in the container, whether it may be written.
        labels: On top of the run id.
        user: ``uid:gid``; empty: as the image says.
        memory_mib: Its limit, swap included; 0: none.
    """

    image: str
    command: Sequence[str]
    directory: str
    environment: Mapping[str, str]
    mounts: Sequence[tuple[Path, str, bool]]
    labels: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    memory_mib: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerState:
    """How a container stands, as the engine says.

    Attributes:
        pid: Of its first process on the engine's machine; 0 when it does not run.
        is_over: Whether it has ended and the engine knows.
        exit_code: Its exit code; 128 and the signal when one ended it.
        is_out_of_memory: Whether something in it was killed for want of memory.
        is_removed: Whether somebody has removed it, which is by SIGKILL where it ran.
    """

    pid: int
    is_over: bool
    exit_code: int
    is_out_of_memory: bool = False
    is_removed: bool = False


class NotStartableError(BrokenHarnessError):
    """The engine has refused what a container is made of, or to start its program; the reason is in its own words."""

    def __init__(self, *, attempted: str, reason: str) -> None:
        self.attempted, self.reason = attempted, reason
        super().__init__(f"the Docker engine refused to {attempted}: {reason}; see its log, and `docker ps --all`")


class Engine:
    """One connection to the engine.

    Attributes:
        host: Its address.

    Raises:
        TargetUnavailableError: When none answers.
    """

    def __init__(self) -> None:
        testcontainers_config.ryuk_disabled = True
        self.host = get_docker_host() or f"unix://{SOCKET}"
        try:
            _knock(self.host)
            self._client = DockerClient(timeout=CALL_S_MAX).client
            self._api = self._client.api
            self._client.ping()
        except (docker.errors.DockerException, requests.exceptions.RequestException, OSError) as error:
            raise TargetUnavailableError(target="docker", reason=f"no Docker engine answers: {error}", advice=ENGINE_ADVICE) from error

    def close(self) -> None:
        """Close the connection."""
        self._client.close()

    def has_image(self, image: str) -> bool:
        """Whether the engine has an image, under that very name."""
        with _explained("look for an image"):
            try:
                self._client.images.get(image)
            except docker.errors.ImageNotFound:
                return False
        return True

    def stop_signal(self, image: str) -> str:
        """The stop signal that an image asks for; empty: none."""
        with _explained("read an image"):
            return str(self._client.images.get(image).attrs["Config"].get("StopSignal") or "")

    def limits_memory(self) -> bool:
        """Whether the engine can limit the memory of a container."""
        with _explained("ask for the engine's abilities"):
            return bool(self._client.info().get("MemoryLimit"))

    def create(self, run_id: str, name: str, spec: ContainerSpec) -> str:
        """Make a container, not started yet; returns its id.

        Raises:
            NotStartableError: When the engine refuses what it is made of.
        """
        memory = f"{spec.memory_mib}m" if spec.memory_mib else None
        with _explained("make a container"):
            try:
                container = self._client.containers.create(
                    spec.image,
                    name=name,
                    entrypoint=[spec.command[0]],
                    command=list(spec.command[1:]),
                    working_dir=spec.directory,
                    environment=dict(spec.environment),
                    mounts=[Mount(at, str(path), type="bind", read_only=not may_write) for path, at, may_write in spec.mounts],
                    labels={**spec.labels, RUN_ID_LABEL: run_id},
                    user=spec.user or None,
                    mem_limit=memory,
                    memswap_limit=memory,
                    log_config=LogConfig(
                        type=LogConfig.types.NONE
                    ),  # we read its output ourselves, and a flood of it must not fill the disk
                )
            except docker.errors.APIError as error:
                if error.is_client_error():
                    raise NotStartableError(
                        attempted=f"make a container of {spec.image}", reason=error.explanation or str(error)
                    ) from error
                raise
        return str(container.id)

    def attach(self, container: str) -> int:
        """A descriptor of a container's stdout and stderr, each piece behind a header; to be asked for before it is started."""
        with _explained("read the output of a container"):
            stream = self._api.attach_socket(container, params={"stdout": 1, "stderr": 1, "stream": 1})
        descriptor = os.dup(stream.fileno())
        for part in (getattr(stream, "_response", None), getattr(stream, "_sock", None), stream):  # the client closes none of them itself
            if part is not None:
                part.close()
        return descriptor

    def start(self, container: str) -> None:
        """Start a container.

        Raises:
            NotStartableError: When its program cannot be started.
        """
        with _explained("start a container"):
            try:
                self._api.start(container)
            except docker.errors.APIError as error:
                if error.status_code in (400, 404):
                    raise NotStartableError(attempted="start a container", reason=error.explanation or str(error)) from error
                raise

    def state(self, container: str) -> ContainerState | None:
        """How a container stands; None when the engine does not answer at once.

        While a container ends the engine holds its answer back until its output has been read: so read, and ask again.
        """
        self._api.timeout = STATE_S_MAX
        try:
            with _explained("ask for the state of a container"):
                state = self._api.inspect_container(container)["State"]
        except BrokenHarnessError as error:
            if isinstance(error.__cause__, requests.exceptions.Timeout):
                return None
            if isinstance(error.__cause__, docker.errors.NotFound):
                return ContainerState(pid=0, is_over=True, exit_code=128 + signal.SIGKILL, is_removed=True)
            raise
        finally:
            self._api.timeout = CALL_S_MAX
        return ContainerState(
            pid=int(state["Pid"]),
            is_over=state["Status"] in ("exited", "dead"),
            exit_code=int(state["ExitCode"]),
            is_out_of_memory=bool(state["OOMKilled"]),
        )

    def remove(self, container: str) -> None:
        """Kill and remove a container, with its anonymous volumes; nothing happens when it is gone."""
        with _explained("remove a container"), contextlib.suppress(docker.errors.NotFound):
            self._api.remove_container(container, force=True, v=True)

    def containers_of(self, run_id: str) -> list[tuple[str, str]]:
        """Id and name of each container of a run, running or not."""
        with _explained("list containers"):
            found = self._api.containers(all=True, filters={"label": f"{RUN_ID_LABEL}={run_id}"})
        return sorted((str(row["Id"]), str(row["Names"][0]).lstrip("/")) for row in found)


def _knock(host: str) -> None:
    """See that somebody listens, where that is a socket of this machine: the client would leave its own one open when nobody does.

    Raises:
        OSError: When nobody listens.
    """
    if host.startswith("unix://"):
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            door.settimeout(CALL_S_MAX)
            door.connect(host.removeprefix("unix://"))


@contextlib.contextmanager
def _explained(attempted: str) -> Iterator[None]:
    """Errors of the engine in our words."""
    try:
        yield
    except (docker.errors.DockerException, requests.exceptions.RequestException) as error:
        raise BrokenHarnessError(f"the Docker engine did not {attempted}: {error}; see its log, and `docker ps --all`") from error
