"""A job that never ran is not blamed for what it was never let do: the first word is Kubernetes' own."""

import pytest

from harness.checkers import CHECKERS, judge
from harness.checkers.completion import check
from harness.checkers.landed import check as check_landed
from harness.checkers.leftovers import check as check_leftovers
from harness.checkers.submission import check as check_submission
from harness.history import LogLine, RunClosed
from harness.scenario import Injection, Platform
from harness.scenario.cluster_faults import EvictWorkload
from harness.scenario.expectations import (
    AdmittedTo,
    Completes,
    Expectation,
    Goodput,
    LeavesNothing,
    LogOrder,
    NoHang,
    RecoversWithin,
    ResumesFromNewestDurable,
    SavesAtCadence,
    SubmittedOnce,
    WithinRetries,
)
from harness.scenario.triggers import AtStep
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import Run
from tests.unit.checkers.cluster_builders import ClusterRun

FORBIDDEN = (
    'Error creating: pods "job-0-" is forbidden: error looking up service account harness-r/trainer: serviceaccount "trainer" not found'
)
NO_QUEUE = "LocalQueue team-a-queue doesn't exist"


def completes(run: Run, **fields: object) -> Finding:
    return check(Completes(), run.evidence(**fields))


def refused() -> ClusterRun:
    """Its pods are not made; other objects have other troubles."""
    run = ClusterRun().submit().admit("on-demand").warns("Job/job-0", "FailedCreate", FORBIDDEN)
    return run.warns("Job/job-01", "FailedCreate", "of another task").warns("Pod/coredns", "Unhealthy", "of nobody's")


def test_a_job_whose_pods_are_not_made_is_told_in_kubernetes_words_first():
    finding = completes(refused().close("deadline"))

    assert finding.outcome is Outcome.INVALID
    assert finding.reason.startswith(f"task 0 never ran: Job/job-0: FailedCreate: {FORBIDDEN}; the run had to be ended at ")
    assert finding.reason.endswith("deadline")


def test_that_the_run_waited_for_its_turn_is_no_life_of_the_job():
    run = refused()
    run.events.insert(1, LogLine(t_s=0.1, stream="system", text="Waited 45 s for another run on the cluster."))

    assert completes(run.close("deadline")).reason.startswith("task 0 never ran: Job/job-0: FailedCreate")


def test_a_job_in_a_queue_that_is_not_there_is_told_in_kueues_words_first():
    run = ClusterRun().submit().queued(NO_QUEUE).close("deadline")

    assert completes(run).reason.startswith(f"task 0 never ran: its workload was queued: Pending: {NO_QUEUE}; the run had to be ended")


@pytest.mark.parametrize(
    ("reason", "later"), [("FailedScheduling", "NotTriggerScaleUp"), ("FailedMount", "BackOff"), ("Failed", "BackOff")]
)
def test_a_pod_that_is_not_begun_is_told_by_what_keeps_it_and_not_by_what_comes_of_that(reason: str, later: str):
    run = ClusterRun().submit().admit("on-demand").pod("job-0-x", phase="Pending", node="")
    run.warns("Pod/job-0-x", reason, "0/6 nodes are\navailable").warns("Pod/job-0-x", later, "and so on").close("deadline")

    assert completes(run).reason.startswith(f"task 0 never ran: Pod/job-0-x: {reason}: 0/6 nodes are available; ")


def test_a_ray_job_whose_head_runs_without_hosts_has_not_run():
    run = ClusterRun().submit(object_kind="RayJob", ray_cluster="job-0-abcde").admit("on-demand", head="default").attempt(0)
    run.pod("job-0-abcde-head", role="head", rank=-1).warns("RayCluster/job-0-abcde", "FailedToCreateWorkerPod", "forbidden")

    assert completes(run.fork().close("deadline")).reason.startswith("task 0 never ran: RayCluster/job-0-abcde: FailedToCreateWorkerPod")
    assert completes(run.fork().pod("job-0-abcde-w").close("deadline")).reason.startswith("the run had to be ended")
    half = run.fork().pod("job-0-abcde-w").pod("job-0-abcde-v", phase="Pending").warns("Pod/job-0-abcde-v", "FailedScheduling", "no node")
    assert completes(half.close("deadline")).reason.startswith("task 0 never ran: Pod/job-0-abcde-v: FailedScheduling: no node")
    assert completes(run.fork().boot().close("deadline")).reason.startswith("the run had to be ended")


def test_a_job_that_has_run_answers_for_itself():
    run = ClusterRun().submit().admit("on-demand").warns("Job/job-0", "FailedCreate", FORBIDDEN).attempt(0).begin().steps(1, 7)

    assert completes(run.close("deadline")).reason.startswith("the run had to be ended at ")


def test_a_task_that_failed_without_having_run_is_told_in_kubernetes_words_too():
    finding = completes(refused().finish(succeeded=False, detail="DeadlineExceeded"))

    assert finding.outcome is Outcome.INVALID
    assert finding.reason.startswith("task 0 never ran: Job/job-0: FailedCreate")


def failed(run: ClusterRun, number: int, reason: str, code: int) -> ClusterRun:
    """An attempt whose pod fails."""
    name = f"job-0-{number}"
    return run.attempt(number).pod(name).pod(name, phase="Failed", reason=reason, exit_code=code).exit(code)


def test_what_pods_died_of_stands_beside_what_their_job_says():
    run = failed(failed(ClusterRun().submit().admit("on-demand"), 0, "OOMKilled", 137), 1, "OOMKilled", 137)

    reason = completes(run.finish(succeeded=False, detail="BackoffLimitExceeded")).reason

    assert reason.endswith("(BackoffLimitExceeded); pod job-0-1: OOMKilled, exit code 137 (the last of 2 pods that ended so)")


def test_a_program_that_is_not_there_is_told_in_kubernetes_words():
    run = failed(ClusterRun().submit().admit("on-demand"), 0, "StartError", 128)
    run.warns("Pod/job-0-0", "Failed", 'exec: "trian": executable file\nnot found in $PATH').warns("Pod/job-0-0", "BackOff", "and so on")

    reason = completes(run.fork().finish(succeeded=False, detail="BackoffLimitExceeded")).reason

    assert reason.endswith('; pod job-0-0: StartError, exit code 128: exec: "trian": executable file not found in $PATH')
    assert completes(run.close("deadline")).reason.endswith("executable file not found in $PATH")


def test_an_image_that_a_later_pod_cannot_get_is_told_too():
    run = failed(ClusterRun().submit().admit("on-demand"), 0, "Error", 1)
    run.pod("job-0-1", phase="Pending", reason="ImagePullBackOff").warns("Pod/job-0-1", "Failed", "Failed to pull image x: not found")

    assert completes(run.close("deadline")).reason.endswith("; pod job-0-1: ImagePullBackOff: Failed to pull image x: not found")


def test_what_kept_a_pod_from_running_is_over_when_it_runs():
    run = ClusterRun().submit().admit("on-demand").pod("job-0-0", phase="Pending", reason="Unschedulable").attempt(0).pod("job-0-0")

    assert "Unschedulable" not in completes(run.close("deadline")).reason


def test_what_our_own_cleaning_brings_is_none_of_its_words():
    run = refused()
    run.events.append(RunClosed(t_s=run.t_s + 1, reason="deadline", ended_s=run.t_s))
    cleaned = run.warns("Job/job-0", "FailedDelete", "namespace is being terminated")

    assert "FailedDelete" not in completes(cleaned).reason


def test_of_several_tasks_the_one_that_never_ran_is_named():
    run = ClusterRun(platform=Platform(tasks=2)).submit().admit().attempt(0).begin().steps(1, 7)
    run.submit(task=1).queued(NO_QUEUE)

    assert completes(run.close("deadline")).reason.startswith("task 1 never ran: its workload was queued")


def test_the_fault_that_waited_for_it_says_so_too():
    evict = Injection(fault=EvictWorkload(), at=AtStep(step=7))

    finding = check_landed(refused().close("deadline").evidence(injections=(evict,)))

    assert finding.outcome is Outcome.UNKNOWN
    assert finding.reason.endswith(f"task 0 never ran: Job/job-0: FailedCreate: {FORBIDDEN}")


PROMISES: tuple[Expectation, ...] = (
    Completes(),
    AdmittedTo(flavors=(("on-demand",),)),
    SubmittedOnce(),
    WithinRetries(attempts_max=1),
    ResumesFromNewestDurable(lost_steps_max=5),
    SavesAtCadence(every=5),
    LeavesNothing(),
    NoHang(quiet_s=5.0),
    RecoversWithin(total_s=10.0),
    LogOrder(patterns=("done",)),
    Goodput(),
    *(
        kind()
        for kind in CHECKERS
        if kind.__name__ in ("SameRun", "WorkloadEnds", "ChargesRetries", "ConsumesProvisioning", "MakesProgress")
    ),
)


@pytest.mark.parametrize("promise", PROMISES, ids=lambda promise: type(promise).__name__)
def test_a_run_that_ended_before_anything_was_submitted_accuses_nobody(promise: Expectation):
    run = ClusterRun().node().watch(240.0).close("deadline")
    evidence = run.evidence(promise)

    verdict = judge(evidence.scenario, evidence.history, None)

    assert verdict.outcome is Outcome.UNKNOWN, verdict.worst()


def test_what_was_not_submitted_in_time_is_said():
    run = ClusterRun(platform=Platform(tasks=2)).node().close("deadline")

    assert completes(run).reason.endswith("deadline, before task 0 was submitted")
    run = ClusterRun(platform=Platform(tasks=2)).submit().admit().attempt(0).begin().steps(1, 20).complete()
    assert completes(run).outcome is not Outcome.VALID


def test_that_only_a_cluster_tells_is_not_said_on_a_cluster():
    for checked in (
        check_submission(SubmittedOnce(), ClusterRun().close().evidence()),
        check_leftovers(LeavesNothing(), ClusterRun().evidence()),
    ):
        assert checked.outcome is Outcome.UNKNOWN
        assert "alone" not in checked.reason
    elsewhere = check_submission(SubmittedOnce(), Run().close().evidence())
    assert "this is told by a cluster alone (target kind)" in elsewhere.reason


def test_a_run_that_was_not_played_names_the_cause_first():
    run = Run()
    run.events = [*run.events[:1], RunClosed(t_s=0.0, reason="error", detail="the uninterrupted run first itself is invalid: why")]
    kill = Injection(fault=EvictWorkload(), at=AtStep(step=7))

    finding = check_landed(run.evidence(injections=(kill,)))

    assert finding.reason == "0 of 1 faults landed: no execution began: the uninterrupted run first itself is invalid: why"
