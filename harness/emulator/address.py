"""Where the emulator listens, and how the clients of others are told."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass

from harness.errors import UsageError

EMULATOR_VARIABLE = "HARNESS_GCP_EMULATOR"
"""Read by the target ``gcp``: ``grpc=127.0.0.1:P,http=127.0.0.1:Q``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ports:
    """Which ports of loopback to listen on; 0 is any that is free."""

    grpc: int = 0
    http: int = 0

    def require_free(self) -> None:
        """Look whether they can be had: the server of gRPC says it in many lines of its own.

        Raises:
            UsageError: When one is taken, or not ours to take.
        """
        if self.grpc and self.grpc == self.http:
            raise UsageError(f"port {self.grpc} cannot serve both gRPC and REST; name another for one of them, or 0 for any")
        for port in filter(None, (self.grpc, self.http)):
            with socket.socket() as looking:
                looking.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    looking.bind(("127.0.0.1", port))
                except OSError as error:
                    raise UsageError(f"cannot listen on port {port} of loopback: {error.strerror}; name another, or 0 for any") from error


ANY_PORTS = Ports()


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoints:
    """Two addresses on loopback, ``127.0.0.1:PORT`` each, without a scheme: Google's services speak gRPC, REST, or both."""

    grpc: str
    http: str

    def environment(self) -> Mapping[str, str]:
        """Variables by which a process finds the emulator: Google's own where there is one, and ours.

        Source: https://docs.cloud.google.com/python/docs/reference/storage/latest (``STORAGE_EMULATOR_HOST``)
        """
        return {
            "STORAGE_EMULATOR_HOST": f"http://{self.http}",
            EMULATOR_VARIABLE: f"grpc={self.grpc},http={self.http}",
        }
