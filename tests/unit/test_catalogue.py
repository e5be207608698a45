"""The catalogue is complete: every fault, trigger and promise, every sentence of the guide, every public report that can be rebuilt here."""

import re
from typing import get_args, get_type_hints

import pytest

from harness.scenario import Expectation, Fault, Scenario, Trigger, decode, encode, kind_of
from harness.scenario.cluster import PhaseState
from harness.scenario.cluster_faults import BreakNode, DeletePods, InterruptNode, Part, RestartComponent
from harness.scenario.faults import KillRayProcess
from scenarios import CATALOGUE, CLUSTER, FAMILIES
from scenarios.cases import CASES, FINDINGS
from workloads.broken import BROKEN


def test_no_two_scenarios_share_a_name() -> None:
    assert len(CATALOGUE) == sum(len(family.SCENARIOS) for family in FAMILIES)


@pytest.mark.parametrize("name", CATALOGUE)
def test_every_scenario_survives_the_way_through_json(name: str) -> None:
    assert decode(encode(CATALOGUE[name]), Scenario, document=name) == CATALOGUE[name]


@pytest.mark.parametrize("kind", get_args(Fault))
def test_every_fault_is_in_the_catalogue(kind: type[Fault]) -> None:
    assert any(isinstance(injection.fault, kind) for scenario in CATALOGUE.values() for injection in scenario.injections)


@pytest.mark.parametrize("component", ["worker", "raylet", "head"])
def test_every_part_of_ray_is_killed(component: str) -> None:
    killed = [injection.fault for scenario in CATALOGUE.values() for injection in scenario.injections]

    assert KillRayProcess(component=component) in killed


@pytest.mark.parametrize("kind", get_args(Trigger))
def test_every_trigger_is_in_the_catalogue(kind: type[Trigger]) -> None:
    assert any(isinstance(injection.at, kind) for scenario in CATALOGUE.values() for injection in scenario.injections)


@pytest.mark.parametrize("kind", get_args(Expectation))
def test_every_promise_is_in_the_catalogue(kind: type[Expectation]) -> None:
    assert any(isinstance(expectation, kind) for scenario in CATALOGUE.values() for expectation in scenario.expects)


@pytest.mark.parametrize("case", CASES)
def test_every_case_is_in_the_catalogue(case: int) -> None:
    assert any(f"case-{case}" in scenario.tags for scenario in CATALOGUE.values())


def test_every_case_that_is_named_is_known() -> None:
    tagged = {int(tag.removeprefix("case-")) for scenario in CATALOGUE.values() for tag in scenario.tags if tag.startswith("case-")}
    told = {int(number) for scenario in CATALOGUE.values() for number in re.findall(r"\bcases? (\d+)", scenario.why)}
    wrong = {number for job in BROKEN.values() for number in job.cases}

    assert tagged | told | wrong <= set(CASES)


def test_every_finding_that_is_named_is_known() -> None:
    told = {int(number) for scenario in CATALOGUE.values() for number in re.findall(r"\bfinding (\d+)", scenario.why)}

    assert told <= set(FINDINGS)


def test_faults_within_the_budget_leave_an_attempt_to_recover() -> None:
    for scenario in CATALOGUE.values():
        deadly = [
            injection
            for injection in scenario.injections
            if kind_of(injection.fault) in ("kill", "terminate", "maintenance", "expire-timeout")
        ]
        if scenario.within_budget and deadly:
            assert max(max(injection.attempts) for injection in deadly) < scenario.platform.max_retries


CLUSTER_SCENARIOS = [scenario for scenario in CATALOGUE.values() if "cluster" in scenario.tags]


def test_scenarios_of_the_cluster_families_are_those_with_the_tag() -> None:
    assert [scenario for family in CLUSTER for scenario in family.SCENARIOS] == CLUSTER_SCENARIOS


@pytest.mark.parametrize("state", get_args(PhaseState))
def test_every_answer_to_a_request_for_capacity_is_in_the_catalogue(state: str) -> None:
    assert any(phase.state == state for found in CLUSTER_SCENARIOS for script in found.cluster.provisioning for phase in script.phases)


@pytest.mark.parametrize("answer", ["granted", "stockout", "quota-exceeded"])
def test_every_answer_of_the_autoscaler_is_in_the_catalogue(answer: str) -> None:
    assert any(found.cluster.on_demand.answer == answer and found.cluster.on_demand_nodes == 0 for found in CLUSTER_SCENARIOS)


@pytest.mark.parametrize(("kind", "field"), [(BreakNode, "how"), (InterruptNode, "profile"), (RestartComponent, "component")])
def test_every_form_of_a_cluster_fault_is_in_the_catalogue(kind: type[Fault], field: str) -> None:
    faults = [injection.fault for scenario in CLUSTER_SCENARIOS for injection in scenario.injections]

    assert {getattr(fault, field) for fault in faults if isinstance(fault, kind)} == set(get_args(get_type_hints(kind)[field]))


def test_every_part_of_a_rayjob_is_deleted() -> None:
    faults = [
        injection.fault for scenario in CLUSTER_SCENARIOS if scenario.cluster.submits == "ray-job" for injection in scenario.injections
    ]

    assert {fault.part for fault in faults if isinstance(fault, DeletePods)} == set(get_args(Part))


def test_rayjobs_are_slow_and_the_others_are_not() -> None:
    for scenario in CLUSTER_SCENARIOS:
        assert ("slow" in scenario.tags) == ("ray" in scenario.tags) == (scenario.cluster.submits == "ray-job"), scenario.name
