"""What befalls every call, whatever wire it comes over: credentials, injected faults, the journal."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeVar

from harness.emulator.failures import ApiError
from harness.emulator.injection import InjectedFault
from harness.emulator.world import World

SLICE_S = 0.02
"""A delay is slept in slices, so that it ends when the caller hangs up or the emulator closes."""

Answer = TypeVar("Answer")


class ConnectionCut(Exception):  # noqa: N818 - it is no error of ours: the connection is cut on purpose
    """The caller gets no answer: its connection ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """A call as it arrives.

    Attributes:
        method: Its whole name.
        resource: What it is about.
        is_write: Whether it is to change something.
        headers: By name, in small letters.
        is_active: Whether the caller is there still.
    """

    method: str
    resource: str
    is_write: bool
    headers: Mapping[str, str]
    is_active: Callable[[], bool]


def answer_call(world: World, arrival: Arrival, work: Callable[[bool], Answer]) -> Answer:
    """Do the work of a call, unless something befalls it; ``work`` is told whether its answer is to be cut short.

    Raises:
        ApiError: What is answered instead.
        ConnectionCut: When nothing is.
    """
    outcome = "broken"
    try:
        answer = _answer(world, arrival, work)
    except ApiError as error:
        outcome = error.code
        raise
    except ConnectionCut:
        outcome = "dropped"
        raise
    else:
        outcome = "OK"
        return answer
    finally:
        world.calls.note(arrival.method, resource=arrival.resource, is_write=arrival.is_write, outcome=outcome)


def _answer(world: World, arrival: Arrival, work: Callable[[bool], Answer]) -> Answer:
    world.callers.check(arrival.headers)
    fault = world.injections.take(arrival.method)
    if fault is not None:
        _befall(world, arrival, fault)
    world.operations.settle()
    answer = work(fault is not None and fault.is_partial)
    if fault is not None and fault.drop == "after":
        raise ConnectionCut
    return answer


def _befall(world: World, arrival: Arrival, fault: InjectedFault) -> None:
    """What comes before the work."""
    until_s = world.clock.monotonic_s() + fault.delay_s
    while (left_s := until_s - world.clock.monotonic_s()) > 0 and arrival.is_active() and not world.closing.is_set():
        world.clock.sleep(min(SLICE_S, left_s))
    if fault.error is not None:
        raise fault.error
    if fault.drop == "before":
        raise ConnectionCut
