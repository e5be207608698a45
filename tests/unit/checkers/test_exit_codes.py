"""The codes of the contract: never 0 where the work is not done, the agreed code after SIGTERM."""

import msgspec

from harness.checkers.exit_codes import check
from harness.history import FaultRequested
from harness.scenario import LogPatterns, Outside
from harness.scenario.expectations import ExitCodes
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import JOB, SILENT, Run, resumed, uninterrupted
from tests.unit.checkers.cluster_builders import ClusterRun


def judge(run: Run, **fields: object) -> Finding:
    return check(ExitCodes(), run.evidence(**fields))


def after(run: Run) -> Run:
    """A second attempt that does the rest."""
    return run.attempt(1).begin(5).steps(6, 20).complete()


def test_zero_where_the_work_is_done_and_no_code_of_a_killed_attempt():
    assert judge(uninterrupted()).outcome is Outcome.VALID
    finding = judge(resumed())
    assert (finding.outcome, finding.measures["exits_judged"]) == (Outcome.VALID, 1.0)


def test_the_agreed_code_after_sigterm():
    run = Run().attempt(0).begin().steps(1, 7).terminated(143, saves=7).attempt(1).begin(7).steps(8, 20).complete()
    assert judge(run).outcome is Outcome.VALID


def test_zero_after_sigterm_with_work_left_is_broken():
    finding = judge(Run().attempt(0).begin().steps(1, 7).terminated(0, saves=7).finish())
    assert finding.outcome is Outcome.INVALID
    assert "attempt 0 ended with exit code 0" in finding.reason
    assert "its work not done" in finding.reason


def test_another_code_after_sigterm_is_broken():
    finding = judge(after(Run().attempt(0).begin().steps(1, 7).terminated(1)))
    assert finding.outcome is Outcome.INVALID
    assert "143 was owed" in finding.reason


def test_death_of_the_signal_itself_shows_as_143():
    assert judge(after(Run().attempt(0).begin().steps(1, 7).terminated(signal=15))).outcome is Outcome.VALID
    assert judge(after(Run().attempt(0).begin().steps(1, 7).terminated(signal=6))).outcome is Outcome.INVALID


def test_zero_after_sigterm_with_the_work_done_is_right():
    run = Run().attempt(0).begin().steps(1, 20).done().signal("SIGTERM").exit(0).finish()
    assert judge(run).outcome is Outcome.VALID


def test_a_failure_code_with_the_work_done_is_broken():
    finding = judge(Run().attempt(0).begin().steps(1, 20).done().exit(1).finish())
    assert (finding.outcome, finding.reason.endswith("0 was owed")) == (Outcome.INVALID, True)


def test_a_failure_of_its_own_has_no_agreed_code():
    assert judge(after(Run().attempt(0).begin().steps(1, 7).exit(1))).outcome is Outcome.VALID


def test_sigterm_to_one_rank_agrees_on_no_code():
    assert judge(after(Run().attempt(0).begin().steps(1, 7).signal("SIGTERM", rank=1).exit(1))).outcome is Outcome.VALID


def test_a_job_whose_storage_failed_owes_no_code():
    run = Run().attempt(0).begin().steps(1, 7).here(FaultRequested, injection="1-fail-writes", fault="fail-writes")
    assert judge(after(run.terminated(74))).outcome is Outcome.VALID


def test_without_an_end_of_its_own_nothing_is_judged():
    assert judge(Run().attempt(0).begin().steps(1, 7).killed().close("deadline")).outcome is Outcome.UNKNOWN
    overrun = Run().attempt(0).begin().steps(1, 7).signal("SIGTERM").exit(signal=9, cause="grace").close("deadline")
    assert judge(overrun).outcome is Outcome.UNKNOWN


def test_a_silent_job_is_done_when_its_last_step_is_durable():
    assert judge(Run(SILENT).attempt(0).steps(1, 20).exit(0).finish()).outcome is Outcome.VALID
    assert judge(Run(SILENT).attempt(0).steps(1, 10).exit(0).finish()).outcome is Outcome.INVALID
    odd = msgspec.structs.replace(SILENT, save_every=0)
    assert judge(Run(odd).attempt(0).steps(1, 10).exit(0).finish()).outcome is Outcome.UNKNOWN
    says_done = msgspec.structs.replace(SILENT, outside=Outside(logs=LogPatterns(done="done")))
    assert judge(Run(says_done).attempt(0).steps(1, 10).exit(0).finish()).outcome is Outcome.INVALID
    files = msgspec.structs.replace(JOB, speaks_protocol=False, layout="files")
    assert judge(Run(files).attempt(0).put(-1).exit(0).finish()).outcome is Outcome.UNKNOWN


def test_what_kubernetes_says_beside_a_code_is_told_with_it():
    run = ClusterRun().submit().admit("on-demand").attempt(0).begin().steps(1, 7).pod("a")
    run.pod("a", phase="Failed", reason="OOMKilled", exit_code=137).exit(signal=9, cause="job")
    run.attempt(1).begin(5).steps(6, 7).pod("b").pod("b", phase="Failed", reason="Error", exit_code=1).exit(1)

    evidence = judge(run.finish(succeeded=False)).evidence

    assert [line.partition(" s ")[2] for line in evidence] == ["(job, OOMKilled), its work not done", "(job), its work not done"]
