"""Kubernetes Engine and Compute Engine at once, from many threads: their locks are taken in one order."""

import sys
import threading

import msgspec
import pytest
from google.cloud import container_v1

from harness.clock import ManualClock
from harness.emulator.compute.courses import Durations as ComputeDurations
from harness.emulator.compute.engine import Engine as ComputeEngine
from harness.emulator.compute.instances import Described
from harness.emulator.compute.places import Zone
from harness.emulator.container.compute_groups import ComputeGroups
from harness.emulator.container.durations import Durations
from harness.emulator.container.engine import Engine
from harness.emulator.container.names import Name
from harness.emulator.failures import ApiError
from harness.emulator.logging.store import LogEntryStore
from harness.emulator.operations import Operations
from harness.emulator.project import Projects, ProjectState
from harness.emulator.world import World

NAME = Name(project="p", location="us-east5-b", cluster="c")
ZONE = Zone(project="p", name="us-east5-b")
ROUNDS = 150
STUCK_S = 120.0
"""Many times what all of it takes: whoever is not back by then never comes back."""


class NoBuckets:
    def mount(self, bucket, below=""):
        raise AssertionError(bucket)


class Bench:
    """Both engines on one clock, with a cluster of three nodes."""

    def __init__(self, root):
        self.clock = ManualClock()
        self.world = World(
            clock=self.clock,
            root=root,
            projects=Projects([ProjectState(name="p", number=7)]),
            log=LogEntryStore(self.clock),
            buckets=NoBuckets(),
            operations=Operations(self.clock),
        )
        self.compute = ComputeEngine(self.world, ComputeDurations())
        self.container = Engine(self.world, ComputeGroups(self.world, self.compute), Durations())
        self.container.create(NAME, container_v1.Cluster(name="c"), [container_v1.NodePool(name="n", initial_node_count=3)])
        self.pass_time()

    def pass_time(self):
        for _ in range(5):
            self.clock.advance(1)
            self.container.registry.clusters(NAME)

    def resize(self, number):
        cluster = self.container.registry.cluster(NAME)
        self.container.resize(cluster, cluster.pools["n"], 1 + number % 4)
        self.clock.advance(1)
        self.container.registry.clusters(NAME)

    def work_on_instances(self, number):
        for instance in self.compute.instances:
            self.compute.set_labels(instance, dict(instance.labels), instance.label_fingerprint)
            if number % 5 == 0:
                self.compute.stop(instance)
        self.clock.advance(0.1)
        self.world.operations.settle()


@pytest.fixture
def bench(tmp_path):
    return Bench(tmp_path)


@pytest.fixture
def quick_switches():
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("quick_switches")
def test_work_on_clusters_and_on_their_instances_at_once_comes_to_its_end(bench):
    problems = []

    def repeat(act):
        for number in range(ROUNDS):
            try:
                act(number)
            except ApiError:
                continue  # busy, or gone meanwhile: that is an answer too
            except Exception as error:  # noqa: BLE001  a thread has nobody to raise to
                problems.append(repr(error))

    threads = [threading.Thread(target=repeat, args=(act,), daemon=True) for act in (bench.resize, bench.work_on_instances) * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(STUCK_S)

    assert [thread.name for thread in threads if thread.is_alive()] == []
    assert problems == []


def test_an_act_on_an_instance_does_no_work_of_another_service_under_its_lock(bench):
    done = []
    bench.world.operations.begin(NAME.parent, family="container", target="x", lasts_s=1, work=lambda: done.append("container"))
    bench.clock.advance(1)
    instance = next(iter(bench.compute.instances))

    operation = bench.compute.set_labels(instance, {"a": "b"}, instance.label_fingerprint)

    assert operation.is_done
    assert done == []
    bench.world.operations.settle()
    assert done == ["container"]


def test_what_the_platform_does_to_an_instance_does_none_either(bench):
    done = []
    document = {"name": "spot", "scheduling": {"provisioningModel": "SPOT"}}
    bench.compute.insert(bench.world.projects.require("x", "projects/p"), ZONE, msgspec.convert(document, Described), document)
    bench.pass_time()
    bench.world.operations.begin(NAME.parent, family="container", target="x", lasts_s=1, work=lambda: done.append("container"))
    bench.clock.advance(1)

    bench.compute.befall(bench.compute.instances.get(ZONE, "spot"), "preempted")

    assert done == []
