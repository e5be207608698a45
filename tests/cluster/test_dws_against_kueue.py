"""What the real Kueue makes of a ProvisioningRequest that moves as GKE moves it; the manual shows the record that is compared with here.

``python -m tests.cluster.test_dws_against_kueue`` takes the record anew.
"""

from collections.abc import Iterator

import pytest

from harness.history import ConditionState
from harness.kind import KindCluster, find_cluster
from harness.targets.kubernetes.api import EVENTS, PROVISIONING_REQUESTS, WORKLOADS
from harness.targets.kubernetes.dws_course import Step
from harness.targets.kubernetes.dws_reasons import explain_failure
from harness.targets.kubernetes.dws_served import Served
from harness.targets.kubernetes.dws_states import State, classify
from tests.cluster.kueue_trials import (
    CONTEXTS,
    NAME,
    READY_S,
    RECORD,
    TEST_S_MAX,
    Context,
    KueueTrials,
    Look,
    Record,
    Trial,
    named,
    read_record,
    sequences_in,
    take_record,
    write_record,
)

pytestmark = pytest.mark.timeout(TEST_S_MAX)

PROVISIONED = (State.PENDING, State.ACCEPTED, State.PROVISIONED)
EXPIRED = (*PROVISIONED, State.BOOKING_EXPIRED)
REVOKED = (*EXPIRED, State.CAPACITY_REVOKED)
FAILED = (State.PENDING, State.ACCEPTED, State.FAILED)

QUICK = Context(retries=2, base_s=1)
"""Back-off of 1, then 2 seconds."""


@pytest.fixture(scope="module")
def observed(cluster: KindCluster) -> Record:
    return take_record(cluster)


@pytest.mark.parametrize(
    ("context", "sequence"), [(context, named(sequence)) for context in CONTEXTS for sequence in sequences_in(context)]
)
def test_kueue_answers_each_legal_sequence_as_it_is_recorded(observed: Record, context: str, sequence: str):
    recorded = read_record().looks[context]
    parts = sequence.split(">")
    steps = [">".join(parts[: length + 1]) for length in range(len(parts))]

    assert {step: observed.looks[context][step] for step in steps} == {step: recorded[step] for step in steps}


# ---- what follows from it --------------------------------------------------------------------------------------------


def test_a_provisioned_request_lets_the_workload_be_admitted(observed: Record):
    look = seen(observed, "admitted", *PROVISIONED)

    assert look.checks[-1] == "Ready"
    assert "Admitted" in look.conditions


def test_revoked_capacity_rejects_an_admitted_workload_and_deactivates_it(observed: Record):
    look = seen(observed, "admitted", *REVOKED)

    assert "Rejected" in look.checks
    assert not look.is_active
    assert "Admitted" not in look.conditions


def test_an_expired_booking_changes_nothing_for_an_admitted_workload(observed: Record):
    before, after = seen(observed, "admitted", *PROVISIONED), seen(observed, "admitted", *EXPIRED)

    assert after.checks == ("Ready",)
    assert (after.conditions, after.message) == (before.conditions, before.message)


def test_an_expired_booking_of_a_workload_that_was_not_admitted_is_retried_while_attempts_are_left(observed: Record):
    retried, last = seen(observed, "held-back", *EXPIRED), seen(observed, "held-back-last", *EXPIRED)

    assert "Retry" in retried.checks
    assert retried.is_active
    assert "Rejected" in last.checks
    assert not last.is_active


def test_a_failure_is_retried_while_attempts_are_left_and_then_deactivates(observed: Record):
    retried, last = seen(observed, "admitted", *FAILED), seen(observed, "admitted-last", *FAILED)

    assert "Retry" in retried.checks
    assert retried.is_active
    assert "Rejected" in last.checks
    assert not last.is_active


def test_a_workload_keeps_its_quota_while_it_backs_off(observed: Record):
    assert seen(observed, "admitted", *FAILED).conditions == ("QuotaReserved",)


def test_a_stockout_keeps_the_workload_waiting_with_the_requests_own_words(observed: Record):
    look = seen(observed, "admitted", State.PENDING, State.ACCEPTED, State.ACCEPTED)

    assert look.checks[-1] == "Pending"
    assert "Expected time is indefinite" in look.message
    assert look.conditions == ("QuotaReserved",)


# ---- attempts --------------------------------------------------------------------------------------------------------


@pytest.fixture
def trials(cluster: KindCluster) -> Iterator[KueueTrials]:
    with KueueTrials(cluster, {"quick": QUICK}) as trials:
        yield trials


def test_each_failure_makes_a_new_request_until_the_last_one_deactivates_the_workload(trials: KueueTrials):
    (trial,) = trials.begin([FAILED], "quick")
    for attempt in (1, 2, 3):
        served = trials.next_request(trial, attempt)
        assert served.asked.name == f"{trial.workload}-{NAME}-prov-quick-{attempt}"
        for step in (Step(State.PENDING), Step(State.FAILED, explain_failure("NodepoolSizeReached", pool="dws-pool"))):
            trials.writer.move(served, step)

    trials.wait(lambda: trials.turn() and not is_active(trial), READY_S, "the workload is still active")
    trials.settle()
    assert len(trial.requests) == 3
    events = [event for event in trials.api.list(EVENTS, NAME) if event["involvedObject"]["name"] == trial.workload]
    rejected = [event["message"] for event in events if event["reason"] == "AdmissionCheckRejected"]
    assert rejected
    assert all(message.endswith("was Rejected: Max nodepool size reached, affected nodepools: dws-pool") for message in rejected)


def test_a_request_after_a_failed_one_is_admitted(trials: KueueTrials):
    (trial,) = trials.begin([FAILED], "quick")
    first = trials.next_request(trial, 1)
    for step in (Step(State.PENDING), Step(State.FAILED, explain_failure("NodepoolSizeReached", pool="dws-pool"))):
        trials.writer.move(first, step)
    second = trials.next_request(trial, 2)
    for state in PROVISIONED:
        trials.writer.move(second, Step(state))
    trials.settle()

    assert "Admitted" in trial.look().conditions


def test_kueue_is_content_with_provisioned_without_accepted_which_gke_holds_for_invalid(trials: KueueTrials):
    (trial,) = trials.begin([PROVISIONED], "quick")
    request = trials.next_request(trial, 1)
    written = {"type": "Provisioned", "status": "True", "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
    trials.api.patch(PROVISIONING_REQUESTS, request.asked.name, {"status": {"conditions": [written]}}, NAME, "status")
    trials.settle()

    assert "Admitted" in trial.look().conditions
    assert classify([ConditionState(type="Provisioned", status="True")]) == State.INVALID


def test_a_workload_whose_capacity_was_revoked_asks_again_when_it_is_deleted_but_not_when_it_is_activated(trials: KueueTrials):
    activated, deleted = trials.begin([REVOKED, REVOKED], "quick")
    requests = [trials.next_request(trial, 1) for trial in (activated, deleted)]
    for state in REVOKED:
        for request in requests:
            trials.writer.move(request, Step(state))
        trials.settle()
    assert (is_active(activated), is_active(deleted)) == (False, False)

    trials.api.patch(WORKLOADS, activated.workload, {"spec": {"active": True}}, NAME)
    trials.api.delete(WORKLOADS, deleted.workload, NAME)
    trials.settle()
    assert (is_active(activated), is_active(deleted)) == (True, True)
    assert activated.look().conditions == ("Evicted (DeactivatedDueToAdmissionCheck)",)
    assert deleted.look().conditions == ("QuotaReserved",)
    assert [served.asked.uid == request.asked.uid for served, request in zip(served_of(activated, deleted), requests, strict=True)] == [
        True,
        False,
    ]


def served_of(*trials: Trial) -> list[Served]:
    return [trial.served for trial in trials if trial.served is not None]


def seen(record: Record, context: str, *states: State) -> Look:
    return record.looks[context][named(states)]


def is_active(trial: Trial) -> bool:
    return bool(trial.newest["spec"].get("active", True))


if __name__ == "__main__":
    up = find_cluster()
    assert up is not None, "no cluster is up; run `harness up kind`"
    write_record(take_record(up))
    print(f"written: {RECORD}")
