"""Brings the catalogue to the plugin."""

from collections.abc import Mapping

import pytest

from harness.scenario import Scenario


@pytest.hookimpl
def pytest_harness_scenarios() -> Mapping[str, Scenario]:
    """The catalogue of this repository."""
    from scenarios import CATALOGUE

    return CATALOGUE
