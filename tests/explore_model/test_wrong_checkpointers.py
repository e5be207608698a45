"""Each wrong checkpointer is found by the promise that it breaks, on each storage where it is wrong, and is valid where it is right."""

import inspect
from collections.abc import Callable
from typing import NamedTuple

import pytest

from harness.explore.judging.promises import CHECKS
from harness.explore.judging.rulings import COMPLETES, CRASH_IN_RECOVERY, KEEPS, KEEPS_GOOD, RECOVERS, RESTORES, SAVES, TWICE
from tests.explore_model import wrong
from tests.explore_model.hunt import Row, hunt, is_valid
from tests.explore_model.job import Kind
from tests.explore_model.machine import DISTINCT, Surface

HUNTED_MAX, VALID_MAX = 1000, 40
"""Examples. The first is several times what the most hidden one takes; of the second, most are run over all storages together."""

EVERYWHERE = DISTINCT
WEAK = (Surface("posix-weak", "node"),)
SEEN_HALF_WRITTEN = tuple(surface for surface in DISTINCT if surface.scope == "process" and surface.model != "object-store") + WEAK
"""Where what is being written to a name that is known can be found as it is."""

LOST_UNTIL_CLOSED = tuple(surface for surface in DISTINCT if surface not in SEEN_HALF_WRITTEN)
"""Where it is found only once it has been closed."""

TORN_IN_RENAME = (Surface("gcsfuse-flat", "node"), Surface("object-store", "process"))


class Known(NamedTuple):
    """What a checkpointer is known to break, and where; it is right on all other storages."""

    promise: str
    on: tuple[Surface, ...]


WRONG = {
    wrong.AcknowledgesBeforeClose: Known(KEEPS, LOST_UNTIL_CLOSED),
    wrong.AcknowledgesBeforeData: Known(KEEPS, EVERYWHERE),
    wrong.AppendsItsResult: Known(TWICE, EVERYWHERE),
    wrong.AppendsWithoutDigest: Known(RESTORES, SEEN_HALF_WRITTEN),
    wrong.ChecksSizeOnly: Known(RESTORES, WEAK),
    wrong.CollectsByName: Known(CRASH_IN_RECOVERY, TORN_IN_RENAME),
    wrong.CrashesOnStaleTemporary: Known(RECOVERS, EVERYWHERE),
    wrong.DeletesOldBeforeNew: Known(KEEPS, EVERYWHERE),
    wrong.DeletesTheOnlyCopy: Known(KEEPS, EVERYWHERE),
    wrong.ForgetsOptimizer: Known(RESTORES, EVERYWHERE),
    wrong.LoadsDamagedBytes: Known(RESTORES, WEAK),
    wrong.MarksBeforeData: Known(RECOVERS, EVERYWHERE),
    wrong.NeverSyncs: Known(KEEPS, WEAK),
    wrong.PicksNewestName: Known(RECOVERS, EVERYWHERE),
    wrong.PointsBeforeData: Known(RECOVERS, EVERYWHERE),
    wrong.PointsInPlace: Known(RECOVERS, SEEN_HALF_WRITTEN),
    wrong.RestartsDataOrder: Known(COMPLETES, EVERYWHERE),
    wrong.RestoresOffByOne: Known(RESTORES, EVERYWHERE),
    wrong.ReusesTemporary: Known(KEEPS_GOOD, EVERYWHERE),
    wrong.SavesInPlace: Known(KEEPS, SEEN_HALF_WRITTEN),
    wrong.SkipsSavesAfterResume: Known(SAVES, EVERYWHERE),
    wrong.SyncsAfterRename: Known(KEEPS, WEAK),
    wrong.SyncsNoDirectory: Known(KEEPS, WEAK),
    wrong.SyncsNothingInAnEmergency: Known(KEEPS, WEAK),
    wrong.SyncsTheFileOnly: Known(KEEPS, WEAK),
    wrong.TrustsTheRename: Known(RECOVERS, TORN_IN_RENAME),
    wrong.WritesManifestFirst: Known(RECOVERS, EVERYWHERE),
}


@pytest.mark.parametrize("kind", WRONG, ids=lambda kind: kind.__name__)
def test_a_wrong_checkpointer_is_found_where_it_is_wrong_and_valid_where_it_is_right(kind: Kind, report: Callable[[Row], None]) -> None:
    known = WRONG[kind]
    examples = {surface: hunt(kind, surface, known.promise, examples_max=HUNTED_MAX) for surface in known.on}
    elsewhere = {surface: is_valid(kind, surface, examples_max=VALID_MAX) for surface in DISTINCT if surface not in known.on}
    report(Row(name=kind.__name__, promise=known.promise, examples={str(surface): examples.get(surface, 0) for surface in DISTINCT}))

    assert [str(surface) for surface, count in examples.items() if not count] == []
    assert [str(surface) for surface, valid in elsewhere.items() if not valid] == []


def test_every_promise_has_a_checkpointer_that_breaks_it_and_every_wrong_one_is_hunted() -> None:
    here = {kind for _, kind in inspect.getmembers(wrong, inspect.isclass) if kind.__module__ == wrong.__name__}

    assert {known.promise for known in WRONG.values()} == {*CHECKS, CRASH_IN_RECOVERY}
    assert here == WRONG.keys()
