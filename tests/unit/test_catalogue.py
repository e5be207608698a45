"""The catalogue is complete: every fault, trigger and promise, every sentence of the guide, every public report that a machine alone can rebuild."""

import re
from typing import get_args

import pytest

from harness.scenario import Expectation, Fault, Scenario, Trigger, decode, encode, kind_of
from harness.scenario.faults import KillRayProcess
from scenarios import CATALOGUE, FAMILIES
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
def test_every_local_case_is_in_the_catalogue(case: int) -> None:
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
