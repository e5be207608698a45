"""Scenarios and schedules survive the way through JSON, and their JSON Schema means the same as reading them does."""

from pathlib import Path
from typing import get_args

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.errors import InvalidDocumentError
from harness.scenario import (
    Expectation,
    Fault,
    Scenario,
    Schedule,
    Trigger,
    convert,
    decode,
    encode,
    kind_of,
    name_of,
    read_scenario,
    read_schedule,
    schema,
)
from tests.unit.scenario.strategies import EXPECTATIONS, FAULTS, TRIGGERS, scenarios, schedules


def test_every_fault_trigger_and_promise_is_drawn():
    assert set(FAULTS) == set(get_args(Fault))
    assert set(TRIGGERS) == set(get_args(Trigger))
    assert set(EXPECTATIONS) == set(get_args(Expectation))


@pytest.mark.parametrize("kind", [*FAULTS, *TRIGGERS, *EXPECTATIONS], ids=lambda kind: kind.__name__)
@settings(max_examples=10)
@given(data=st.data())
def test_each_of_them_is_read_as_it_was_written(kind: type[msgspec.Struct], data: st.DataObject):
    value = data.draw((FAULTS | TRIGGERS | EXPECTATIONS)[kind])
    assert decode(encode(value), kind, document="x") == value
    assert convert(msgspec.to_builtins(value), kind, document="x") == value


def test_names_in_documents_are_told_apart():
    for kinds in (FAULTS, TRIGGERS, EXPECTATIONS):
        tags = [kind.__struct_config__.tag for kind in kinds]
        assert len(set(tags)) == len(tags)


def test_faults_and_promises_are_called_by_their_tags():
    for fault in FAULTS:
        assert kind_of(fault()) == fault.__struct_config__.tag
    for kind in EXPECTATIONS:
        assert "_" not in str(kind.__struct_config__.tag)
    assert name_of(next(kind for kind in EXPECTATIONS if kind.__name__ == "BitExactResume")()) == "bit-exact-resume"


@given(scenarios())
def test_a_scenario_is_read_as_it_was_written(scenario: Scenario):
    data = encode(scenario)
    assert decode(data, Scenario, document="x") == scenario
    assert encode(decode(data, Scenario, document="x")) == data
    assert decode(encode(scenario.schedule), Schedule, document="x").injections == scenario.injections


@given(schedules)
def test_a_schedule_is_read_as_it_was_written(schedule: Schedule):
    assert decode(encode(schedule), Schedule, document="x") == schedule


@settings(max_examples=8)
@given(scenarios())
def test_the_schema_accepts_what_can_be_read(scenario: Scenario):
    jsonschema.validate(msgspec.json.decode(encode(scenario)), schema())


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("workload", "steps"), "two"),
        (("workload", "layout"), "zip"),
        (("expects", 0, "type"), "hopes"),
        (("injections", 0, "fault", "type"), "nuke"),
        (("injections", 0, "at", "step"), "first"),
        (("injections", 0, "unheard_of"), 1),
        (("platform", "tasks"), 1.5),
        (("tags",), "slow"),
    ],
)
def test_the_schema_refuses_what_cannot_be_read(path: tuple[str | int, ...], value: object):
    plain = {
        "name": "a-b",
        "why": "x",
        "workload": {"name": "job", "command": ["job"]},
        "platform": {},
        "injections": [{"fault": {"type": "kill"}, "at": {"type": "at-step", "step": 1}}],
        "expects": [{"type": "completes"}],
    }
    jsonschema.validate(plain, schema())
    convert(plain, Scenario, document="x")
    place: object = plain
    for name in path[:-1]:
        place = place[name]  # type: ignore[index]
    place[path[-1]] = value  # type: ignore[index]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(plain, schema())
    with pytest.raises(InvalidDocumentError):
        convert(plain, Scenario, document="x")


def test_a_document_is_written_for_people_too():
    text = encode(Schedule()).decode()
    assert text.endswith("\n")
    assert text.splitlines()[0] == "{"


def test_files_are_read_and_named(tmp_path: Path):
    path = tmp_path / "schedule.json"
    path.write_bytes(encode(Schedule()))
    assert read_schedule(path) == Schedule()
    with pytest.raises(InvalidDocumentError, match=r"schedule\.json: Object missing required field `name`; add it"):
        read_scenario(path)
    with pytest.raises(InvalidDocumentError, match=r"missing\.json: No such file or directory; name a readable file"):
        read_scenario(tmp_path / "missing.json")
    with pytest.raises(InvalidDocumentError, match="not a regular file"):
        read_schedule(tmp_path)
