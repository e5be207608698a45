"""The catalogue as tests: ``pytest -m chaos``."""

import pytest

from harness.runner import Run


@pytest.mark.chaos
def test_scenario(chaos_run: Run) -> None:
    assert chaos_run.verdict.is_valid, chaos_run.explain()
