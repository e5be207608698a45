"""Targets by name."""

import subprocess
import sys

import pytest

from harness.capabilities import (
    Cancellable,
    CheckpointStorage,
    ImageHost,
    MemoryLimiter,
    Overlappable,
    RayHost,
    Signalable,
    StorageInterposable,
    Terminable,
    Timeoutable,
)
from harness.clock import ManualClock
from harness.errors import UnknownNameError
from harness.targets import NAMES, availability, create


@pytest.mark.parametrize("name", NAMES)
def test_every_name_makes_a_target_of_that_name(name):
    assert create(name, ManualClock()).name == name


def test_an_unknown_name_is_refused_with_a_suggestion():
    with pytest.raises(UnknownNameError, match="did you mean local"):
        create("locl", ManualClock())
    with pytest.raises(UnknownNameError):
        availability("nowhere")


def test_the_local_target_is_here():
    assert availability("local").is_available


@pytest.mark.parametrize(
    "capability", [Signalable, Terminable, Cancellable, Timeoutable, Overlappable, CheckpointStorage, ImageHost, MemoryLimiter]
)
def test_the_docker_target_has_its_capabilities(capability):
    assert isinstance(create("docker", ManualClock()), capability)


@pytest.mark.parametrize("capability", [StorageInterposable, RayHost])
def test_what_the_docker_target_cannot_do_it_does_not_offer(capability):
    assert not isinstance(create("docker", ManualClock()), capability)


@pytest.mark.parametrize(
    "capability", [Signalable, Terminable, Cancellable, Timeoutable, Overlappable, CheckpointStorage, StorageInterposable]
)
def test_the_local_target_has_its_capabilities(capability):
    assert isinstance(create("local", ManualClock()), capability)


def test_naming_targets_imports_none_of_them():
    code = "import sys, harness.targets; sys.exit(any(name.startswith('harness.targets.') for name in sys.modules))"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
