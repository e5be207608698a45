"""What was real, what was played, and what nobody has verified."""

from harness.capabilities import Fidelity
from harness.report.realism import fidelity_of, profiles_of
from harness.scenario import Injection
from harness.scenario.cluster_faults import InterruptNode, LoseNode
from harness.scenario.faults import CancelExecution, ExpireTimeout, Maintenance
from harness.scenario.triggers import AtStep
from tests.unit.checkers.builders import Run, resumed
from tests.unit.report.records import ASSUMED, PLAYED, record_of


def test_what_is_missing_comes_first_and_what_is_assumed_before_what_is_known():
    absent = Fidelity(what="GPU", here="absent", note="")
    real = Fidelity(what="exit codes", here="real", note="")

    assert fidelity_of(record_of(resumed(), fidelity=(real, PLAYED, absent, ASSUMED))) == (absent, ASSUMED, PLAYED, real)


def test_a_run_without_a_record_of_it_has_no_rows():
    assert fidelity_of(record_of(resumed())) == ()


def test_the_profiles_are_those_of_the_faults():
    injections = tuple(Injection(fault=fault, at=AtStep(step=3)) for fault in (Maintenance(), CancelExecution(), ExpireTimeout()))

    profiles = profiles_of(record_of(resumed(), injections=injections))

    assert [(profile.name, profile.verified) for profile in profiles] == [
        ("cloudrun-job-gpu-maintenance", True),
        ("cloudrun-job-timeout", False),
        ("cloudrun-job-cancel", False),
    ]


def test_a_timeout_that_nobody_injected_counts_too():
    run = Run().attempt(0).begin().signal("SIGTERM", cause="timeout").exit(143, cause="timeout")

    assert [profile.name for profile in profiles_of(record_of(run))] == ["cloudrun-job-timeout"]


def test_what_takes_a_node_away_goes_by_its_profile():
    faults = (InterruptNode(profile="gke-spot"), LoseNode())
    injections = tuple(Injection(fault=fault, at=AtStep(step=3)) for fault in faults)

    assert [profile.name for profile in profiles_of(record_of(resumed(), injections=injections))] == ["gke-spot", "gke-host-error"]
