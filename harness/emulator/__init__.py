"""Google Cloud's services on loopback, spoken with the unmodified clients; jobs really run, as processes of this machine."""

from typing import TYPE_CHECKING

from harness.emulator.address import Endpoints
from harness.emulator.failures import ApiError
from harness.emulator.injection import InjectedFault

if TYPE_CHECKING:
    from harness.emulator.emulator import Emulator

__all__ = ["ApiError", "Emulator", "Endpoints", "InjectedFault"]


def __getattr__(name: str) -> object:
    """The emulator itself needs Google's clients: they are imported when it is asked for."""
    if name == "Emulator":
        from harness.emulator.emulator import Emulator

        return Emulator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
