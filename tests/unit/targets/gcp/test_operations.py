"""Long operations: waited for to their end, or said to go on, to have failed, or to be lost."""

import grpc
import pytest
from google.api_core import exceptions
from google.cloud import compute_v1, container_v1

from harness.clock import ManualClock
from harness.targets.gcp.calling import Caller, Request
from harness.targets.gcp.failures import (
    Failure,
    OperationLostError,
    OperationPendingError,
    PermissionMissingError,
    QuotaExceededError,
    ServiceFailureError,
    StockoutError,
)
from harness.targets.gcp.operation_states import cluster_state, compute_state
from harness.targets.gcp.operations import POLLED_LONGEST_S, RPC_CODES, OperationState, failure_of_status, wait_for

REQUEST = Request(service="run.googleapis.com", method="Operations.GetOperation", resource="projects/p/locations/r/operations/o")


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def caller(clock) -> Caller:
    return Caller(clock=clock)


class Operation:
    """Shows one state after the other, the last one for ever; an exception is raised."""

    def __init__(self, clock: ManualClock, *states: OperationState[str] | Exception, takes_s: float = 0.0) -> None:
        self.clock, self.states, self.takes_s, self.looks = clock, list(states), takes_s, 0

    def poll(self, timeout_s: float) -> OperationState[str]:
        self.looks += 1
        self.clock.advance(min(self.takes_s, timeout_s))
        state = self.states.pop(0) if len(self.states) > 1 else self.states[0]
        if isinstance(state, Exception):
            raise state
        return state


GOES_ON = OperationState[str](is_done=False)


def error(code: str) -> Exception:
    return exceptions.from_grpc_status(grpc.StatusCode[code], "as told")


def test_one_is_waited_for_to_its_end(clock, caller):
    operation = Operation(clock, GOES_ON, GOES_ON, GOES_ON, OperationState(is_done=True, result="made"))
    assert wait_for(caller, REQUEST, operation.poll, deadline_s=100.0) == "made"
    assert operation.looks == 4


def test_looks_become_rarer_and_never_rarer_than_that(clock, caller):
    operation = Operation(clock, *[GOES_ON] * 99, OperationState[str](is_done=True))
    wait_for(caller, REQUEST, operation.poll, deadline_s=1e6)
    assert 98 * POLLED_LONGEST_S * 0.9 < clock.monotonic_s() <= 99 * POLLED_LONGEST_S


@pytest.mark.parametrize("takes_s", [0.0, 7.0])
def test_one_that_never_ends_is_said_to_go_on(clock, caller, takes_s):
    operation = Operation(clock, GOES_ON, takes_s=takes_s)
    with pytest.raises(OperationPendingError, match=r"operations/o.*has not ended after 60 s.*goes on without us"):
        wait_for(caller, REQUEST, operation.poll, deadline_s=60.0)
    assert clock.monotonic_s() == 60.0


def test_one_that_failed_says_why(clock, caller):
    failed = OperationState[str](is_done=True, failure=failure_of_status(7, "Permission 'run.jobs.run' denied"))
    with pytest.raises(PermissionMissingError, match=r"run\.jobs\.run"):
        wait_for(caller, REQUEST, Operation(clock, failed).poll, deadline_s=60.0)


def test_a_service_that_stumbles_meanwhile_is_asked_again(clock, caller):
    operation = Operation(clock, GOES_ON, error("UNAVAILABLE"), OperationState(is_done=True, result="made"))
    assert wait_for(caller, REQUEST, operation.poll, deadline_s=600.0) == "made"


def test_one_that_nobody_knows_any_more_is_lost(clock, caller):
    operation = Operation(clock, GOES_ON, error("NOT_FOUND"))
    with pytest.raises(OperationLostError, match="look at the resource"):
        wait_for(caller, REQUEST, operation.poll, deadline_s=60.0)


def test_where_the_resource_tells_it_is_not_lost(clock, caller):
    operation = Operation(clock, GOES_ON, error("NOT_FOUND"))
    settled = OperationState(is_done=True, result="made")
    assert wait_for(caller, REQUEST, operation.poll, deadline_s=60.0, settled=lambda: settled) == "made"
    with pytest.raises(OperationLostError):
        wait_for(caller, REQUEST, Operation(clock, error("NOT_FOUND")).poll, deadline_s=60.0, settled=lambda: GOES_ON)


def test_progress_is_told_when_it_changes(clock, caller):
    told: list[str] = []
    states = [OperationState[str](is_done=False, progress=word) for word in ("a", "a", "b", "b")]
    wait_for(caller, REQUEST, Operation(clock, *states, OperationState[str](is_done=True)).poll, deadline_s=60.0, tell=told.append)
    assert told == ["a", "b"]


@pytest.mark.parametrize("number", range(1, 17))
def test_every_code_has_its_name(number):
    assert failure_of_status(number, "x").code == grpc.StatusCode[RPC_CODES[number]].name
    assert next(code for code in grpc.StatusCode if code.value[0] == number).name == RPC_CODES[number]


def test_a_code_that_is_none_is_unknown():
    assert failure_of_status(99, "x").code == "UNKNOWN"
    assert "planted" not in failure_of_status(13, "Authorization: Bearer planted-token").message


def test_operations_of_a_cluster_are_read():
    status = container_v1.Operation.Status
    assert not cluster_state(container_v1.Operation(status=status.RUNNING)).is_done
    assert cluster_state(container_v1.Operation(status=status.DONE)) == OperationState(is_done=True, progress="DONE")
    message = "Instance 'x' creation failed: Quota 'IN_USE_ADDRESSES' exceeded.  Limit: 8.0 in region r"
    failed = cluster_state(container_v1.Operation(status=status.DONE, error={"code": 8, "message": message})).failure
    assert failed is not None
    assert (failed.code, failed.is_quota) == ("RESOURCE_EXHAUSTED", True)
    older = cluster_state(container_v1.Operation(status=status.DONE, status_message="GCE_STOCKOUT: no machines")).failure
    assert older is not None
    assert older.is_stockout


@pytest.mark.parametrize(
    ("code", "kind"),
    [("ZONE_RESOURCE_POOL_EXHAUSTED", StockoutError), ("QUOTA_EXCEEDED", QuotaExceededError), ("SOMETHING_ELSE", ServiceFailureError)],
)
def test_operations_of_machines_are_read(clock, caller, code, kind):
    operation = compute_v1.Operation(status="DONE", error={"errors": [{"code": code, "message": "as told"}]})
    state = compute_state(operation)
    assert state.is_done
    with pytest.raises(kind, match="as told"):
        wait_for(caller, REQUEST, lambda timeout_s: state, deadline_s=60.0)
    assert not compute_state(compute_v1.Operation(status="RUNNING")).is_done
    assert compute_state(compute_v1.Operation(status="DONE")).failure is None


def test_a_failure_without_a_known_code_is_the_services():
    from harness.targets.gcp.failures import class_of

    assert class_of(Failure(code="NO_SUCH_CODE", message="x")) is ServiceFailureError
