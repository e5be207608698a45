"""A server that does not answer just now is borne for a while."""

from harness.clock import Clock
from harness.errors import BrokenHarnessError
from harness.targets.kubernetes.api import ApiError

PATIENCE_S = 120.0
"""An upgrade of a zonal control plane takes it away for minutes, a failover of a regional one for seconds. A choice of ours."""


class ServerPatience:
    """See ``Bearing``."""

    def __init__(self, clock: Clock, cluster: str) -> None:
        self._clock, self._cluster = clock, cluster
        self._until_s: float | None = None

    def bear(self, error: ApiError) -> None:
        """Take note that there was no answer.

        Raises:
            ApiError: When that does not pass.
            BrokenHarnessError: When there was none for too long.
        """
        if not error.is_passing:
            raise error
        now_s = self._clock.monotonic_s()
        self._until_s = now_s + PATIENCE_S if self._until_s is None else self._until_s
        if now_s >= self._until_s:
            raise BrokenHarnessError(
                f"cluster {self._cluster} has done nothing for {PATIENCE_S:g} s: {error}; see its operations"
            ) from error

    def renew(self) -> None:
        """Take note that there was an answer."""
        self._until_s = None
