"""What instances go through, on a clock that only the test moves."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.clock import ManualClock
from harness.emulator.compute import courses
from harness.emulator.compute.courses import Durations, Policy
from harness.emulator.compute.instances import Described, Instances
from harness.emulator.compute.places import Zone

DURATIONS = Durations(provisioning_s=1, staging_s=1, stopping_s=1, notice_s=1, maintenance_s=1, reset_s=1)
ZONE = Zone(project="p", name="us-central1-a")
COURSES = {
    "starting": courses.starting(DURATIONS),
    "stopping": courses.stopping(DURATIONS),
    "deleting": courses.deleting(DURATIONS),
    **{
        f"{course.__name__} {policy}": course(DURATIONS, policy)
        for course in (courses.maintained, courses.broken, courses.preempted)
        for policy in (
            Policy(migrates=True, restarts=True),
            Policy(migrates=False, restarts=True),
            Policy(migrates=False, restarts=False, is_deleted=True),
        )
    },
}


class Bench:
    def __init__(self):
        self.clock = ManualClock()
        self.events = []
        self.instances = Instances(self.clock, lambda instance, event: self.events.append(event))
        self.instance = self.instances.add(ZONE, Described(name="one", machine_type="n2-standard-4"), {})

    def status(self):
        found = self.instances.find(ZONE, "one")
        return found.stage.status if found else "gone"


@pytest.mark.parametrize("stages", COURSES.values(), ids=COURSES)
def test_a_course_ends_in_a_status_that_stays_and_no_other_stage_stays(stages):
    assert stages[-1].lasts_s == courses.REST
    assert all(stage.lasts_s < courses.REST for stage in stages[:-1])
    assert stages[-1].maintenance == ""


@given(first=st.sampled_from(sorted(COURSES)), second=st.sampled_from(sorted(COURSES)), looks=st.lists(st.floats(0, 5), max_size=8))
def test_how_often_it_is_looked_at_changes_nothing(first, second, looks):
    """A course that was given up tells no more events, and the end is that of the last course."""
    watched, left_alone = Bench(), Bench()
    for bench in (watched, left_alone):
        bench.instances.begin(bench.instance, COURSES[first])
        if COURSES[first][-1].removes:
            continue
        bench.instances.begin(bench.instance, COURSES[second])
    for seconds in looks:
        watched.clock.advance(seconds)
        watched.status()
    for bench in (watched, left_alone):
        bench.clock.advance(100)

    assert watched.status() == left_alone.status()
    assert watched.events == left_alone.events


def test_what_was_removed_leaves_another_of_its_name_alone():
    bench = Bench()
    bench.instances.begin(bench.instance, courses.deleting(DURATIONS))
    bench.instances.add(ZONE, Described(name="one", machine_type="n2-standard-4"), {})
    bench.instances.remove(bench.instance)

    assert bench.status() == "PROVISIONING"


@pytest.mark.parametrize(
    ("described", "policy"),
    [
        (Described(machine_type="n2-standard-4"), Policy(migrates=True, restarts=True)),
        (Described(machine_type="g2-standard-4"), Policy(migrates=False, restarts=True)),
    ],
)
def test_who_has_accelerators_cannot_be_moved_alive(described, policy):
    assert described.policy == policy
