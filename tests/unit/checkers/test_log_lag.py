"""A fault that never came since the job was ahead of its log says so, and what to do; other reasons are left to speak for themselves."""

import pytest

from harness.checkers.landed import check
from harness.checkers.resume import check as resumes
from harness.history import FaultFailed
from harness.scenario import Injection, Trigger
from harness.scenario.expectations import ResumesFromNewestDurable
from harness.scenario.faults import Kill, Pause, Terminate
from harness.scenario.triggers import AfterSeconds, AtMarker, AtStep
from harness.verdict import Outcome
from tests.unit.checkers.builders import JOB, SILENT, Run

STEP, WORD = AtStep(step=1), AtMarker(event="step", nth=1)


def reason(run: Run, *at: Trigger) -> str:
    kills = tuple(Injection(fault=Kill(), at=each, attempts=(number,)) for number, each in enumerate(at))
    finding = check(run.evidence(injections=kills))
    assert finding.outcome is Outcome.UNKNOWN
    return finding.reason


def hit_too_late(*, steps: int = 20, silent: bool = True) -> Run:
    """A job that is killed when the line of its first step is read, and has done more by then; nothing is left to the next attempt."""
    run = Run(SILENT if silent else JOB).attempt(0).begin().steps(1, steps).killed("1-kill")
    return run.attempt(1).restore(steps).start(steps)


@pytest.mark.parametrize("at", [STEP, WORD], ids=["step", "word"])
def test_a_job_that_was_done_before_its_first_step_was_read_is_told_to_be_slower(at: Trigger):
    told = reason(hit_too_late().complete(), at, at)

    assert "2-kill in attempt 1 was never requested: it waited for" in told
    assert "the job is faster than its log is read: 1-kill was due at step 1 of attempt 0, which went on to step 20; " in told
    assert "let its steps take longer, or let it speak the protocol" in told


def test_a_job_that_had_ended_when_its_log_was_read_is_told_so_of_that_very_fault():
    told = reason(Run(SILENT).attempt(0).begin().steps(1, 20).complete(), AtStep(step=7))

    assert told.endswith(
        "the job is faster than its log is read: attempt 0 had ended when its line was; "
        "let its steps take longer, or let it speak the protocol: then it waits at each moment"
    )


def test_a_fault_that_found_its_attempt_ended_says_why_it_came_late():
    run = Run(SILENT).attempt(0).begin().steps(1, 20).here(FaultFailed, injection="1-kill", detail="attempt 0 of task 0 does not run")
    told = reason(run.complete(), AtStep(step=7))

    assert "attempt 0 of task 0 does not run; the job is faster than its log is read: attempt 0 had ended when its line was; let" in told


def test_a_kill_after_which_the_job_ended_well_came_late():
    run = Run(SILENT).attempt(0).begin().steps(1, 20).request("1-kill", "kill").complete()
    assert "its effect was never seen; the job is faster than its log is read: attempt 0 had ended" in reason(run, AtStep(step=7))


def test_a_pause_that_nobody_saw_may_have_acted():
    run = Run(SILENT).attempt(0).begin().steps(1, 20).request("1-pause", "pause").complete()
    finding = check(run.evidence(injections=(Injection(fault=Pause(duration_s=0.5), at=AtStep(step=7)),)))
    assert finding.reason.endswith("its effect was never seen")


def test_a_fault_that_could_not_act_while_the_job_ran_was_not_late():
    run = Run(SILENT).attempt(0).begin().steps(1, 7).here(FaultFailed, injection="1-kill", detail="not permitted")
    assert reason(run.steps(8, 20).complete(), AtStep(step=7)).endswith("not permitted")


def hit_when_done(at: Trigger, *, steps: int = 20, last: int = 20, silent: bool = True) -> str:
    """What is said of resuming, of a job that leaves with 0 after a SIGTERM that came when it had done so many of its 20 steps."""
    run = Run(SILENT if silent else JOB).attempt(0).begin().steps(1, steps).request("1-terminate", "terminate").signal("SIGTERM")
    run = run.observe("1-terminate").steps(steps + 1, last)
    run = run.complete() if last == 20 else run.exit(0).finish()
    return resumes(ResumesFromNewestDurable(lost_steps_max=5), run.evidence(injections=(Injection(fault=Terminate(), at=at),))).reason


def test_a_sigterm_that_lands_when_the_job_is_done_is_said_to():
    assert hit_when_done(AtStep(step=14)).startswith(
        "nothing resumed in 1 attempt, so nothing was proved: 1-terminate, due at step 14, acted"
    )
    assert hit_when_done(AtStep(step=14)).endswith(
        " s, when the job was done (step 20); let its steps take longer, or let it speak the protocol: then it waits at each moment"
    )
    assert hit_when_done(AfterSeconds(seconds=1.0)).endswith(" s, when the job was done (step 20)")


def test_a_sigterm_after_which_the_job_completed_is_said_to():
    assert hit_when_done(AtStep(step=14), steps=14).endswith(" s, after step 14, and attempt 0 completed")
    assert "due at step 14, acted at" in hit_when_done(AtStep(step=14), steps=16)
    assert hit_when_done(AtStep(step=14), steps=14, silent=False).endswith(" s, after step 14, and attempt 0 completed")


def test_a_job_that_leaves_its_work_at_a_sigterm_did_not_complete():
    assert hit_when_done(AtStep(step=14), steps=14, last=15) == "nothing resumed in 1 attempt, so nothing was proved"


def test_a_job_that_was_hit_where_it_should_be_is_not_called_fast():
    assert "faster" not in reason(hit_too_late(steps=1).complete(), STEP, STEP)


def test_a_moment_that_would_not_have_come_to_a_slow_job_either_is_not_late():
    assert "faster" not in reason(hit_too_late().complete(), STEP, AtMarker(event="eval"))
    assert "faster" not in reason(hit_too_late(steps=10).complete(), STEP, AtStep(step=25))


def test_a_job_that_waits_at_each_moment_is_not_called_fast():
    assert "faster" not in reason(hit_too_late(silent=False).complete(), STEP, STEP)


def test_an_attempt_that_broke_explains_itself():
    assert "faster" not in reason(hit_too_late(steps=10).exit(1).finish(succeeded=False), STEP, STEP)


@pytest.mark.parametrize("at", [AtStep(step=25), AtMarker(event="eval"), AtMarker(event="step", when="before")], ids=str)
def test_a_moment_that_no_line_tells_of_is_not_late(at: Trigger):
    assert "faster" not in reason(Run(SILENT).attempt(0).begin().steps(1, 20).complete(), at)
