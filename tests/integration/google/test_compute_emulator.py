"""The emulator's Compute Engine, spoken with the unmodified clients of Google, on a clock that only the test moves."""

import json
import threading
import urllib.request
from collections.abc import Iterator

import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import compute_v1
from google.cloud.compute_v1.services.instances.transports import InstancesRestTransport
from google.cloud.compute_v1.services.projects.transports import ProjectsRestTransport
from google.cloud.compute_v1.services.regions.transports import RegionsRestTransport
from google.cloud.compute_v1.services.zone_operations.transports import ZoneOperationsRestTransport

from harness.clock import ManualClock
from harness.emulator.compute.courses import Durations
from harness.emulator.compute.service import ComputeService
from harness.emulator.operations import Operations
from harness.emulator.project import Projects, ProjectState
from harness.emulator.wire.servers import Servers
from harness.emulator.world import World

PROJECT, ZONE, REGION = "compute-project", "us-central1-a", "us-central1"
PLACE = {"project": PROJECT, "zone": ZONE}
DURATIONS = Durations(provisioning_s=10, staging_s=10, stopping_s=10, notice_s=100, maintenance_s=50, reset_s=5)
STOCKOUT = (
    f"The zone 'projects/{PROJECT}/zones/{ZONE}' does not have enough resources available to fulfill the request. "
    "Try a different zone, or try again later."
)
DONE = compute_v1.Operation.Status.DONE


class KeptLog:
    def __init__(self):
        self.entries = []

    def append(self, entries):
        self.entries += entries


class NoBuckets:
    def mount(self, bucket, below=""):
        raise AssertionError("compute has no buckets")


class Bench:
    """An emulator, its clock, and clients."""

    def __init__(self, tmp_path):
        self.clock = ManualClock()
        self.project = ProjectState(name=PROJECT, number=77)
        self.log = KeptLog()
        self.world = World(
            clock=self.clock,
            root=tmp_path,
            projects=Projects([self.project]),
            log=self.log,
            buckets=NoBuckets(),
            operations=Operations(self.clock),
        )
        self.service = ComputeService(self.world, DURATIONS)

    def connect(self, address):
        self.address = address
        options = {"host": address, "credentials": AnonymousCredentials(), "url_scheme": "http"}
        self.instances = compute_v1.InstancesClient(transport=InstancesRestTransport(**options))
        self.operations = compute_v1.ZoneOperationsClient(transport=ZoneOperationsRestTransport(**options))
        self.regions = compute_v1.RegionsClient(transport=RegionsRestTransport(**options))
        self.projects = compute_v1.ProjectsClient(transport=ProjectsRestTransport(**options))

    def insert(self, name="one", machine_type="n2-standard-4", **fields):
        resource = compute_v1.Instance(name=name, machine_type=f"zones/{ZONE}/machineTypes/{machine_type}", **fields)
        return self.instances.insert_unary(**PLACE, instance_resource=resource)

    def run(self, name="one", **fields):
        """Make an instance and let it start."""
        self.insert(name, **fields)
        self.clock.advance(20)

    def status(self, name="one"):
        return self.instances.get(**PLACE, instance=name).status

    def refreshed(self, operation):
        return self.operations.get(**PLACE, operation=operation.name)

    def control(self, path, body=None):
        request = urllib.request.Request(
            f"http://{self.address}/_emulator/v1/compute/{path}", data=json.dumps(body or {}).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status


@pytest.fixture
def bench(tmp_path) -> Iterator[Bench]:
    made = Bench(tmp_path)
    with Servers(made.world, [made.service]) as servers:
        made.connect(servers.endpoints.http)
        yield made
        for client in (made.instances, made.operations, made.regions, made.projects):
            client.transport.close()


def test_an_instance_is_made_in_the_stages_of_real_ones(bench):
    operation = bench.insert(labels={"harness-chaos": "allowed"})

    assert (operation.operation_type, operation.status) == ("insert", compute_v1.Operation.Status.RUNNING)
    assert bench.status() == "PROVISIONING"
    bench.clock.advance(10)
    assert bench.status() == "STAGING"
    assert bench.refreshed(operation).status != DONE
    bench.clock.advance(10)
    assert bench.status() == "RUNNING"
    done = bench.refreshed(operation)
    assert (done.status, done.progress, done.http_error_status_code) == (DONE, 100, 0)
    found = bench.instances.get(**PLACE, instance="one")
    assert found.labels == {"harness-chaos": "allowed"}
    assert found.machine_type.endswith(f"/zones/{ZONE}/machineTypes/n2-standard-4")
    assert done.target_id == found.id
    assert done.target_link == found.self_link


def test_instances_are_listed_by_zone_filtered_in_pages_and_over_all_zones(bench):
    for name in ("one", "two", "three"):
        bench.insert(name, labels={"harness-run": name})
    other = {"project": PROJECT, "zone": "us-east5-b"}
    resource = compute_v1.Instance(name="far", machine_type="zones/us-east5-b/machineTypes/n2-standard-4")
    bench.instances.insert_unary(**other, instance_resource=resource)

    paged = compute_v1.ListInstancesRequest(**PLACE, max_results=1)
    assert [found.name for found in bench.instances.list(paged)] == ["one", "three", "two"]
    filtered = compute_v1.ListInstancesRequest(**PLACE, filter="labels.harness-run = two AND status != RUNNING")
    assert [found.name for found in bench.instances.list(filtered)] == ["two"]
    zones = {zone: [found.name for found in scoped.instances] for zone, scoped in bench.instances.aggregated_list(project=PROJECT)}
    assert zones == {f"zones/{ZONE}": ["one", "three", "two"], "zones/us-east5-b": ["far"]}
    with pytest.raises(exceptions.BadRequest, match="filter"):
        list(bench.instances.list(compute_v1.ListInstancesRequest(**PLACE, filter="name = one OR name = two")))


def test_an_instance_is_stopped_started_reset_and_deleted(bench):
    bench.run()
    stopping = bench.instances.stop_unary(**PLACE, instance="one")
    assert bench.status() == "STOPPING"
    bench.clock.advance(10)
    assert bench.status() == "TERMINATED"
    assert bench.refreshed(stopping).status == DONE
    with pytest.raises(exceptions.BadRequest, match="is not ready"):
        bench.instances.reset_unary(**PLACE, instance="one")
    bench.instances.start_unary(**PLACE, instance="one")
    bench.clock.advance(20)
    assert bench.status() == "RUNNING"
    resetting = bench.instances.reset_unary(**PLACE, instance="one")
    assert bench.refreshed(resetting).status != DONE
    bench.clock.advance(5)
    assert bench.refreshed(resetting).status == DONE
    bench.instances.delete_unary(**PLACE, instance="one")
    bench.clock.advance(10)
    with pytest.raises(exceptions.NotFound, match=f"The resource 'projects/{PROJECT}/zones/{ZONE}/instances/one' was not found"):
        bench.status()


def test_what_cannot_be_is_refused_as_google_refuses_it(bench):
    bench.run()
    with pytest.raises(exceptions.Conflict, match="already exists"):
        bench.insert()
    with pytest.raises(exceptions.BadRequest, match=r"resource\.name"):
        bench.insert("Not_A_Name")
    with pytest.raises(exceptions.Forbidden, match=r"Required 'compute\.instances\.get' permission"):
        bench.instances.get(project="another", zone=ZONE, instance="one")
    with pytest.raises(exceptions.BadRequest, match="zone"):
        bench.instances.get(project=PROJECT, zone="nowhere", instance="one")
    with pytest.raises(exceptions.NotFound):
        bench.operations.get(**PLACE, operation="operation-none")
    bench.run("kept", deletion_protection=True)
    with pytest.raises(exceptions.BadRequest, match="protected against deletion"):
        bench.instances.delete_unary(**PLACE, instance="kept")


def test_the_same_request_twice_is_done_once(bench):
    resource = compute_v1.Instance(name="one", machine_type=f"zones/{ZONE}/machineTypes/n2-standard-4")
    request = compute_v1.InsertInstanceRequest(**PLACE, instance_resource=resource, request_id="11111111-2222-3333-4444-555555555555")

    assert bench.instances.insert_unary(request).name == bench.instances.insert_unary(request).name


def test_labels_change_only_for_who_has_seen_them(bench):
    bench.run(labels={"a": "1"})
    seen = bench.instances.get(**PLACE, instance="one")
    wanted = compute_v1.InstancesSetLabelsRequest(labels={"a": "2"}, label_fingerprint=seen.label_fingerprint)

    bench.instances.set_labels_unary(**PLACE, instance="one", instances_set_labels_request_resource=wanted)

    assert bench.instances.get(**PLACE, instance="one").labels == {"a": "2"}
    with pytest.raises(exceptions.PreconditionFailed, match="Labels fingerprint"):
        bench.instances.set_labels_unary(**PLACE, instance="one", instances_set_labels_request_resource=wanted)


def maintenance_of(bench, name="one"):
    found = bench.instances.get(**PLACE, instance=name)
    return found.status, found.resource_status.upcoming_maintenance.maintenance_status


def test_a_maintenance_is_announced_ends_a_gpu_instance_and_starts_it_again(bench):
    bench.run(machine_type="g2-standard-4")
    operation = bench.instances.simulate_maintenance_event_unary(**PLACE, instance="one")

    course = [maintenance_of(bench)]
    for seconds in (100, 10, 50, 10, 10):
        bench.clock.advance(seconds)
        course.append(maintenance_of(bench))

    assert course == [
        ("RUNNING", "PENDING"),
        ("STOPPING", "ONGOING"),
        ("TERMINATED", "ONGOING"),
        ("PROVISIONING", ""),
        ("STAGING", ""),
        ("RUNNING", ""),
    ]
    assert bench.refreshed(operation).status == DONE
    kinds = [found.operation_type for found in bench.operations.list(**PLACE)]
    assert kinds.count("compute.instances.terminateOnHostMaintenance") == 1
    assert [entry["protoPayload"]["methodName"] for entry in bench.log.entries] == [
        "compute.instances.terminateOnHostMaintenance",
        "compute.instances.automaticRestart",
    ]


def test_a_maintenance_moves_an_instance_without_accelerators_alive(bench):
    bench.run()
    bench.instances.simulate_maintenance_event_unary(**PLACE, instance="one")

    assert maintenance_of(bench) == ("RUNNING", "PENDING")
    bench.clock.advance(100)
    assert maintenance_of(bench) == ("RUNNING", "ONGOING")
    bench.clock.advance(50)
    assert maintenance_of(bench) == ("RUNNING", "")


def test_an_instance_that_shall_not_be_restarted_stays_ended(bench):
    bench.run(machine_type="g2-standard-4", scheduling=compute_v1.Scheduling(automatic_restart=False))
    bench.instances.simulate_maintenance_event_unary(**PLACE, instance="one")
    bench.clock.advance(1000)

    assert maintenance_of(bench) == ("TERMINATED", "")


def test_what_the_platform_does_is_in_the_log_though_nobody_looked_at_the_instance(bench):
    bench.run(machine_type="g2-standard-4")
    bench.instances.simulate_maintenance_event_unary(**PLACE, instance="one")
    bench.clock.advance(100)
    list(bench.operations.list(**PLACE))

    assert [entry["protoPayload"]["methodName"] for entry in bench.log.entries] == ["compute.instances.terminateOnHostMaintenance"]


def test_a_zone_without_machines_fails_the_operation_and_the_instance_is_gone(bench):
    bench.control(f"zones/{ZONE}/stock", {"available": False})
    operation = bench.insert()
    assert bench.status() == "PROVISIONING"
    bench.clock.advance(10)

    failed = bench.refreshed(operation)

    assert (failed.status, failed.http_error_status_code) == (DONE, 503)
    assert [(error.code, error.message) for error in failed.error.errors] == [
        (
            "ZONE_RESOURCE_POOL_EXHAUSTED",
            STOCKOUT,
        )
    ]
    with pytest.raises(exceptions.NotFound):
        bench.status()
    bench.control(f"zones/{ZONE}/stock", {"available": True})
    bench.run()
    assert bench.status() == "RUNNING"


def test_a_restart_after_maintenance_in_a_zone_without_machines_does_not_come(bench):
    bench.run(machine_type="g2-standard-4")
    bench.instances.simulate_maintenance_event_unary(**PLACE, instance="one")
    bench.control(f"zones/{ZONE}/stock", {"available": False})
    bench.clock.advance(1000)

    assert bench.status() == "TERMINATED"
    starting = bench.instances.start_unary(**PLACE, instance="one")
    bench.clock.advance(10)
    assert bench.refreshed(starting).error.errors[0].code == "ZONE_RESOURCE_POOL_EXHAUSTED"
    assert bench.status() == "TERMINATED"


def test_a_quota_fails_the_operation_with_its_limit_and_regions_show_it(bench):
    bench.project.quotas |= {"NVIDIA_L4_GPUS": 1.0, "CPUS": 100.0}
    bench.run(machine_type="g2-standard-4")
    operation = bench.insert("two", machine_type="g2-standard-4")
    bench.clock.advance(20)

    failed = bench.refreshed(operation)

    assert failed.http_error_status_code == 403
    assert [(error.code, error.message) for error in failed.error.errors] == [
        ("QUOTA_EXCEEDED", "Quota 'NVIDIA_L4_GPUS' exceeded.  Limit: 1.0 in region us-central1.")
    ]
    quotas = {quota.metric: (quota.limit, quota.usage) for quota in bench.regions.get(project=PROJECT, region=REGION).quotas}
    assert quotas == {"CPUS": (100.0, 4.0), "NVIDIA_L4_GPUS": (1.0, 1.0)}
    assert {quota.usage for quota in bench.regions.get(project=PROJECT, region="us-east5").quotas} == {0.0}
    bench.instances.stop_unary(**PLACE, instance="one")
    bench.clock.advance(10)
    bench.run("two", machine_type="g2-standard-4")
    assert bench.status("two") == "RUNNING"


def test_a_quota_over_all_regions_is_the_project_s(bench):
    bench.project.quotas["GPUS_ALL_REGIONS"] = 0.0
    operation = bench.insert(machine_type="a2-highgpu-1g")
    bench.clock.advance(20)

    assert bench.refreshed(operation).error.errors[0].message == "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally."
    assert [(quota.metric, quota.limit) for quota in bench.projects.get(project=PROJECT).quotas] == [("GPUS_ALL_REGIONS", 0.0)]


def test_the_platform_strikes_an_instance(bench):
    bench.run(machine_type="g2-standard-4")
    bench.run("spot", scheduling=compute_v1.Scheduling(provisioning_model="SPOT", instance_termination_action="DELETE"))
    place = f"projects/{PROJECT}/zones/{ZONE}/instances"

    bench.control(f"{place}/one/hostError")
    assert bench.status() == "TERMINATED"
    bench.clock.advance(70)
    assert bench.status() == "RUNNING"
    bench.control(f"{place}/spot/preempted")
    assert bench.status("spot") == "STOPPING"
    bench.clock.advance(10)
    with pytest.raises(exceptions.NotFound):
        bench.status("spot")


def test_a_wait_ends_with_the_operation(bench):
    operation = bench.insert()
    answers = []
    waiter = threading.Thread(target=lambda: answers.append(bench.operations.wait(**PLACE, operation=operation.name)))
    waiter.start()
    while not any(call.method == "compute.zoneOperations.get" for call in bench.world.calls.all()):
        bench.refreshed(operation)
    assert answers == []
    bench.clock.advance(20)
    waiter.join(30)

    assert [answer.status for answer in answers] == [DONE]


def test_a_wait_ends_after_two_minutes_with_what_is_not_done(bench, monkeypatch):
    began, wait = threading.Event(), bench.world.operations.wait
    monkeypatch.setattr(
        bench.world.operations,
        "wait",
        lambda operation, timeout_s, *, is_active: wait(operation, timeout_s, is_active=lambda: began.set() or is_active()),
    )
    bench.run(machine_type="g2-standard-4")
    operation = bench.instances.simulate_maintenance_event_unary(**PLACE, instance="one")
    answers = []
    waiter = threading.Thread(target=lambda: answers.append(bench.operations.wait(**PLACE, operation=operation.name)))
    waiter.start()
    assert began.wait(30)
    bench.clock.advance(120)
    waiter.join(30)

    assert [answer.status for answer in answers] == [compute_v1.Operation.Status.RUNNING]


def test_the_client_s_own_way_to_wait_works_once_its_inner_client_is_told_the_address(bench):
    bench.instances.transport._extended_operations_services["zone_operations"] = bench.operations
    resource = compute_v1.Instance(name="one", machine_type=f"zones/{ZONE}/machineTypes/n2-standard-4")
    bench.control(f"zones/{ZONE}/stock", {"available": False})
    operation = bench.instances.insert(**PLACE, instance_resource=resource)
    bench.clock.advance(10)

    with pytest.raises(exceptions.ServiceUnavailable) as failed:
        operation.result(timeout=30)
    assert failed.value.errors[0].code == "ZONE_RESOURCE_POOL_EXHAUSTED"


def test_permissions_are_told_and_reads_are_no_writes(bench):
    bench.run()
    before = len(bench.world.calls.writes())
    bench.project.granted = frozenset({"compute.instances.get", "compute.zoneOperations.list", "compute.regions.get"})
    asked = compute_v1.TestPermissionsRequest(permissions=["compute.instances.get", "compute.instances.delete"])

    held = bench.instances.test_iam_permissions(**PLACE, resource="one", test_permissions_request_resource=asked)

    assert list(held.permissions) == ["compute.instances.get"]
    bench.status()
    list(bench.operations.list(**PLACE))
    bench.regions.get(project=PROJECT, region=REGION)
    assert len(bench.world.calls.writes()) == before
    with pytest.raises(exceptions.Forbidden, match=r"compute\.instances\.delete"):
        bench.instances.delete_unary(**PLACE, instance="one")
    assert len(bench.world.calls.writes()) == before + 1
