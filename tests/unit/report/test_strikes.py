"""What became of each act of an injection."""

import pytest

from harness.history import FaultFailed, FaultHealed, FaultObserved, FaultRequested
from harness.report.strikes import strikes_of

REQUESTED = FaultRequested(t_s=1.0, injection="1-kill", fault="kill", detail="SIGKILL")


def test_a_request_is_followed_by_what_was_recorded_of_it():
    events = [
        REQUESTED,
        FaultObserved(t_s=1.5, injection="1-kill", evidence="signal 9"),
        FaultHealed(t_s=3.0, injection="1-kill", evidence="nothing to heal"),
    ]

    (strike,) = strikes_of(events)

    assert (strike.requested_s, strike.observed_s, strike.healed_s, strike.failed_s) == (1.0, 1.5, 3.0, None)
    assert (strike.detail, strike.evidence, strike.healing) == ("SIGKILL", "signal 9", "nothing to heal")


def test_the_effect_in_another_attempt_belongs_to_another_act():
    again = FaultRequested(t_s=2.0, injection="1-kill", fault="kill", attempt=1)
    seen = FaultObserved(t_s=2.1, injection="1-kill", attempt=1, evidence="signal 9")

    first, second = strikes_of([REQUESTED, again, seen])

    assert (first.observed_s, second.observed_s) == (None, 2.1)


def test_the_second_request_in_one_attempt_takes_what_follows_it():
    again = FaultRequested(t_s=2.0, injection="1-kill", fault="kill")
    seen = FaultObserved(t_s=2.1, injection="1-kill", evidence="signal 9")

    first, second = strikes_of([REQUESTED, again, seen])

    assert (first.observed_s, second.observed_s) == (None, 2.1)


def test_a_failure_is_kept_with_its_reason():
    (strike,) = strikes_of([REQUESTED, FaultFailed(t_s=1.2, injection="1-kill", detail="no such process")])

    assert (strike.failed_s, strike.failure, strike.last_s) == (1.2, "no such process", 1.2)


@pytest.mark.parametrize(
    ("fault", "healing", "last_s"),
    [
        ("kill", "nothing to heal: what was ended stays ended", 1.5),
        ("pause", "SIGCONT: 1 running", 3.0),
        ("maintenance", "nothing to heal: what was ended stays ended", 1.5),
        ("maintenance", "SIGCONT", 3.0),
    ],
)
def test_only_a_fault_with_a_duration_stands_until_it_is_healed(fault, healing, last_s):
    events = [
        FaultRequested(t_s=1.0, injection="f", fault=fault),
        FaultObserved(t_s=1.5, injection="f", evidence="seen"),
        FaultHealed(t_s=3.0, injection="f", evidence=healing),
    ]

    (strike,) = strikes_of(events)

    assert strike.last_s == last_s
