"""How long the test of a scenario may take, beside a general timeout of pytest-timeout."""

import contextlib
import os
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.scenario import Scenario

SHARED_S_MAX = 1500.0
"""What a run takes at most beside its turn and its deadline where runs take turns: setting up may take 600 s, mending nodes 240 s, taking
the run away and bringing node pools to rest another 600 s."""

OWN_S_MAX = 30.0
"""The same where a run has what it needs to itself, but for its end."""

GOLDEN_RUNS = 2


def timeout_marks(scenario: "Scenario", metafunc: pytest.Metafunc, *, target: str) -> list[pytest.MarkDecorator]:
    """pytest-timeout's, where its general timeout would break off what may take longer; a mark or an option of the user's own holds."""
    config = metafunc.config
    is_own = metafunc.definition.get_closest_marker("timeout") is not None
    if is_own or not config.pluginmanager.hasplugin("timeout") or config.getoption("timeout", default=None) is not None:
        return []
    with contextlib.suppress(ValueError):  # what is no number is pytest-timeout's to refuse
        general_s = float(os.environ.get("PYTEST_TIMEOUT") or config.getini("timeout") or 0.0)
        needed_s = _longest_s(scenario, target)
        return [pytest.mark.timeout(needed_s)] if 0.0 < general_s < needed_s else []
    return []


def _longest_s(scenario: "Scenario", target: str) -> float:
    """How long a test of a scenario may take: turn, deadline and end have limits of their own, and better words than a timeout."""
    from harness.runner import golden

    turn_s = _turn_s_max(target)
    one_s = turn_s + scenario.deadline_s + (SHARED_S_MAX if turn_s else OWN_S_MAX + _ending_s_max(target))
    return one_s * (1 + (GOLDEN_RUNS if golden.is_needed(scenario.expects) else 0))


def _ending_s_max(target: str) -> float:
    from harness.clock import SystemClock
    from harness.errors import UnknownNameError
    from harness.targets import ending_s_max

    with contextlib.suppress(ImportError, UnknownNameError):  # a target that is not here, or none: the test says so
        return ending_s_max(target, SystemClock())
    return 0.0


def _turn_s_max(target: str) -> float:
    """How long a run may wait for its turn, behind one of each other worker and one from elsewhere; 0: the target has no turns."""
    from harness.capabilities import TurnTaking
    from harness.clock import SystemClock
    from harness.errors import UnknownNameError
    from harness.kind.lock import TURN_S_MAX
    from harness.targets import create

    with contextlib.suppress(ImportError, UnknownNameError):  # a target that is not here, or none: the test says so
        if isinstance(create(target, SystemClock()), TurnTaking):
            return TURN_S_MAX * int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return 0.0
