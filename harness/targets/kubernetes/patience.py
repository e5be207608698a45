"""At the beginning of a run the API server and Kueue's webhooks are waited for, for a while: what has just restarted answers soon."""

from collections.abc import Callable
from typing import TypeVar

from harness.clock import Clock
from harness.errors import BrokenHarnessError
from harness.kind import KindCluster, problem_with_operators
from harness.targets.kubernetes.api import ApiError

Answer = TypeVar("Answer")

PATIENCE_S = 90.0
"""Kueue's pod is Ready some seconds before its webhooks can be reached; on a machine of two cores that does other things it took 30 s."""

AGAIN_S = 1.0


class Patience:
    """Bears what a cluster does not do just now, for ``PATIENCE_S`` on end."""

    def __init__(self, clock: Clock, cluster: KindCluster) -> None:
        self._clock, self._cluster = clock, cluster
        self._until_s: float | None = None

    def until_answered(self, step: Callable[[], Answer]) -> Answer:
        """Do a step that may be done twice, until it is answered.

        Raises:
            BrokenHarnessError: As ``bear``.
            ApiError: At once, when it was refused for good.
        """
        while True:
            try:
                answer = step()
            except ApiError as error:
                self.bear(error)
                self._clock.sleep(AGAIN_S)
            else:
                self.renew()
                return answer

    def bear(self, error: ApiError) -> None:
        """Take note that there was no answer.

        Raises:
            BrokenHarnessError: When there was none for too long, with what is missing and what to do.
            ApiError: The same, when that does not pass.
        """
        if not error.is_passing:
            raise error
        now_s = self._clock.monotonic_s()
        self._until_s = now_s + PATIENCE_S if self._until_s is None else self._until_s
        if now_s >= self._until_s:
            raise BrokenHarnessError(self._told(error)) from error

    def renew(self) -> None:
        """Take note that there was an answer."""
        self._until_s = None

    def _told(self, error: ApiError) -> str:
        busy = "on a machine that is busy with other things run it again, else run `harness down kind`, then `harness up kind`"
        return f"nothing could be begun within {PATIENCE_S:g} s: {error}; {problem_with_operators(self._cluster) or busy}"
