"""What counts as an attempt, when it is over, how it ended, and who is behind it."""

from pathlib import Path

import pytest

from harness.capabilities import Launch
from harness.history import AttemptExited, ExecutionFinished, TaskFinished
from harness.protocol.attempt_key import AttemptKey
from harness.scenario import Cluster
from harness.targets.kubernetes.api import JOBS, RAY_CLUSTERS, RAY_JOBS, Object
from harness.targets.kubernetes.attempts import Attempts
from tests.unit.targets.kubernetes.cluster_objects import condition, host, job, metadata, pending, pod, ray_job, ray_pod

FIRST, SECOND = AttemptKey(0, 0), AttemptKey(0, 1)
DELETING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


class Watch:
    """Attempts, told one thing a second."""

    def __init__(self, *, ranks: int = 1, tasks: int = 1, is_ray: bool = False) -> None:
        launch = Launch(
            run_id="run-1",
            job="job",
            command=("job",),
            directory=Path(),
            environment={},
            checkpoint_dir=Path(),
            logs_dir=Path(),
            ranks=ranks,
            tasks=tasks,
            cluster=Cluster(submits="ray-job" if is_ray else "job"),
        )
        self.hurt: set[str] = set()
        self.attempts = Attempts(launch, self.hurt, is_ray=is_ray)
        self.now_s = 0.0
        self.started: list[AttemptKey] = []

    def see(self, *things: Object, is_deleted: bool = False, task: int = 0) -> "Watch":
        for thing in things:
            self.now_s += 1.0
            if thing.get("kind") in ("Job", "RayJob"):
                resource = JOBS if thing["kind"] == "Job" else RAY_JOBS
                self.attempts.see_object(thing, resource, task, is_deleted=is_deleted)
            else:
                self.attempts.see_pod(thing, task, self.now_s, is_deleted=is_deleted)
            self.started += [key for key, _ in self.attempts.take_started()]
        return self

    def exits(self) -> list[AttemptExited]:
        over = [key for key in self.attempts.running() if self.attempts.are_over(key, self.now_s)]
        return [self.attempts.finish(key, self.now_s) for key in over]

    def exit(self) -> tuple[int | None, int | None, str, bool]:
        (exited,) = self.exits()
        return exited.exit_code, exited.signal, exited.cause, exited.retried


# ---- a Job of one host: a pod is an attempt -------------------------------------------------------------------------


def test_each_pod_that_runs_is_an_attempt():
    watch = Watch().see(job(), pending("a"))
    assert watch.started == []
    assert watch.attempts.key_of_pod("uid-a") == FIRST

    watch.see(pod("a"))
    assert watch.started == [FIRST]
    assert watch.exits() == []

    watch.see(pod("a", phase="Failed", code=7))
    assert watch.exit() == (7, None, "job", True)

    watch.see(pending("b"), pod("b"), pod("b", phase="Succeeded", code=0), job(condition("Complete")))
    assert watch.started == [FIRST, SECOND]
    assert watch.exit() == (0, None, "job", False)


def test_a_pod_that_never_ran_is_no_attempt():
    watch = Watch().see(job(), pending("a")).see(pending("a"), is_deleted=True).see(pod("b"))

    assert watch.started == [FIRST]
    assert watch.attempts.key_of_pod("uid-b") == FIRST


def test_the_last_failure_that_the_job_allows_is_not_tried_again():
    watch = Watch().see(job(backoff_limit=1), pod("a"), pod("a", phase="Failed", code=1))
    assert watch.exit() == (1, None, "job", True)

    watch.see(pod("b"), pod("b", phase="Failed", code=1))
    assert watch.exit() == (1, None, "job", False)


def test_what_goes_because_the_job_is_suspended_is_not_charged():
    watch = Watch().see(job(backoff_limit=0), pod("a"), job(backoff_limit=0, suspended=True), pod("a", **DELETING))
    watch.see(pod("a", phase="Failed", code=143, **DELETING))
    assert watch.exit() == (143, None, "platform", True)

    watch.see(job(backoff_limit=0), pod("b"), pod("b", phase="Failed", code=1))
    assert watch.exit() == (1, None, "job", False)


def test_a_word_of_the_pod_begins_it_before_the_api_server_knows():
    watch = Watch().see(pending("a"))

    watch.attempts.begin("uid-a", 1.5)

    assert watch.attempts.take_started() == [(FIRST, 1.5)]
    watch.see(pod("a"))
    assert watch.started == []


def test_a_kill_of_ours_is_the_faults():
    watch = Watch().see(job(), pod("a"))
    watch.attempts.note_signal(["uid-a"], "fault")

    watch.see(pod("a", phase="Failed", code=137))

    assert watch.exit() == (None, 9, "fault", True)


def test_the_end_of_a_notice_is_the_graces_and_an_exit_within_it_the_faults():
    watch = Watch().see(job(), pod("a"))
    watch.attempts.note_signal(["uid-a"], "fault")
    watch.attempts.note_signal(["uid-a"], "grace")

    watch.see(pod("a", phase="Failed", code=137))

    assert watch.exit() == (None, 9, "grace", True)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        (pod("a", phase="Failed", code=143, **DELETING), (143, None, "platform", True)),
        (pod("a", phase="Failed", code=137, deletionGracePeriodSeconds=30, **DELETING), (None, 9, "grace", True)),
        (pod("a", phase="Failed", code=143, conditions=(condition("DisruptionTarget"),)), (143, None, "platform", True)),
        (pod("a", phase="Failed", code=137), (None, 9, "job", True)),
        (pod("a", phase="Failed", state={"terminated": {"exitCode": 137, "reason": "OOMKilled"}}), (None, 9, "job", True)),
        (pod("a", phase="Failed", state={"running": {}}), (None, 9, "platform", True)),
    ],
)
def test_who_is_behind_an_end_that_is_not_ours(last, expected):
    assert Watch().see(job(), pod("a"), last).exit() == expected


def test_what_an_injection_took_away_is_its_own_and_its_grace_the_graces():
    watch = Watch().see(job(), pod("a"), pod("b"))
    watch.hurt |= {"uid-a", "uid-b"}

    watch.see(pod("a", phase="Failed", code=143, **DELETING), pod("b", phase="Failed", code=137, deletionGracePeriodSeconds=5, **DELETING))

    assert [(exited.exit_code, exited.signal, exited.cause) for exited in watch.exits()] == [(143, None, "fault"), (None, 9, "grace")]


@pytest.mark.parametrize(("code", "cause"), [(1, "job"), (75, "job"), (143, "fault"), (255, "fault")])
def test_an_exit_that_nobody_had_asked_for_is_the_jobs(code, cause):
    watch = Watch().see(job(), pod("a"))
    watch.hurt.add("uid-a")

    watch.see(pod("a", phase="Failed", code=code))

    assert watch.exit() == (code, None, cause, True)


def test_a_pod_that_is_gone_without_a_word_was_killed():
    watch = Watch().see(job(), pod("a"))
    watch.hurt.add("uid-a")

    watch.see(pod("a", **DELETING), is_deleted=True)

    assert watch.exit() == (None, 9, "fault", True)


def test_a_success_is_nobodys_doing():
    watch = Watch().see(job(), pod("a"))
    watch.attempts.note_signal(["uid-a"], "fault")

    watch.see(pod("a", phase="Succeeded", code=0))

    assert watch.exit() == (0, None, "job", False)


def test_a_pod_on_a_node_that_is_cut_off_is_over_when_its_grace_is():
    watch = Watch().see(job(), pod("a"), pod("a", deletionGracePeriodSeconds=10, **DELETING))
    assert watch.exits() == []

    watch.now_s += 15.5

    assert watch.exit() == (None, 9, "platform", True)


# ---- a Job of several hosts: an admission is an attempt -------------------------------------------------------------


def gang(*codes: int | None, phase: str = "Failed", name: str = "a", **fields: object) -> list[Object]:
    return [host(f"{name}{rank}", rank, phase="Running" if code is None else phase, code=code, **fields) for rank, code in enumerate(codes)]


def test_hosts_that_are_replaced_within_an_admission_are_the_same_attempt():
    watch = Watch(ranks=2).see(job(suspended=True), job(), *gang(None, None))
    watch.see(*gang(137, 69), *gang(None, None, name="b"))

    assert watch.started == [FIRST]
    assert watch.exits() == []
    assert watch.attempts.key_of_pod("uid-b1") == FIRST

    watch.see(*gang(0, 0, name="b", phase="Succeeded"), job(condition("Complete")))
    assert watch.exit() == (0, None, "job", False)


def test_an_admission_that_ends_in_suspension_is_over_when_its_pods_are():
    watch = Watch(ranks=2).see(job(), *gang(None, None), job(suspended=True), *gang(None, None, deletionGracePeriodSeconds=30, **DELETING))
    assert watch.exits() == []

    watch.see(*gang(143, 143, **DELETING))
    assert watch.exit() == (143, None, "platform", True)

    watch.see(job(), *gang(None, None, name="b"))
    assert watch.started == [FIRST, SECOND]


def test_a_gang_that_fails_ends_as_the_first_of_its_hosts_did():
    watch = Watch(ranks=2).see(job(), *gang(None, None))
    watch.attempts.note_signal(["uid-a1"], "fault")

    watch.see(
        host("a1", 1, phase="Failed", code=137),
        host("a0", 0, phase="Failed", code=69),
        job(condition("Failed", "True", "BackoffLimitExceeded")),
    )

    assert watch.exit() == (None, 9, "fault", False)


# ---- a RayJob: a RayCluster is an attempt ----------------------------------------------------------------------------


def test_a_ray_cluster_is_an_attempt_and_its_replaced_hosts_are_its_own():
    watch = Watch(is_ray=True).see(ray_job("Initializing", cluster="c1"), ray_pod("head", "c1", role="head"), ray_pod("w0", "c1"))
    watch.see(ray_pod("w0", "c1", phase="Failed", code=137), ray_pod("w0b", "c1"))

    assert watch.started == [FIRST]
    assert watch.exits() == []

    watch.see(ray_job("Complete", "SUCCEEDED", cluster="c1"))
    assert watch.exit() == (0, None, "job", False)


def test_a_suspended_ray_job_ends_its_attempt_with_its_pods():
    watch = Watch(is_ray=True).see(ray_pod("head", "c1", role="head"), ray_pod("w0", "c1"), ray_job("Suspending", cluster="c1"))
    assert watch.exits() == []

    watch.see(
        ray_pod("head", "c1", role="head", phase="Failed", code=0, **DELETING), ray_pod("w0", "c1", phase="Failed", code=143, **DELETING)
    )
    assert watch.exit() == (None, 15, "platform", True)

    watch.see(ray_job("Initializing", cluster="c2"), ray_pod("head2", "c2", role="head"))
    assert watch.started == [FIRST, SECOND]


def test_a_ray_job_whose_driver_failed_has_no_code_but_1():
    watch = Watch(is_ray=True).see(ray_pod("head", "c1", role="head"), ray_pod("w0", "c1"))

    watch.see(ray_job("Failed", "FAILED", cluster="c1", reason="AppFailed", message="it failed"))

    assert watch.exit() == (1, None, "job", False)


def test_a_ray_job_that_fails_for_a_lost_host_ends_as_that_host_did():
    watch = Watch(is_ray=True).see(ray_pod("head", "c1", role="head"), ray_pod("w0", "c1"))
    watch.attempts.note_signal(["uid-w0"], "fault")

    watch.see(ray_pod("w0", "c1", phase="Failed", code=137), ray_job("Failed", "FAILED", cluster="c1"))

    assert watch.exit() == (None, 9, "fault", False)


def test_a_ray_job_that_retries_has_ended_its_attempt_whatever_its_pods_still_do():
    watch = Watch(is_ray=True).see(ray_pod("head", "c1", role="head"), ray_pod("w0", "c1"), ray_job("Retrying", "FAILED", cluster="c1"))

    assert watch.exit() == (1, None, "job", True)
    watch.see(
        ray_pod("w0", "c1", phase="Failed", code=1, **DELETING), ray_job("Initializing", cluster="c2"), ray_pod("head2", "c2", role="head")
    )
    assert watch.started == [FIRST, SECOND]
    assert watch.exits() == []


def test_a_suspended_ray_job_does_not_wait_for_its_head():
    watch = Watch(is_ray=True).see(ray_pod("head", "c1", role="head"), ray_pod("w0", "c1"), ray_job("Suspending", cluster="c1"))

    watch.see(
        ray_pod("head", "c1", role="head", deletionGracePeriodSeconds=30, **DELETING),
        ray_pod("w0", "c1", phase="Failed", code=0, **DELETING),
    )

    assert watch.exit() == (None, 15, "platform", True)


def test_a_submitter_begins_no_attempt_and_belongs_to_the_newest_cluster():
    submitter = pod("s", labels={"chaos-harness/role": "submitter"})
    watch = Watch(is_ray=True).see(ray_pod("head", "c1", role="head", phase="Pending", state={"waiting": {}}), submitter)

    assert watch.started == []
    assert watch.attempts.key_of_pod("uid-s") == FIRST


def test_a_ray_cluster_that_is_deleted_is_given_up():
    watch = Watch(is_ray=True).see(ray_pod("head", "c1", role="head"), ray_pod("w0", "c1"))
    watch.attempts.see_object({"metadata": metadata("c1")}, RAY_CLUSTERS, 0, is_deleted=True)

    watch.see(ray_pod("head", "c1", role="head"), ray_pod("w0", "c1"), is_deleted=True)

    assert watch.exit() == (None, 9, "platform", True)


# ---- tasks and the execution -----------------------------------------------------------------------------------------


def test_a_task_is_over_after_its_last_attempt_and_the_execution_after_its_last_task():
    watch = Watch(tasks=2).see(job(), pod("a"))
    watch.see(job(name="job-1", task=1), pod("b", task=1), task=1)
    watch.see(pod("a", phase="Succeeded", code=0), job(condition("Complete")))
    assert watch.attempts.conclude(9.0) == []

    watch.exits()
    assert watch.attempts.conclude(9.0) == [TaskFinished(t_s=9.0, task=0, succeeded=True, attempts=1)]

    watch.see(pod("b", task=1, phase="Failed", code=1), task=1)
    watch.see(job(condition("Failed", "True", "BackoffLimitExceeded", "too often"), name="job-1", task=1), task=1)
    watch.exits()
    told = watch.attempts.conclude(10.0)
    assert told == [
        TaskFinished(t_s=10.0, task=1, succeeded=False, attempts=1, detail="BackoffLimitExceeded: too often"),
        ExecutionFinished(t_s=10.0, succeeded=1, failed=1, cancelled=0, retried=0),
    ]
    assert watch.attempts.is_finished
    assert watch.attempts.conclude(11.0) == []


def test_a_submission_that_somebody_deletes_is_a_failed_task():
    watch = Watch().see(job()).see(job(), is_deleted=True)

    assert watch.attempts.conclude(5.0)[0] == TaskFinished(t_s=5.0, task=0, succeeded=False, attempts=0, detail="jobs job-0 was deleted")


def test_what_is_stopped_was_killed_by_us_and_is_not_tried_again():
    watch = Watch().see(job(), pod("a"))

    exited = watch.attempts.finish(FIRST, 9.0, is_stopped=True)

    assert (exited.signal, exited.cause, exited.retried) == (9, "stop", False)
    with pytest.raises(LookupError, match="attempt 0 of task 0 does not run"):
        watch.attempts.finish(FIRST, 9.0)
