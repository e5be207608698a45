"""A session of tests of kill points: what its workers share, and what judges in this process."""

import contextlib
import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from harness.pytest_plugin.asked import runs_dir_asked_for, seed_asked_for
from harness.pytest_plugin.kill_points.asked import surfaces_asked_for
from harness.pytest_plugin.workers import WorkerNode, told

if TYPE_CHECKING:
    from harness.explore.kill_points import Bench, Moments, Plan, Planner

SESSION: pytest.StashKey[str] = pytest.StashKey()
"""The name of the session, which its workers share."""

PROCESS: pytest.StashKey[int] = pytest.StashKey()
"""The id of the process that has begun the session, and ends it."""

SESSION_OF_WORKERS, PROCESS_OF_WORKERS = "chaos_session", "chaos_session_process"

GONE: pytest.StashKey[list[str]] = pytest.StashKey()
"""Kill points that were named and are not there."""

BENCHES: pytest.StashKey["dict[str, Bench]"] = pytest.StashKey()
"""By the run directory of the recording; of this process."""


class Planned(NamedTuple):
    """One test, with what is known of its job."""

    plan: "Plan"
    test: "Moments"


def begin_session(config: pytest.Config) -> None:
    """Name the session."""
    config.stash[SESSION] = str(told(config, SESSION_OF_WORKERS) or secrets.token_hex(6))
    config.stash[PROCESS] = int(str(told(config, PROCESS_OF_WORKERS) or os.getpid()))
    config.stash[BENCHES] = {}
    config.stash[GONE] = []


def tell_session(node: WorkerNode) -> None:
    """Tell a worker of xdist which session it is of."""
    node.workerinput[SESSION_OF_WORKERS] = node.config.stash[SESSION]
    node.workerinput[PROCESS_OF_WORKERS] = node.config.stash[PROCESS]


def end_session(config: pytest.Config) -> None:
    """End what judges in this process."""
    with contextlib.ExitStack() as stack:
        for bench in config.stash[BENCHES].values():
            stack.callback(bench.close)
    config.stash[BENCHES].clear()


def planner_of(config: pytest.Config) -> "Planner":
    """What records jobs for the session, and knows those that it has recorded."""
    from harness.clock import SystemClock
    from harness.explore.kill_points import Planner
    from harness.store import RunStore

    clock = SystemClock()
    store = RunStore(runs_dir_asked_for(config), clock)
    session = config.stash[SESSION], config.stash[PROCESS]
    return Planner(store, session, surfaces_asked_for(config), clock=clock, seed=seed_asked_for(config))


def bench_of(config: pytest.Config, plan: "Plan") -> "Bench":
    """Made with the first test of a job that this process runs."""
    from harness.clock import SystemClock
    from harness.explore.kill_points import Bench

    benches = config.stash[BENCHES]
    if plan.directory not in benches:
        benches[plan.directory] = Bench(plan, SystemClock(), name=shown(Path(plan.directory)))
    return benches[plan.directory]


def shown(path: Path) -> str:
    """A path as a person types it."""
    here = Path.cwd()
    return os.fspath(path.relative_to(here) if path.is_relative_to(here) else path)
