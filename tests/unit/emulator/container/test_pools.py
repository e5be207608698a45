"""Node pools and the instances behind them."""

import re

import pytest
from google.cloud import container_v1
from hypothesis import given
from hypothesis import strategies as st

from harness.emulator.compute.places import INSTANCE_EXPRESSION
from harness.emulator.container.groups import NamedInstances
from harness.emulator.container.names import Name
from harness.emulator.container.pools import Pool, Status, node_name
from harness.emulator.failures import ApiError, quota_exceeded, stockout

NAME = Name(project="p", location="us-east5", cluster="c", pool="n")
Code = container_v1.StatusCondition.Code


class Choosy(NamedInstances):
    """Makes so many instances and no more."""

    def __init__(self, count, error):
        super().__init__()
        self.count, self.error = count, error

    def make(self, group, instance):
        if self.count == 0:
            raise self.error
        self.count -= 1
        super().make(group, instance)


def pool(size=3, zones=("us-east5-a", "us-east5-b"), **config):
    message = container_v1.NodePool(name="n", config={"machine_type": "n2-standard-8", **config})
    return Pool(name=NAME, message=message, zones=zones, size=size)


def count(made, groups):
    return sum(len(groups.instances(group)) for group in made.groups())


@given(st.lists(st.integers(0, 5), min_size=1, max_size=6))
def test_there_are_as_many_nodes_as_there_are_to_be(sizes):
    made, groups = pool(), NamedInstances()
    for size in sizes:
        made.size = size
        assert made.reconcile(groups, 0.0) == []
        assert count(made, groups) == 2 * size == len(made.born_s)
        assert made.message.status == Status.RUNNING


@pytest.mark.parametrize(
    ("error", "code", "shown"),
    [
        (stockout("projects/p/zones/us-east5-b"), Code.GCE_STOCKOUT, "[GCE_STOCKOUT]"),
        (
            quota_exceeded("CPUS", limit=8, place="region us-east5"),
            Code.GCE_QUOTA_EXCEEDED,
            "Quota 'CPUS' exceeded.  Limit: 8.0 in region us-east5.",
        ),
        (ApiError("INTERNAL", "odd"), Code.UNKNOWN, "odd"),
    ],
)
def test_a_pool_with_some_of_its_nodes_runs_with_an_error_that_says_why(error, code, shown):
    made, groups = pool(zones=("us-east5-b",)), Choosy(2, error)
    (problem,) = made.reconcile(groups, 0.0)
    assert made.message.status == Status.RUNNING_WITH_ERROR
    assert [condition.code for condition in made.message.conditions] == [code]
    assert shown in made.message.status_message == problem.message
    assert "Expected 3, running 2, transitioning 1" in problem.message
    assert made.held_back == 1


def test_a_pool_without_any_is_in_error_and_recovers():
    made, groups = pool(), Choosy(0, stockout("projects/p/zones/us-east5-b"))
    made.reconcile(groups, 0.0)
    assert (made.message.status, made.held_back, len(made.message.conditions)) == (Status.ERROR, 6, 2)
    groups.count = 100
    made.reconcile(groups, 0.0)
    assert (made.message.status, made.held_back, list(made.message.conditions)) == (Status.RUNNING, 0, [])


def test_a_node_keeps_its_name_when_it_is_made_anew():
    made, groups = pool(), NamedInstances()
    made.reconcile(groups, 0.0)
    before = [groups.instances(group) for group in made.groups()]
    groups.lose(min(before[0]))
    made.reconcile(groups, 5.0)
    assert [groups.instances(group) for group in made.groups()] == before
    assert made.born_s[min(before[0])] == 5.0


def test_flex_start_counts_against_preemptible_quotas():
    (plain,) = pool(zones=("us-east5-b",), machine_type="g2-standard-8").groups()
    (flexible,) = pool(zones=("us-east5-b",), machine_type="g2-standard-8", flex_start=True).groups()
    assert plain.usage()["NVIDIA_L4_GPUS"] == flexible.usage()["PREEMPTIBLE_NVIDIA_L4_GPUS"] == 1


NAMES = st.from_regex(r"[a-z]([-a-z0-9]{0,38}[a-z0-9])?", fullmatch=True)


@given(NAMES, NAMES, st.integers(0, 999))
def test_names_of_nodes_are_names_of_instances(cluster, name, number):
    whole = Name(project="p", location="us-east5-b", cluster=cluster, pool=name)
    assert re.fullmatch(INSTANCE_EXPRESSION, node_name(whole, "us-east5-b", number))


def test_names_of_many_nodes_differ():
    assert len({node_name(NAME, "us-east5-b", number) for number in range(1000)}) == 1000


def test_the_etag_changes_with_the_pool():
    made = pool()
    before = made.etag
    assert made.etag == before
    made.message.initial_node_count = 9
    assert made.etag != before
