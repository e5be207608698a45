"""What is right on a storage is valid there, however it trains, saves and dies: the storage models and the promises ask nothing impossible."""

import pytest

from harness.explore.judging.promises import CHECKS
from harness.explore.judging.rulings import CRASH_IN_RECOVERY
from tests.explore_model.checkpointer import Journal, ManifestLast, Renaming, SingleFile, SyncedManifestLast
from tests.explore_model.hunt import run
from tests.explore_model.job import Kind
from tests.explore_model.machine import SURFACES, Surface, machine

EXAMPLES = 600
"""Of each, over all its storages."""

ALL_BUT_WEAK = tuple(surface for surface in SURFACES if surface != Surface("posix-weak", "node"))

RIGHT = {Renaming: SURFACES, SyncedManifestLast: SURFACES, Journal: SURFACES, SingleFile: SURFACES, ManifestLast: ALL_BUT_WEAK}


@pytest.mark.parametrize("kind", RIGHT, ids=lambda kind: kind.__name__)
def test_a_right_checkpointer_keeps_every_promise_on_every_storage_that_it_is_for(kind: Kind) -> None:
    crashes = machine(kind, RIGHT[kind])
    run(crashes, examples_max=EXAMPLES)

    assert min(crashes.checked[promise] for promise in (*CHECKS, CRASH_IN_RECOVERY)) > EXAMPLES // 10
