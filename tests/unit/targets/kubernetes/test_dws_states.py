"""A ProvisioningRequest is only ever in a state that GKE's autoscaler would write, and only moves as it would move it."""

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import UnknownNameError
from harness.history import ConditionState
from harness.scenario.cluster import FAILURE_REASONS
from harness.targets.kubernetes.dws_reasons import FAILURES, STOCKOUT, Explanation, explain_failure, quota_exceeded
from harness.targets.kubernetes.dws_states import FOLLOWERS, TERMINAL_STATES, IllegalTransitionError, State, classify, next_conditions

STATES = st.sampled_from([*State])
WALKS = st.lists(STATES, max_size=12)
TYPES = ["Accepted", "Provisioned", "BookingExpired", "CapacityRevoked", "Failed"]
CONDITIONS = st.builds(ConditionState, type=st.sampled_from(TYPES), status=st.sampled_from(["True", "False"]))


def condition(kind: str, status: str = "True") -> ConditionState:
    return ConditionState(type=kind, status=status)


def walked(*states: State) -> tuple[ConditionState, ...]:
    """The conditions after a walk; a state twice in a row waits."""
    conditions: tuple[ConditionState, ...] = ()
    for before, state in pairwise((State.UNINITIALIZED, *states)):
        conditions = next_conditions(conditions, state, STOCKOUT if state == before else None)
    return conditions


def statuses(conditions: Sequence[ConditionState]) -> dict[str, str]:
    return {found.type: found.status for found in conditions}


@given(WALKS)
def test_a_walk_reaches_legal_states_only_and_every_illegal_step_is_refused(walk: list[State]):
    conditions: tuple[ConditionState, ...] = ()
    for state in walk:
        seen = classify(conditions)
        if state in FOLLOWERS[seen]:
            conditions = next_conditions(conditions, state, STOCKOUT)
            assert classify(conditions) == state
        else:
            with pytest.raises(IllegalTransitionError) as refused:
                next_conditions(conditions, state, STOCKOUT)
            assert str(seen) in str(refused.value)
            assert str(state) in str(refused.value)
            assert (refused.value.seen, refused.value.wanted) == (seen, state)


@given(st.lists(CONDITIONS, max_size=6))
def test_what_is_no_state_of_gke_is_invalid(conditions: list[ConditionState]):
    holding = {found.type for found in conditions if found.status == "True"}
    is_legal = (
        len({found.type for found in conditions}) == len(conditions)
        and not ({"BookingExpired", "CapacityRevoked"} & holding and not {"Accepted", "Provisioned"} <= holding)
        and not ("CapacityRevoked" in holding and "BookingExpired" not in holding)
        and not ("Provisioned" in holding and "Accepted" not in holding)
        and not ("Failed" in holding and "Provisioned" in holding)
    )

    assert (classify(conditions) != State.INVALID) == is_legal


def test_each_state_is_reached_and_known_again():
    revoked = (State.PENDING, State.ACCEPTED, State.PROVISIONED, State.BOOKING_EXPIRED, State.CAPACITY_REVOKED)

    assert [classify(walked(*revoked[: length + 1])) for length in range(5)] == list(revoked)
    assert classify(walked(State.PENDING, State.FAILED)) == State.FAILED
    assert classify(walked(State.PENDING, State.ACCEPTED, State.FAILED)) == State.FAILED
    assert classify(walked(State.FAILED)) == State.FAILED


def test_a_new_request_says_only_that_it_was_not_accepted():
    assert walked(State.PENDING) == (
        ConditionState(type="Accepted", status="False", reason="NotAccepted", message="Provisioning Request wasn't accepted."),
    )


def test_a_stockout_is_an_accepted_request_that_waits():
    waiting = walked(State.PENDING, State.ACCEPTED, State.ACCEPTED)

    assert classify(waiting) == State.ACCEPTED
    assert statuses(waiting) == {"Accepted": "True", "Provisioned": "False"}
    assert waiting[1].reason == "ResourcePoolExhausted"
    assert waiting[1].message.endswith("Expected time is indefinite.")


def test_what_a_request_waited_for_is_gone_when_it_is_provisioned():
    provisioned = next_conditions(walked(State.PENDING, State.ACCEPTED, State.ACCEPTED), State.PROVISIONED)

    assert statuses(provisioned) == {"Accepted": "True", "Provisioned": "True"}
    assert provisioned[1].reason == "Provisioned"


def test_a_request_that_fails_before_it_was_accepted_stays_unaccepted():
    failed = next_conditions(walked(State.PENDING), State.FAILED, explain_failure("NodepoolSizeReached", pool="dws-pool"))

    assert statuses(failed) == {"Accepted": "False", "Failed": "True"}
    assert failed[1].message == "Max nodepool size reached, affected nodepools: dws-pool"


def test_a_request_that_waits_must_say_what_for():
    with pytest.raises(IllegalTransitionError):
        next_conditions(walked(State.PENDING, State.ACCEPTED), State.ACCEPTED)


def test_provisioned_without_accepted_is_invalid_though_kueue_is_content_with_it():
    assert classify([condition("Provisioned")]) == State.INVALID
    assert classify([condition("Accepted", "False"), condition("Provisioned")]) == State.INVALID


@pytest.mark.parametrize(
    "conditions",
    [
        [condition("Accepted", "Unknown")],
        [condition("Accepted"), condition("Accepted")],
        [condition("Accepted"), condition("Scheduled")],
        [condition("Accepted"), condition("CapacityRevoked")],
        [condition("Accepted"), condition("Provisioned"), condition("Failed")],
    ],
    ids=["unknown status", "a type twice", "a type of nobody", "revoked before it was given", "provisioned and failed"],
)
def test_nothing_follows_an_invalid_request(conditions: list[ConditionState]):
    assert classify(conditions) == State.INVALID
    for state in State:
        with pytest.raises(IllegalTransitionError):
            next_conditions(conditions, state, STOCKOUT)


def test_a_condition_of_older_autoscalers_is_read_over():
    assert classify([condition("Accepted"), condition("Provisioning", "Unknown")]) == State.ACCEPTED


def test_nothing_follows_the_end():
    assert {state for state, followers in FOLLOWERS.items() if not followers} == {*TERMINAL_STATES, State.INVALID}


@pytest.mark.parametrize("reason", FAILURES)
def test_every_failure_says_what_happened_without_a_gap(reason: str):
    explanation = explain_failure(reason, pool="dws-pool")

    assert explanation.reason == reason
    assert explanation.message
    assert "{" not in explanation.message


def test_a_failure_that_gke_does_not_have_is_refused_by_its_name():
    with pytest.raises(UnknownNameError, match=r"WaitTimeExceded.*WaitTimeExceeded"):
        explain_failure("WaitTimeExceded", pool="dws-pool")


def test_exceeded_quota_has_two_spaces_before_its_limit():
    assert quota_exceeded(pool="dws-pool") == Explanation(
        "QuotaExceeded", "Quota 'TPUS_PER_TPU_FAMILY' exceeded.  Limit: 16.0 in region us-east5."
    )


def test_a_script_may_fail_for_whatever_reason_has_a_message_here():
    assert sorted(FAILURES) == sorted(FAILURE_REASONS)
