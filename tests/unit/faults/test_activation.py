"""Every fault can be activated, and is refused where its capability is missing."""

from pathlib import Path
from typing import get_args

import pytest

from harness.capabilities import Processes
from harness.errors import InjectionError
from harness.faults import activate, missing_capability
from harness.scenario import Fault, Injection
from harness.scenario.faults import FailWrites, FlipByte, Kill, KillRayProcess, Maintenance, OverlapAttempts, SlowWrites
from harness.scenario.triggers import AtStep

EVERY_FAULT = [
    *(kind() for kind in get_args(Fault)),
    Maintenance(profile="cloudrun-job-cpu-maintenance"),
    KillRayProcess(component="raylet"),
    KillRayProcess(component="head"),
]


@pytest.mark.parametrize("fault", EVERY_FAULT, ids=repr)
def test_every_fault_can_be_activated_where_everything_is_offered(make, target, fault) -> None:
    active = make(fault, rank=1 if fault == KillRayProcess(component="worker") else -1)

    assert missing_capability(fault, target) == ""
    assert active.observe(()) == ""


@pytest.mark.parametrize("fault", EVERY_FAULT, ids=repr)
def test_every_fault_is_refused_in_words_where_nothing_is_offered(bare, fault) -> None:
    missing = missing_capability(fault, bare)

    assert " (" in missing
    assert missing.endswith(")")


def test_the_capability_that_is_missing_is_named(bare) -> None:
    assert missing_capability(Kill(), bare) == "signals to processes (Signalable)"


def test_an_overlap_needs_the_processes_too_for_its_undo(bare) -> None:
    class OnlyOverlaps(type(bare)):  # type: ignore[misc]
        def abandon(self, victim: Processes) -> None: ...
        def end_abandoned(self, victim: Processes) -> int: ...

    assert missing_capability(OverlapAttempts(), OnlyOverlaps()) == "signals to processes (Signalable)"


@pytest.mark.parametrize("fault", [FailWrites(), SlowWrites()])
def test_a_machine_that_forbids_supervision_says_why(target, fault) -> None:
    target.problem = "seccomp user notification is Linux only; this is darwin"

    assert missing_capability(fault, target).endswith("(seccomp user notification is Linux only; this is darwin)")


def test_an_activation_past_the_binding_still_fails_by_name(bare, tmp_path: Path) -> None:
    injection = Injection(fault=Kill(), at=AtStep(step=1))

    with pytest.raises(InjectionError, match=r"'x'.*target 'bare' does not offer signals to processes"):
        activate(injection, "x", target=bare, victim=Processes(), layout="files", kept_dir=tmp_path, now_s=lambda: 0.0)


def test_a_directory_that_is_not_there_is_an_injection_that_failed(make, target) -> None:
    target.absent = "no execution runs on the target"

    with pytest.raises(InjectionError, match="no execution runs"):
        make(FlipByte())
