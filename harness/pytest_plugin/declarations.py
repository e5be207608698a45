"""What the plugin declares to pytest: the hook of the catalogue, the options, the markers."""

from pathlib import Path

import pytest

from harness.pytest_plugin import hooks
from harness.pytest_plugin.asked import MARKER


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register ``pytest_harness_scenarios``."""
    pluginmanager.add_hookspecs(hooks)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of chaos tests."""
    group = parser.getgroup("chaos", "chaos tests of training jobs")
    group.addoption("--target", default="local", help="where workloads run (default: local)")
    group.addoption("--seed", type=int, default=0, help="seed of workloads and schedules (default: 0); stored in every history")
    group.addoption("--runs-dir", type=Path, default=Path("runs"), help="where run directories are made (default: runs)")
    group.addoption("--require", default="", help="targets, separated by commas, whose absence is an error instead of a skip")
    group.addoption(
        "--bring-up",
        action="store_true",
        help="bring the target up for the session where it is not here: the kind cluster, the Docker engine",
    )
    group.addoption("--emulator", action="store_true", help="with --target gcp: run on an emulator that lives as long as the session")
    group.addoption(
        "--plan",
        action="store_true",
        help="with --target gcp: make a plan of the chosen tests and run nothing, which on a project is what happens without --apply, too",
    )
    group.addoption("--apply", type=Path, default=None, help="with --target gcp: run what this plan names, if it still holds")
    group.addoption("--plan-file", type=Path, default=None, help="where a plan is written (default: plan.json)")
    group.addoption("--gcp-config", type=Path, default=None, help="a harness.toml whose [gcp] says which project, and within which limits")
    group.addoption("--keep", action="store_true", help="keep checkpoint directories of valid runs too")
    group.addoption(
        "--kill-points",
        choices=("each", "sample", "cells"),
        default="",
        help="which kill points of a recorded run are tests: each; sample, one of each kind by the seed (default); cells, one test a phase",
    )
    group.addoption(
        "--kill-points-of",
        default="",
        help="jobs whose kill points are tests, separated by commas: workloads of the catalogue, or a harness.toml (default: all)",
    )
    group.addoption("--storage", default="posix", help="storage models of kill points, separated by commas, or all (default: posix)")
    group.addoption("--scope", default="", help="how much dies at kill points: process, sidecar, node, separated by commas (default: all)")
    group.addoption(
        "--chaos-profile",
        default="",
        help="what Hypothesis tries of drawn schedules: pr (what has failed before), ci (25 a test; default) or nightly (200 a test)",
    )
    group.addoption(
        "--chaos-examples",
        type=Path,
        default=None,
        help="failing examples of another run, which are tried too: the .hypothesis below its runs directory",
    )


@pytest.hookimpl(tryfirst=True)  # --markers shows ours before those of pytest
def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    config.addinivalue_line("markers", f"{MARKER}: kills real training jobs; runs only when -m names it")
    config.addinivalue_line("markers", "slow: takes more than 20 seconds")
