"""Where the job is held."""

import json

from harness.scenario import Injection
from harness.scenario.faults import Kill, Maintenance
from harness.scenario.triggers import AfterSeconds, AtMarker, AtStep
from harness.targets.gcp.agent.points import ARMED, OWN, Point, Points, read_point
from harness.targets.gcp.moments import points_of
from tests.unit.targets.gcp.launches import scenario_of


def request(event: str, when: str = "after", **fields: object) -> bytes:
    return json.dumps({"event": event, "when": when, "rank": 0, **fields}).encode()


def test_a_place_without_conditions_holds_each_time():
    points = Points(["save.end:after"])

    assert [points.hold_for(request("save.end")) for _ in range(3)] == [ARMED] * 3
    assert not points.hold_for(request("save.end", "before"))


def test_a_step_is_held_at_that_step_of_that_rank_alone():
    points = Points(["step:after@step=3,rank=1"])

    assert [points.hold_for(request("step", step=step, rank=rank)) for step in (1, 2, 3) for rank in (0, 1)] == [""] * 5 + [ARMED]


def test_an_occurrence_is_counted_for_each_rank():
    points = Points(["save.commit:after@nth=2,rank=0"])

    asked = [points.hold_for(request("save.commit", rank=rank)) for rank in (1, 0, 1, 0, 0)]

    assert asked == ["", "", "", ARMED, ""]


def test_several_points_of_one_place_each_hold():
    points = Points(["step:after@step=2", "step:after@step=4"])

    assert [step for step in range(1, 6) if points.hold_for(request("step", step=step))] == [2, 4]
    assert points.places == ["step:after"]


def test_the_targets_own_place_holds_each_time_and_is_not_taken_for_a_faults():
    points = Points(["save.end:after@nth=2"], ["save.end:after"])

    assert [points.hold_for(request("save.end")) for _ in range(3)] == [OWN, ARMED, OWN]
    assert points.places == ["save.end:after"]


def test_what_is_no_request_is_not_held():
    points = Points(["step:after"])

    for line in (b"", b"[]", b"null", b'{"event": "step"}', b'{"event": "step", "when": "after", "rank": {}}', b"[" * 5000):
        assert not points.hold_for(line)


def test_conditions_that_cannot_be_read_hold_too_often_rather_than_never():
    assert read_point("step=many,color=red") == Point()


def test_the_moments_of_a_scenario_are_its_points():
    scenario = scenario_of(
        Injection(fault=Kill(), at=AtStep(step=12, rank=1)),
        Injection(fault=Kill(), at=AtMarker(event="save.commit", nth=3)),
        Injection(fault=Kill(), at=AtMarker(event="save.begin", nth=2, when="before")),
        Injection(fault=Maintenance(), at=AfterSeconds(seconds=1.0)),
    )

    assert points_of(scenario) == ("step:after@step=12,rank=1", "save.commit:after@nth=3,rank=0", "save.begin:before")
