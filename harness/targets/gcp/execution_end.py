"""How an execution is ended that goes on: it is cancelled, its jobs are killed, and it is seen to end.

In that order: what is killed before the cancel has arrived is tried again.
"""

import contextlib
from typing import Protocol

from harness.errors import HarnessError
from harness.history import Event
from harness.targets.gcp.agent_orders import AgentOrders
from harness.targets.gcp.attempts import Attempts
from harness.targets.gcp.failures import CallError, EmulatorLostError
from harness.targets.gcp.grounds import Grounds
from harness.targets.gcp.watching import ExecutionWatcher

CANCELLED_AGAIN_S = 20.0
"""A cancel that was answered, and after which the execution goes on for longer than the grace, has come to nothing."""


class Endable(Protocol):
    """What is ended; see ``harness.targets.gcp.execution.GcpExecution``."""

    grounds: Grounds
    attempts: Attempts
    orders: AgentOrders
    name: str

    @property
    def is_over(self) -> bool:
        """Whether all has ended and was told."""
        ...

    @property
    def is_over_there(self) -> bool:
        """Whether Cloud Run was seen to have ended it, told or not."""
        ...

    @property
    def is_settling(self) -> bool:
        """Whether it has ended, and the log of it is waited for."""
        ...

    def cancel(self) -> None:
        """Cancel it."""

    def wait(self, timeout_s: float) -> None:
        """Until there is something new, or the time is over."""

    def poll(self) -> list[Event]:
        """What was seen since."""
        ...


def end_heard(execution: Endable, last: list[Event], deadline_s: float) -> None:
    """Cancel and kill what runs, and hear the rest; what was seen until then is added to ``last``, whatever fails.

    Raises:
        CallError: When it could not be ended, or was not seen to end.
    """
    end_s = execution.grounds.clock.monotonic_s() + deadline_s
    try:
        hear_rest(execution, last, end_s)
    except HarnessError:
        await_end(execution, end_s)
        raise


def end_unheard(execution: Endable, end_s: float) -> None:
    """Cancel and wait for the end; its job cannot be deleted before, and whoever deletes it says so."""
    if execution.is_over_there:
        return
    _cancel_and_kill(execution)  # it may have ended meanwhile, and is looked for all the same
    await_end(execution, end_s)


def await_end(execution: Endable, end_s: float) -> None:
    """What of it cannot be told any more must have ended all the same: a job with a running execution cannot be deleted."""
    grounds = execution.grounds
    watcher = ExecutionWatcher(grounds.clients, grounds.caller, execution.name)
    with contextlib.suppress(HarnessError):  # nobody can tell: `harness clean` finds the rest
        while grounds.clock.monotonic_s() < end_s:
            sight = watcher.look()
            if sight.execution.is_over or sight.is_gone:
                return
            grounds.clock.sleep(grounds.pace.watch_s)


def _cancel_and_kill(execution: Endable) -> CallError | None:
    """Why it could not be cancelled, which ``cancel`` has told; the agents kill their jobs all the same, and who waits may try it again."""
    failure: CallError | None = None
    try:
        execution.cancel()
    except CallError as error:
        failure = error
    _kill_all(execution)
    return failure


def _kill_all(execution: Endable) -> None:
    """By the agents: at once, without the platform's grace."""
    if execution.is_over_there:
        return
    for attempt in [attempt for attempt in execution.attempts.by_key.values() if attempt.is_running]:
        with contextlib.suppress(HarnessError):  # the cancel ends it, too
            execution.orders.give(attempt.key, "signal", signal=9, cause="stop")


def hear_rest(execution: Endable, last: list[Event], end_s: float) -> None:
    """Cancel and kill, again where that came to nothing, and hear the rest; the log of what has ended may take longer.

    Raises:
        CallError: When it did not end, and could not be cancelled.
    """
    clock = execution.grounds.clock
    again_s = clock.monotonic_s()
    failure: CallError | None = None
    while not execution.is_over and (clock.monotonic_s() < end_s or execution.is_settling):
        if isinstance(failure, EmulatorLostError):  # and the execution with it
            raise failure
        if not execution.is_over_there and clock.monotonic_s() >= again_s:
            again_s = clock.monotonic_s() + CANCELLED_AGAIN_S
            failure = _cancel_and_kill(execution) or failure
        execution.wait(execution.grounds.pace.watch_s)
        last += execution.poll()
    if failure is not None and not execution.is_over:
        raise failure
