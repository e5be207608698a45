"""What is said to the emulator itself, and what it says, beyond Google's APIs."""

from typing import Literal

import msgspec

from harness.emulator.failures import ApiError
from harness.emulator.injection import InjectedFault


class Maintenance(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The platform takes the instance of a task: its execution by its whole name, or by the last segment of it."""

    execution: str
    task: int = 0


class ErrorDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An ``ApiError`` as data."""

    code: str
    message: str = "injected by the emulator's user"
    reason: str = ""
    domain: str = "googleapis.com"
    metadata: dict[str, str] = {}
    retry_after_s: float = 0
    http_status: int = 0

    def error(self) -> ApiError:
        """The error.

        Raises:
            ValueError: When there is no such code.
        """
        return ApiError(
            self.code,
            self.message,
            reason=self.reason,
            domain=self.domain,
            metadata=self.metadata,
            retry_after_s=self.retry_after_s,
            http_status=self.http_status,
        )


class FaultDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """An ``InjectedFault`` as data; ``matched`` is told, and not taken."""

    method: str
    nth: int | None = None
    times: int = 1
    error: ErrorDocument | None = None
    delay_s: float = 0.0
    drop: Literal["", "before", "after"] = ""
    is_partial: bool = False
    matched: int = 0

    def fault(self) -> InjectedFault:
        """The fault.

        Raises:
            ValueError: When it could do nothing, or its numbers are none.
        """
        return InjectedFault(
            method=self.method,
            nth=self.nth,
            times=self.times,
            error=None if self.error is None else self.error.error(),
            delay_s=self.delay_s,
            drop=self.drop,
            is_partial=self.is_partial,
        )

    @classmethod
    def of(cls, fault: InjectedFault, matched: int) -> "FaultDocument":
        """A fault in force, and how many calls it has matched."""
        error = (
            None if fault.error is None else ErrorDocument(code=fault.error.code, message=fault.error.message, reason=fault.error.reason)
        )
        return cls(
            method=fault.method,
            nth=fault.nth,
            times=fault.times,
            error=error,
            delay_s=fault.delay_s,
            drop=fault.drop,
            is_partial=fault.is_partial,
            matched=matched,
        )


class ProjectDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A project as it is to be: what is left out stays; ``granted`` null grants everything."""

    name: str
    granted: list[str] | msgspec.UnsetType | None = msgspec.UNSET
    quotas: dict[str, float] | msgspec.UnsetType = msgspec.UNSET


class TokenDocument(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """An access token that is good no more, or again; empty stands for callers without one."""

    token: str
    expired: bool = True
