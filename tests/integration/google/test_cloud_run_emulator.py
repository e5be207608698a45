"""Cloud Run spoken with its unmodified clients; jobs run as processes of this machine."""

import json
import threading
import urllib.request
from datetime import timedelta

import grpc
import psutil
import pytest
from google.api_core import exceptions, operation
from google.auth.credentials import AnonymousCredentials
from google.cloud import run_v2, storage
from google.cloud.run_v2.services.executions.transports import ExecutionsGrpcTransport
from google.cloud.run_v2.services.jobs.transports import JobsGrpcTransport
from google.cloud.run_v2.services.tasks.transports import TasksGrpcTransport
from google.iam.v1 import iam_policy_pb2, policy_pb2
from google.longrunning import operations_pb2

from harness.clock import SystemClock
from harness.emulator import ApiError, Emulator, InjectedFault
from harness.emulator.project import ProjectState
from harness.emulator.run.executor import Platform

PLACE = "projects/p/locations/europe-west4"
JOB = f"{PLACE}/jobs/train"
DEADLINE_S = 60.0

State = run_v2.Condition.State
Reason = run_v2.Condition.ExecutionReason

WAITS = "trap 'echo got SIGTERM; exit 143' TERM; echo up; while :; do sleep 0.05; done"


class Clients:
    """The clients of one emulator."""

    def __init__(self, emulator, channel):
        self.emulator = emulator
        self.jobs = run_v2.JobsClient(transport=JobsGrpcTransport(channel=channel))
        self.executions = run_v2.ExecutionsClient(transport=ExecutionsGrpcTransport(channel=channel))
        self.tasks = run_v2.TasksClient(transport=TasksGrpcTransport(channel=channel))

    def create(self, script="exit 0", *, job_id="train", **fields):
        template = task_template(script, **fields.pop("task", {}))
        job = run_v2.Job(template=run_v2.ExecutionTemplate(template=template, **fields.pop("execution", {})), **fields)
        return self.jobs.create_job(parent=PLACE, job=job, job_id=job_id).result(DEADLINE_S)

    def run(self, script="exit 0", **fields):
        """Create the job and run it; returns the operation."""
        self.create(script, **fields)
        return self.jobs.run_job(name=JOB)

    def wait(self, running):
        """The operation's execution once it is over, however it ended: the service waits, not the client's poll."""
        assert self.wait_operation(running.operation.name, seconds=50).done
        return self.executions.get_execution(name=running.metadata.name)

    def wait_operation(self, name, **timeout):
        """What ``WaitOperation`` answers: this version of the client returns its bytes as they are."""
        answer = self.jobs.wait_operation({"name": name, "timeout": timeout})
        return operations_pb2.Operation.FromString(answer) if isinstance(answer, bytes) else answer

    def until_said(self, text, count=1):
        """Go on once a line has been logged so often."""
        clock = SystemClock()
        until_s = clock.monotonic_s() + DEADLINE_S
        while sum(text in found for found in self.texts()) < count:
            assert clock.monotonic_s() < until_s, f"{text!r} not said: {self.texts()}"
            clock.sleep(0.01)

    def texts(self):
        """What was logged as text, in order."""
        return [str(entry.get("textPayload", "")) for entry in self.entries()]

    def entries(self):
        return list(LOGS[self.emulator])

    def control(self, verb, path, document=None):
        """Speak with the emulator itself."""
        data = None if document is None else json.dumps(document).encode()
        request = urllib.request.Request(f"http://{self.emulator.endpoints.http}/_emulator/v1/{path}", data=data, method=verb)
        with urllib.request.urlopen(request, timeout=DEADLINE_S) as response:
            return json.load(response)


LOGS = {}


def task_template(script, **fields):
    container = {"image": "image", "command": ["sh", "-c", script], **fields.pop("container", {})}
    return run_v2.TaskTemplate(containers=[container], **{"max_retries": 0, **fields})


def open_emulator(root, **fields):
    """An emulator whose entries are kept in order beside its log."""
    emulator = Emulator(root, projects=fields.pop("projects", [ProjectState(name="p", number=7)]), buckets=("bucket",), **fields)
    entries = LOGS[emulator] = []
    append = emulator.log.append
    emulator.log.append = lambda given: (entries.extend(found := list(given)), append(found))[1]
    return emulator


def below():
    """The processes below this one: other tests, too, may have left some that have ended."""
    return set(psutil.Process().children(recursive=True))


@pytest.fixture
def emulator(tmp_path):
    before, processes = set(threading.enumerate()), below()
    with open_emulator(tmp_path / "emulator", platform=Platform(grace_s=0.5)) as emulator:
        yield emulator
    LOGS.pop(emulator)
    assert below() <= processes
    assert [thread for thread in threading.enumerate() if thread not in before and thread.name.startswith("emulator")] == []


@pytest.fixture
def clients(emulator):
    with grpc.insecure_channel(emulator.endpoints.grpc) as channel:
        yield Clients(emulator, channel)


def completed(message):
    return next(found for found in message.conditions if found.type_ == "Completed")


# ---- jobs --------------------------------------------------------------------------------------------------------------------


def test_a_job_is_created_read_changed_and_deleted(clients):
    made = clients.create(labels={"team": "a"})
    assert (made.name, made.generation, made.template.task_count, made.reconciling) == (JOB, 1, 1, False)
    assert made.terminal_condition.state == State.CONDITION_SUCCEEDED
    assert clients.jobs.get_job(name="projects/7/locations/europe-west4/jobs/train") == made

    made.labels["team"] = "b"
    labelled = clients.jobs.update_job(job=made).result(DEADLINE_S)
    labelled.template.task_count = 2
    grown = clients.jobs.update_job(job=labelled).result(DEADLINE_S)
    assert (labelled.generation, grown.generation, grown.uid, grown.labels["team"]) == (1, 2, made.uid, "b")
    assert len({made.etag, labelled.etag, grown.etag}) == 3

    gone = clients.jobs.delete_job(name=JOB).result(DEADLINE_S)
    assert gone.delete_time is not None
    with pytest.raises(exceptions.NotFound, match="was not found"):
        clients.jobs.get_job(name=JOB)


def test_one_who_has_seen_another_version_changes_and_runs_and_deletes_nothing(clients):
    made = clients.create()
    stale = '"another"'

    for call in (
        lambda: clients.jobs.update_job(job=run_v2.Job(name=JOB, template=made.template, etag=stale)),
        lambda: clients.jobs.run_job(request={"name": JOB, "etag": stale}),
        lambda: clients.jobs.delete_job(request={"name": JOB, "etag": stale}),
    ):
        with pytest.raises(exceptions.Aborted, match="etag"):
            call()
    assert clients.jobs.get_job(name=JOB) == made


def test_what_only_validates_is_no_write_and_leaves_nothing(clients):
    template = run_v2.ExecutionTemplate(template=task_template("exit 0"))
    shown = clients.jobs.create_job(request={"parent": PLACE, "job": {"template": template}, "job_id": "train", "validate_only": True})
    assert shown.result(DEADLINE_S).template.template.timeout == timedelta(seconds=600)
    assert list(clients.jobs.list_jobs(parent=PLACE)) == []
    assert clients.emulator.world.calls.writes() == ()

    clients.create()
    assert clients.jobs.run_job(request={"name": JOB, "validate_only": True}).result(DEADLINE_S).task_count == 1
    assert list(clients.executions.list_executions(parent=JOB)) == []
    assert [call.method for call in clients.emulator.world.calls.writes()] == ["google.cloud.run.v2.Jobs/CreateJob"]
    assert not (clients.emulator.world.root / "executions").exists()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda jobs: jobs.create_job(parent=PLACE, job=run_v2.Job(), job_id="other"), exceptions.InvalidArgument),
        (
            lambda jobs: jobs.create_job(parent=PLACE, job={"template": {"template": task_template("")}}, job_id="Bad"),
            exceptions.InvalidArgument,
        ),
        (
            lambda jobs: jobs.create_job(parent=PLACE, job={"template": {"template": task_template("")}}, job_id="train"),
            exceptions.AlreadyExists,
        ),
        (
            lambda jobs: jobs.create_job(parent="projects/q/locations/europe-west4", job=run_v2.Job(), job_id="x"),
            exceptions.PermissionDenied,
        ),
        (lambda jobs: jobs.get_job(name="projects/q/locations/europe-west4/jobs/train"), exceptions.PermissionDenied),
        (lambda jobs: jobs.get_job(name="train"), exceptions.PermissionDenied),
        (lambda jobs: jobs.get_job(name=f"{PLACE}/jobs/other"), exceptions.NotFound),
        (lambda jobs: jobs.run_job(name=f"{PLACE}/jobs/other"), exceptions.NotFound),
        (lambda jobs: jobs.update_job(job={"name": f"{PLACE}/jobs/other"}), exceptions.NotFound),
        (lambda jobs: jobs.get_operation({"name": f"{PLACE}/operations/other"}), exceptions.NotFound),
        (lambda jobs: jobs.list_jobs(request={"parent": PLACE, "page_token": "none"}), exceptions.InvalidArgument),
    ],
)
def test_errors_are_those_of_the_service(clients, call, error):
    clients.create()
    with pytest.raises(error):
        call(clients.jobs)


def test_a_missing_permission_is_named(clients):
    clients.create()
    clients.control("POST", "projects", {"name": "p", "granted": ["run.jobs.get"]})

    with pytest.raises(exceptions.PermissionDenied, match=r"run\.jobs\.run") as caught:
        clients.jobs.run_job(name=JOB)
    assert (caught.value.reason, caught.value.metadata["permission"]) == ("IAM_PERMISSION_DENIED", "run.jobs.run")
    asked = iam_policy_pb2.TestIamPermissionsRequest(resource=JOB, permissions=["run.jobs.get", "run.jobs.run"])
    assert list(clients.jobs.test_iam_permissions(asked).permissions) == ["run.jobs.get"]
    asked.resource = f"{PLACE}/jobs/other"
    assert list(clients.jobs.test_iam_permissions(asked).permissions) == []


def test_a_policy_is_replaced_by_one_who_has_read_it(clients):
    clients.create()
    binding = policy_pb2.Binding(role="roles/run.invoker", members=["user:a@example.com"])
    first = clients.jobs.set_iam_policy({"resource": JOB, "policy": policy_pb2.Policy(bindings=[binding])})
    second = clients.jobs.set_iam_policy({"resource": JOB, "policy": policy_pb2.Policy(etag=first.etag)})

    assert clients.jobs.get_iam_policy({"resource": JOB}) == second
    with pytest.raises(exceptions.Aborted, match="concurrent policy changes"):
        clients.jobs.set_iam_policy({"resource": JOB, "policy": policy_pb2.Policy(etag=first.etag)})


def test_lists_come_in_pages_and_also_when_one_is_cut_short(clients):
    for number in range(5):
        clients.create(job_id=f"job-{number}")
    clients.emulator.world.injections.add(InjectedFault(method="google.cloud.run.v2.Jobs/ListJobs", is_partial=True))

    pages = list(clients.jobs.list_jobs(request={"parent": PLACE, "page_size": 3}).pages)

    assert [len(page.jobs) for page in pages] == [1, 3, 1]
    assert [job.name[-1] for page in pages for job in page.jobs] == ["0", "1", "2", "3", "4"]


def test_quotas_of_jobs_and_gpus_are_held(clients):
    clients.control(
        "POST", "projects", {"name": "p", "quotas": {"NvidiaL4GpuAllocNoZonalRedundancyPerProjectRegion": 1, "JobsPerProjectRegion": 2}}
    )
    gpu = {
        "node_selector": {"accelerator": "nvidia-l4"},
        "gpu_zonal_redundancy_disabled": True,
        "container": {"resources": {"limits": {"nvidia.com/gpu": "1"}}},
    }
    with pytest.raises(exceptions.ResourceExhausted, match=r"Quota violated:\nNvidiaL4GpuAlloc.* requested: 2 allowed: 1"):
        clients.create(task=gpu, execution={"task_count": 2})
    running = clients.run(WAITS, task=gpu)
    with pytest.raises(exceptions.ResourceExhausted, match="requested: 2 allowed: 1"):
        clients.jobs.run_job(name=JOB)
    clients.executions.cancel_execution(name=running.metadata.name)
    clients.wait(running)
    clients.create(job_id="second")
    with pytest.raises(exceptions.ResourceExhausted, match="JobsPerProjectRegion"):
        clients.create(job_id="third")


# ---- executions --------------------------------------------------------------------------------------------------------------


def test_a_job_runs_and_its_operation_ends_with_the_execution(clients):
    running = clients.run(
        'echo "task $CLOUD_RUN_TASK_INDEX of $CLOUD_RUN_TASK_COUNT"; echo "in $CLOUD_RUN_EXECUTION"',
        execution={"task_count": 3, "parallelism": 2},
    )
    assert running.metadata.name.startswith(f"{JOB}/executions/train-")

    execution = running.result(DEADLINE_S)

    assert (execution.succeeded_count, execution.failed_count, execution.running_count) == (3, 0, 0)
    assert completed(execution).state == State.CONDITION_SUCCEEDED
    assert clients.executions.get_execution(name=execution.name) == execution
    assert sorted(text for text in clients.texts() if text.startswith("task")) == [f"task {index} of 3" for index in range(3)]
    assert clients.texts().count(f"in {execution.name.rpartition('/')[2]}") == 3
    tasks = list(clients.tasks.list_tasks(parent=execution.name))
    assert [task.index for task in tasks] == [0, 1, 2]
    assert clients.tasks.get_task(name=tasks[1].name) == tasks[1]
    job = clients.jobs.get_job(name=JOB)
    assert (job.execution_count, job.latest_created_execution.name) == (1, execution.name.rpartition("/")[2])
    assert job.latest_created_execution.completion_status == run_v2.ExecutionReference.CompletionStatus.EXECUTION_SUCCEEDED


def test_a_task_that_exits_1_is_tried_again_and_then_succeeds(clients):
    execution = clients.wait(clients.run("exit $((1 - CLOUD_RUN_TASK_ATTEMPT))", task={"max_retries": 1}))
    (task,) = clients.tasks.list_tasks(parent=execution.name)

    assert (execution.succeeded_count, execution.retried_count, task.retried) == (1, 1, 1)
    assert clients.texts()[:2] == ["Container called exit(1).", "Container called exit(0)."]


def test_an_execution_that_fails_is_an_error_of_its_operation(clients):
    running = clients.run("exit 3", task={"max_retries": 1})

    with pytest.raises(exceptions.GoogleAPICallError, match=r"Execution train-.{5} has failed to complete, 0/1 tasks were a success\."):
        running.result(DEADLINE_S)

    assert running.operation.error.code == 10
    execution = clients.executions.get_execution(name=running.metadata.name)
    (task,) = clients.tasks.list_tasks(parent=execution.name)
    assert (execution.failed_count, completed(execution).execution_reason) == (1, Reason.NON_ZERO_EXIT_CODE)
    assert (task.retried, task.last_attempt_result.exit_code) == (1, 3)
    assert clients.entries()[-1]["protoPayload"]["status"]["code"] == 10


def test_a_timeout_is_for_each_attempt(clients):
    execution = clients.wait(clients.run("trap '' TERM; sleep 60", task={"timeout": timedelta(seconds=1), "max_retries": 1}))
    (task,) = clients.tasks.list_tasks(parent=execution.name)

    assert (execution.failed_count, task.retried, task.last_attempt_result.term_signal) == (1, 1, 9)
    assert completed(task).message == "The configured timeout was reached."
    line = "Terminating task because it has reached the maximum timeout of 1 seconds."
    assert clients.texts().count(line) == 2


def test_a_cancel_ends_all_and_tries_nothing_again(clients):
    running = clients.run(WAITS, task={"max_retries": 3}, execution={"task_count": 3, "parallelism": 2})
    clients.until_said("up", 2)

    cancelled = clients.executions.cancel_execution(name=running.metadata.name)

    execution = clients.wait(running)
    assert (execution.cancelled_count, execution.succeeded_count, execution.failed_count) == (3, 0, 0)
    assert completed(execution).execution_reason == Reason.CANCELLED
    assert clients.texts().count("got SIGTERM") == 2
    assert [task.retried for task in clients.tasks.list_tasks(parent=execution.name)] == [0, 0, 0]
    assert cancelled.result(DEADLINE_S) == execution
    with pytest.raises(exceptions.Cancelled, match="has been cancelled"):
        running.result(DEADLINE_S)
    with pytest.raises(exceptions.FailedPrecondition, match="already completed"):
        clients.executions.cancel_execution(name=execution.name)


def test_maintenance_takes_the_instance_and_the_platform_tries_again(clients):
    running = clients.run(f"[ $CLOUD_RUN_TASK_ATTEMPT = 1 ] && exit 0; {WAITS}", task={"max_retries": 3})
    clients.until_said("up")

    answer = clients.control("POST", "maintenance", {"execution": running.metadata.name})

    execution = clients.wait(running)
    assert (answer["attempt"], answer["processes"]) == (0, 1)
    assert (execution.succeeded_count, execution.retried_count) == (1, 1)
    assert clients.texts()[:5] == [
        "up",
        "got SIGTERM",
        "Container instance preemption initiated by the platform due to underlying hardware maintenance.",
        "Container called exit(143).",
        "Container called exit(0).",
    ]
    assert clients.entries()[2]["labels"]["reason"] == "INSTANCE_PREEMPTED"
    with pytest.raises(urllib.error.HTTPError) as caught:
        clients.control("POST", "maintenance", {"execution": execution.name})
    assert caught.value.code == 400
    caught.value.close()


def test_a_job_that_ignores_maintenance_is_killed_when_the_grace_is_over(clients):
    running = clients.run("trap '' TERM; echo up; sleep 60")
    clients.until_said("up")
    clients.control("POST", "maintenance", {"execution": running.metadata.name.rpartition("/")[2], "task": 0})

    (task,) = clients.tasks.list_tasks(parent=clients.wait(running).name)

    assert task.last_attempt_result.term_signal == 9
    assert "Container terminated on signal 9." in clients.texts()


def test_a_bucket_is_mounted_so_that_a_job_writes_objects(clients):
    volume = {"name": "v", "gcs": {"bucket": "bucket", "mount_options": ["only-dir=runs/1"]}}
    mount = {"env": [{"name": "OUT", "value": "/checkpoints/step"}], "volume_mounts": [{"name": "v", "mount_path": "/checkpoints"}]}
    script = 'echo 7 > "$OUT"; cat /checkpoints/step; echo "$CHECKPOINT_DIR"'

    execution = clients.wait(clients.run(script, task={"volumes": [volume], "container": mount}))

    assert execution.succeeded_count == 1
    assert (clients.emulator.buckets.directory("bucket") / "runs/1/step").read_text() == "7\n"
    assert clients.texts()[:2] == ["7", ""], "what the local target adds to the environment is not Cloud Run's"


def test_a_directory_that_a_job_makes_is_an_empty_object_and_goes_with_it(clients):
    volume = {"name": "v", "gcs": {"bucket": "bucket", "mount_options": ["only-dir=runs/1"]}}
    mount = {"volume_mounts": [{"name": "v", "mount_path": "/checkpoints"}]}
    script = "mkdir /checkpoints/5 && echo x > /checkpoints/5/state; ls /checkpoints"
    clients.create(script, task={"volumes": [volume], "container": mount})
    objects = {"api_endpoint": f"http://{clients.emulator.endpoints.http}"}

    with storage.Client("p", credentials=AnonymousCredentials(), client_options=objects) as client:
        clients.wait(clients.jobs.run_job(name=JOB))
        blobs = list(client.list_blobs("bucket"))
        assert [(blob.name, blob.size) for blob in blobs] == [("runs/1/5/", 0), ("runs/1/5/state", 2)]
        client.bucket("bucket").delete_blobs(blobs)
        assert list(client.list_blobs("bucket")) == []

    assert list((clients.emulator.buckets.directory("bucket") / "runs/1").iterdir()) == []


def test_overrides_are_for_one_execution(clients):
    clients.create('echo "$1 $A"', task={"container": {"args": ["x", "job"]}})
    overrides = {"task_count": 2, "container_overrides": [{"args": ["x", "override"], "env": [{"name": "A", "value": "1"}]}]}

    for given in ({"name": JOB, "overrides": overrides}, {"name": JOB}):
        clients.wait(clients.jobs.run_job(request=given))

    assert [text for text in clients.texts() if "Container" not in text and text] == ["override 1", "override 1", "job "]


def test_a_program_that_is_not_there_fails_the_execution_and_says_so(clients):
    execution = clients.wait(clients.run(task={"container": {"command": ["no-such-program"]}, "max_retries": 3}))

    assert execution.failed_count == 1
    assert "no-such-program" in completed(execution).message
    assert any("no-such-program" in text for text in clients.texts())


def test_what_runs_is_not_deleted_and_what_has_run_goes_with_its_job(clients):
    running = clients.run(f'[ "$LEAVE" ] && exit 0; {WAITS}')
    clients.until_said("up")
    for call in (lambda: clients.executions.delete_execution(name=running.metadata.name), lambda: clients.jobs.delete_job(name=JOB)):
        with pytest.raises(exceptions.FailedPrecondition):
            call()
    clients.executions.cancel_execution(name=running.metadata.name)
    clients.wait(running)
    overrides = {"container_overrides": [{"env": [{"name": "LEAVE", "value": "1"}]}]}
    second = clients.wait(clients.jobs.run_job(request={"name": JOB, "overrides": overrides}))

    assert [found.name for found in clients.executions.list_executions(parent=JOB)] == [second.name, running.metadata.name]
    clients.executions.delete_execution(name=running.metadata.name).result(DEADLINE_S)
    assert [found.name for found in clients.executions.list_executions(parent=f"{PLACE}/jobs/-")] == [second.name]
    clients.jobs.delete_job(name=JOB).result(DEADLINE_S)
    with pytest.raises(exceptions.NotFound):
        clients.executions.get_execution(name=second.name)


# ---- operations --------------------------------------------------------------------------------------------------------------


def test_an_operation_is_polled_waited_for_listed_and_forgotten(clients):
    running = clients.run(WAITS)
    clients.until_said("up")
    name = running.operation.name

    assert not clients.jobs.get_operation({"name": name}).done
    assert not clients.wait_operation(name, nanos=1000).done
    assert not running.done()
    assert running.metadata.running_count == 1
    assert name in [found.name for found in clients.jobs.list_operations({"name": PLACE}).operations]
    with pytest.raises(exceptions.MethodNotImplemented):
        running.cancel()
    clients.executions.cancel_execution(name=running.metadata.name)
    assert clients.wait_operation(name, seconds=50).done
    clients.jobs.delete_operation({"name": name})
    with pytest.raises(exceptions.NotFound):
        clients.jobs.get_operation({"name": name})


# ---- faults of the service ---------------------------------------------------------------------------------------------------


def test_an_injected_error_is_what_the_client_sees_once(clients):
    clients.create()
    error = ApiError("RESOURCE_EXHAUSTED", "slow down", reason="RATE_LIMIT_EXCEEDED", retry_after_s=3)
    clients.emulator.world.injections.add(InjectedFault(method="google.cloud.run.v2.Jobs/RunJob", error=error))

    with pytest.raises(exceptions.ResourceExhausted, match="slow down") as caught:
        clients.jobs.run_job(name=JOB)
    assert caught.value.reason == "RATE_LIMIT_EXCEEDED"
    assert any("retry_delay" in str(detail) for detail in caught.value.details)
    assert list(clients.executions.list_executions(parent=JOB)) == []
    assert clients.wait(clients.jobs.run_job(name=JOB)).succeeded_count == 1


@pytest.mark.parametrize(("drop", "executions"), [("before", 0), ("after", 1)])
def test_a_connection_cut_before_or_after_the_work_looks_alike_to_the_client(clients, drop, executions):
    clients.create()
    clients.control("POST", "injections", {"method": "google.cloud.run.v2.Jobs/RunJob", "drop": drop})

    with pytest.raises(exceptions.ServiceUnavailable, match="Connection reset"):
        clients.jobs.run_job(name=JOB, retry=None)

    assert len(list(clients.executions.list_executions(parent=JOB))) == executions
    assert clients.control("GET", "injections")["injections"][0]["matched"] == 1
    assert clients.control("GET", "calls?writes=true")["calls"][-1]["outcome"] == "dropped"


def test_a_deadline_is_kept_by_the_client_when_the_service_is_slow(clients):
    clients.create()
    clients.emulator.world.injections.add(InjectedFault(method="google.cloud.run.v2.Jobs/GetJob", times=0, delay_s=600))

    with pytest.raises(exceptions.DeadlineExceeded):
        clients.jobs.get_job(name=JOB, timeout=0.2, retry=None)


def test_an_expired_token_is_refused(clients):
    clients.create()
    clients.control("POST", "tokens", {"token": "old"})

    with pytest.raises(exceptions.Unauthenticated):
        clients.jobs.get_job(name=JOB, metadata=[("authorization", "Bearer old")])
    assert clients.jobs.get_job(name=JOB, metadata=[("authorization", "Bearer new")]).name == JOB


def test_the_state_tells_projects_executions_and_operations(clients):
    execution = clients.wait(clients.run())
    state = clients.control("GET", "state")

    assert state["projects"] == [{"name": "p", "number": 7, "granted": None, "quotas": {}}]
    assert state["executions"] == [{"name": execution.name, "is_over": True, "tasks": [{"index": 0, "state": "succeeded", "attempts": 1}]}]
    assert {found["is_done"] for found in state["operations"]} == {True}


# ---- the end -----------------------------------------------------------------------------------------------------------------


def test_closing_ends_what_runs_and_who_waits(tmp_path):
    before, emulator = below(), open_emulator(tmp_path)
    with grpc.insecure_channel(emulator.endpoints.grpc) as channel:
        clients = Clients(emulator, channel)
        running = clients.run("trap '' TERM; setsid sleep 60 & echo up; sleep 60", execution={"task_count": 2})
        clients.until_said("up", 2)
        waiting = threading.Thread(target=lambda: clients.jobs.wait_operation({"name": running.operation.name}, retry=None))
        waiting.start()
        emulator.close()
        waiting.join(DEADLINE_S)
        assert not waiting.is_alive()
    emulator.close()
    LOGS.pop(emulator)

    assert below() <= before
    assert isinstance(running, operation.Operation)
    assert isinstance(running.operation, operations_pb2.Operation)


def test_many_executions_run_side_by_side(clients):
    clients.create("echo up; sleep 0.2; exit 0", execution={"task_count": 2})
    operations = [clients.jobs.run_job(name=JOB) for _ in range(6)]

    executions = [clients.wait(running) for running in operations]

    assert [execution.succeeded_count for execution in executions] == [2] * 6
    assert len({execution.name for execution in executions}) == 6
    names = {entry["labels"]["run.googleapis.com/execution_name"] for entry in clients.entries()}
    assert names == {execution.name.rpartition("/")[2] for execution in executions}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_defect_of_the_emulator_ends_the_execution_and_leaves_nothing_running(clients):
    def fail(entries):
        raise RuntimeError("a defect")

    before = below()
    clients.emulator.log.append = fail
    execution = clients.wait(clients.run("echo up; sleep 60"))

    assert completed(execution).message.endswith("the emulator has failed")
    assert below() <= before
