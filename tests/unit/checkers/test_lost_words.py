"""Where words of the job are lost, what rests on them is unknown: of a job that is followed by its log its lines are its words."""

import pytest
from msgspec.structs import replace

from harness.checkers import CHECKERS
from harness.history import HangCalled, ObservationLost, SigtermSeen
from harness.scenario import Expectation, LogPatterns, Outside
from harness.scenario.expectations import (
    AdmittedTo,
    BitExactResume,
    ChargesRetries,
    Completes,
    ConsumesProvisioning,
    ExactlyOnceData,
    ExitCodes,
    Goodput,
    GraceConduct,
    IntactCheckpoints,
    LeavesNothing,
    LogOrder,
    MakesProgress,
    NoHang,
    RanksAgree,
    RecoversWithin,
    ResumesFromNewestDurable,
    SameResult,
    SameRun,
    SavesAtCadence,
    SingleWriter,
    SubmittedOnce,
    WithinRetries,
    WorkloadEnds,
)
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import SILENT, Run, uninterrupted

PATTERNS = LogPatterns(
    step=r"^step (?P<step>\d+)", saved=r"^saved (?P<step>\d+)", resumed=r"^resumed (?P<step>\d+)", sigterm="^SIGTERM", done="^done"
)
FOLLOWED = replace(SILENT, outside=Outside(logs=PATTERNS))
LINES = {"what": "logs", "count": 19, "detail": "19 lines over the limit"}

ON_WORDS: tuple[Expectation, ...] = (
    BitExactResume(),
    ExactlyOnceData(),
    ExitCodes(),
    Goodput(ratio_min=0.01),
    GraceConduct(margin_s_min=0.5),
    IntactCheckpoints(),
    MakesProgress(),
    NoHang(quiet_s=30.0),
    RecoversWithin(total_s=30.0),
    ResumesFromNewestDurable(lost_steps_max=6),
    SameRun(),
    SavesAtCadence(every=5),
)
ELSEWHERE = {
    Completes: "on storage, or on words that were heard",
    WithinRetries: "on the platform, unless a fault was got over",
    SameResult: "on a file",
    LogOrder: "on the lines themselves; see test_log_order",
    AdmittedTo: "on the cluster",
    SubmittedOnce: "on the cluster",
    ConsumesProvisioning: "on the cluster",
    WorkloadEnds: "on the cluster",
    ChargesRetries: "on the cluster",
    LeavesNothing: "on the cluster",
    RanksAgree: "on the events of ranks, which no log tells apart; see test_ranks",
    SingleWriter: "see test_fencing, and below",
}


def judge(run: Run, promise: Expectation, golden: Run | None = None) -> Finding:
    return CHECKERS[type(promise)](promise, run.evidence(promise, golden=golden or uninterrupted(run.workload)))


def noticed(run: Run) -> Run:
    """SIGTERM, a save, and on from there, as it should be."""
    run.golden().attempt(0).begin().steps(1, 7).terminated(143, saves=7)
    return run.attempt(1).begin(7).steps(8, 20)


@pytest.mark.parametrize("promise", ON_WORDS, ids=lambda promise: type(promise).__name__)
def test_what_rests_on_the_words_of_a_followed_job_is_unknown_where_lines_are_lost(promise: Expectation):
    assert judge(noticed(Run(FOLLOWED)).complete(), promise).outcome is Outcome.VALID
    finding = judge(noticed(Run(FOLLOWED)).add(ObservationLost, **LINES).complete(), promise)
    assert finding.outcome is Outcome.UNKNOWN
    assert "19 lines over the limit" in finding.reason


@pytest.mark.parametrize("promise", ON_WORDS, ids=lambda promise: type(promise).__name__)
def test_a_job_that_speaks_says_nothing_in_its_lines(promise: Expectation):
    assert judge(noticed(Run()).add(ObservationLost, **LINES).complete(), promise).outcome is Outcome.VALID
    both = replace(Run().workload, outside=Outside(logs=PATTERNS))
    assert judge(noticed(Run(both)).add(ObservationLost, **LINES).complete(), promise).outcome is Outcome.UNKNOWN, "its lines are read, too"


def test_of_every_promise_it_is_said_what_it_rests_on():
    assert {type(promise) for promise in ON_WORDS} | ELSEWHERE.keys() == set(CHECKERS)


# ---- no job is accused by what nobody has recorded -------------------------------------------------------------------


def accused(run: Run, promise: Expectation, golden: Run | None = None) -> None:
    """Invalid by a whole log, unknown by one of which lines are lost."""
    assert judge(run, promise, golden).outcome is Outcome.INVALID
    assert judge(run.fork().add(ObservationLost, **LINES), promise, golden).outcome is Outcome.UNKNOWN


def test_who_did_not_say_from_where_it_goes_on_may_have_said_it():
    sparse = Run(FOLLOWED).attempt(0).step(10).step(20).complete()
    run = Run(FOLLOWED).attempt(0).save(5).killed().attempt(1).step(10).step(20).complete()
    accused(run, ResumesFromNewestDurable(lost_steps_max=6), sparse)
    accused(run, SameRun(), sparse)


def test_a_silence_may_have_been_none():
    run = Run(FOLLOWED).attempt(0).steps(1, 7).here(HangCalled, ranks=(0,), quiet_s=2.0).exit(signal=9, cause="stop").close("hang")
    accused(run, NoHang(quiet_s=2.0))
    accused(run, Completes())


def test_who_left_with_0_may_have_said_that_it_was_done():
    files = replace(FOLLOWED, layout="files", save_every=0)
    accused(Run(files).attempt(0).step(20).exit(0).finish(), ExitCodes())


def test_who_was_ended_by_sigterm_may_have_noticed_it():
    run = Run(FOLLOWED).attempt(0).steps(1, 7).signal("SIGTERM").exit(signal=15, cause="fault")
    accused(run.attempt(1).begin(5).steps(6, 20).complete(), GraceConduct(saves=False))


def test_a_crash_loop_may_have_come_further_each_time():
    run = Run(FOLLOWED, is_surveyed=False)
    for number in range(4):
        run.attempt(number).step(3).exit(1)
    accused(run.finish(succeeded=False), MakesProgress(cycles_max=2))


def test_what_storage_and_the_platform_tell_stays_broken():
    run = Run(FOLLOWED)
    for number in range(4):
        run.attempt(number).exit(number + 1)
    run.finish(succeeded=False).add(ObservationLost, **LINES)
    assert judge(run, MakesProgress(cycles_max=2)).outcome is Outcome.INVALID


def test_a_death_after_a_fault_may_be_one_that_was_got_over():
    run = Run(FOLLOWED).attempt(0).begin().steps(1, 7).request("1-fail-writes", "fail-writes").observe("1-fail-writes").exit(74)
    run.attempt(1).begin(5).steps(6, 20).complete()
    promise = WithinRetries(attempts_max=2)
    assert judge(run.fork(), promise).outcome is Outcome.VALID
    assert judge(run.add(ObservationLost, **LINES), promise).outcome is Outcome.UNKNOWN


def test_of_two_writers_the_older_one_may_have_said_that_it_committed():
    run = Run(FOLLOWED).attempt(0).begin().steps(1, 7).abandon().attempt(1).begin(5).steps(6, 20).on(0).exit(75).on(1).complete()
    assert judge(run.fork(), SingleWriter()).outcome is Outcome.VALID
    assert judge(run.add(ObservationLost, **LINES), SingleWriter()).outcome is Outcome.UNKNOWN


def test_what_was_heard_counts_although_lines_are_lost():
    run = Run(FOLLOWED).attempt(0).begin().steps(1, 12).killed().attempt(1).begin(5).steps(6, 20).add(ObservationLost, **LINES)
    assert judge(run.complete(), ResumesFromNewestDurable(lost_steps_max=6)).outcome is Outcome.INVALID
    late = Run(FOLLOWED).attempt(0).begin().steps(1, 7).signal("SIGTERM").here(SigtermSeen).add(ObservationLost, **LINES)
    late.exit(signal=9, cause="grace").attempt(1).begin(5).steps(6, 20).complete()
    assert judge(late, GraceConduct()).outcome is Outcome.INVALID
