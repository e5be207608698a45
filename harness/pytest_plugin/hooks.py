"""The hook by which a repository brings its own catalogue."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.scenario import Scenario


@pytest.hookspec(firstresult=True)
def pytest_harness_scenarios(config: pytest.Config) -> "Mapping[str, Scenario] | None":
    """Return the catalogue, name to scenario; called, more than once, only where a test asks for ``chaos_run`` or ``-m`` names ``chaos``.

    Implement it in the root ``conftest.py``. Workloads' directories are relative to the root directory of pytest.
    """
