"""What broken promises mean, in words."""

from harness.explore import judgement
from harness.explore.consequences import CONSEQUENCES, by_severity, consequences_of, severity
from harness.verdict import Outcome
from tests.unit.explore.explorations import Log, state, undecided

LOG = Log()
AT = LOG.moment(0)


def test_every_promise_that_is_judged_has_words_and_a_rank():
    assert all(f"``{promise}``" in (judgement.Broken.__doc__ or "") for promise in CONSEQUENCES)
    assert (judgement.Broken.__doc__ or "").split("says:")[0].count("``") == 2 * len(CONSEQUENCES)


def test_lost_work_is_worse_than_a_wrong_state_than_no_recovery_than_repeated_work():
    some = ["saves-at-its-cadence", "recovers", "completes-as-uninterrupted", "restores-what-was-saved", "keeps-what-was-acknowledged"]

    assert by_severity(some) == (
        "keeps-what-was-acknowledged",
        "restores-what-was-saved",
        "completes-as-uninterrupted",
        "recovers",
        "saves-at-its-cadence",
    )
    assert severity(some) == 0
    assert severity(["recovers"]) < severity(["saves-at-its-cadence"]) < severity([])


def test_what_all_states_do_is_said_of_the_states_and_the_rest_with_its_number():
    promises = ["keeps-the-last-good-checkpoint", "recovers"]
    states = [state(str(number), AT, broken=promises if number < 2 else promises[1:]) for number in range(3)]

    assert consequences_of(promises, states) == "3 states cannot recover, 2 then delete the last good checkpoint"


def test_what_no_promise_has_in_common_is_counted_one_by_one():
    states = [
        state("a", AT, broken=["recovers"]),
        state("b", AT, broken=["keeps-what-was-acknowledged"]),
        state("c", AT, broken=["recovers"]),
    ]

    assert consequences_of(["keeps-what-was-acknowledged", "recovers"], states) == "3 states: 2 cannot recover, 1 loses acknowledged work"


def test_one_state_is_told_in_the_singular():
    promises = ["recovers", "keeps-what-was-acknowledged"]

    assert consequences_of(promises, [state("a", AT, broken=promises)]) == "1 state loses acknowledged work, cannot recover"


def test_promises_of_others_and_what_was_not_decided_are_not_told():
    states = [state("a", AT, broken=["recovers", "saves-at-its-cadence"]), undecided("b", AT, why="timed out")]

    assert states[1].outcome is Outcome.UNKNOWN
    assert consequences_of(["recovers"], states) == "2 states: 1 cannot recover"


def test_a_promise_that_nobody_described_is_told_by_its_name():
    assert consequences_of(["new-promise"], [state("a", AT, broken=["new-promise"])]) == "1 state breaks new-promise"
