"""Acts on clusters from many threads."""

import threading

import pytest
from google.cloud import container_v1

from harness.clock import ManualClock
from harness.emulator.container.durations import Durations
from harness.emulator.container.engine import Engine
from harness.emulator.container.groups import NamedInstances
from harness.emulator.container.names import Name
from harness.emulator.failures import ApiError
from harness.emulator.logging.store import LogEntryStore
from harness.emulator.operations import Operations
from harness.emulator.project import Projects
from harness.emulator.world import World

NAME = Name(project="p", location="us-east5-b", cluster="c")


class NoBuckets:
    def mount(self, bucket, below=""):
        raise AssertionError(bucket)


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def engine(clock, tmp_path):
    world = World(
        clock=clock, root=tmp_path, projects=Projects([]), log=LogEntryStore(clock), buckets=NoBuckets(), operations=Operations(clock)
    )
    engine = Engine(world, NamedInstances(), Durations())
    engine.create(NAME, container_v1.Cluster(name="c"), [container_v1.NodePool(name="n", initial_node_count=1)])
    clock.advance(1)
    engine.registry.clusters(NAME)
    return engine


def test_of_many_at_once_one_is_let_through(engine):
    cluster = engine.registry.cluster(NAME)
    outcomes = []

    def resize(size):
        try:
            outcomes.append(engine.resize(cluster, cluster.pools["n"], size))
        except ApiError as error:
            outcomes.append(error.reason)

    threads = [threading.Thread(target=resize, args=(size,)) for size in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert outcomes.count("CLUSTER_ALREADY_HAS_OPERATION") == 15


def test_looking_and_ending_at_once_end_both(engine, clock):
    cluster = engine.registry.cluster(NAME)
    for size in range(1, 20):
        operation = engine.resize(cluster, cluster.pools["n"], size)
        clock.advance(1)
        threads = [threading.Thread(target=engine.registry.clusters, args=(NAME,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert operation.is_done
        assert engine.registry.cluster(NAME).pools["n"].size == size


def test_an_operation_says_what_it_is_until_it_is_done(engine, clock):
    cluster = engine.registry.cluster(NAME)
    operation = engine.label(cluster, {"a": "b"})
    running = engine.works.shown(operation)
    assert (running.status, running.end_time) == (container_v1.Operation.Status.RUNNING, "")
    clock.advance(1)
    engine.registry.clusters(NAME)
    done = engine.works.shown(operation)
    assert (done.status, done.start_time, done.end_time) == (
        container_v1.Operation.Status.DONE,
        "2026-01-01T00:00:01.000000Z",
        "2026-01-01T00:00:02.000000Z",
    )
    assert dict(cluster.message.resource_labels) == {"a": "b"}
