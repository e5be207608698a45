"""Why nothing is proved is told with what would help."""

import msgspec

from harness.explore.conclusion import Missing, conclude
from harness.explore.judgement import Broken
from harness.explore.result import Recorded
from harness.verdict import Outcome
from tests.unit.explore.explorations import Log, state, surface

RECORDED = Recorded(seconds=1.0, operations=3, saves=1)


def test_what_the_budget_left_out_asks_for_more_and_what_an_interrupt_left_out_does_not() -> None:
    missing = Missing(states=33, is_counted=False)

    outcome, cut = conclude(RECORDED, (), missing=missing)
    _, interrupted = conclude(RECORDED, (), missing=missing, is_interrupted=True)

    assert outcome is Outcome.UNKNOWN
    assert cut[:2] == (
        "33 of the most telling states were not judged; grant more with --budget",
        "it ended before all of the most telling states were found; grant more with --budget",
    )
    assert interrupted[:3] == (
        "it was interrupted",
        "33 of the most telling states were not judged",
        "it ended before all of the most telling states were found",
    )


def test_that_a_job_does_not_repeat_itself_is_told_once_for_all_states_and_with_what_would_help() -> None:
    differs = "two uninterrupted runs have the results a and b"
    log = Log()
    log.do("write", "a")
    moment = log.moment(1)
    says = [f"no difference would prove anything: {differs}", f"after step 2 it saved nothing; but {differs}", "it was lost"]
    broken = [Broken(promise="completes-as-uninterrupted", says=each, outcome=Outcome.UNKNOWN) for each in says]
    unknown = [msgspec.structs.replace(state(str(at), moment, outcome=Outcome.UNKNOWN), broken=(each,)) for at, each in enumerate(broken)]
    recorded = msgspec.structs.replace(RECORDED, differs=differs)

    outcome, (first, second) = conclude(recorded, (surface("posix", "process", log, unknown),))

    assert outcome is Outcome.UNKNOWN
    assert first.startswith(f"{differs}, so 2 states cannot be decided; let it repeat itself: fix its seeds")
    assert second == "in 1 state: it was lost"
