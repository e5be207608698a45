"""The scenarios that a repository brings, and those of them that the target runs."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

from harness.pytest_plugin.asked import is_asked_for, target_asked_for

if TYPE_CHECKING:
    from harness.scenario import Scenario


def catalogue_of(config: pytest.Config) -> "Mapping[str, Scenario]":
    """All that ``pytest_harness_scenarios`` returns.

    Raises:
        pytest.UsageError: When nobody implements it, or it returns something else.
    """
    catalogue = config.hook.pytest_harness_scenarios(config=config)
    if catalogue is None:
        raise pytest.UsageError(
            "a chaos test names no job of its own, as @pytest.mark.chaos(JOB) does, and no conftest.py implements "
            "pytest_harness_scenarios(config), which brings a catalogue"
        )
    if not isinstance(catalogue, Mapping):
        raise pytest.UsageError(f"pytest_harness_scenarios returned a {type(catalogue).__name__}: return a mapping of names to scenarios")
    return catalogue


def belonging(config: pytest.Config) -> "list[Scenario]":
    """The scenarios of the catalogue that the target runs without being told to."""
    catalogue = catalogue_of(config)
    if not is_asked_for(config):
        return list(catalogue.values())
    from harness.clock import SystemClock
    from harness.errors import UnknownNameError
    from harness.runner import belongs_to
    from harness.targets import create

    try:
        target = create(target_asked_for(config), SystemClock())
    except UnknownNameError as error:
        raise pytest.UsageError(str(error)) from error
    return [scenario for scenario in catalogue.values() if belongs_to(scenario, target)]
