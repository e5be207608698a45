"""The fixture ``chaos_kill_point``: a test judges what recovery does after a death at one kill point."""

from typing import TYPE_CHECKING

import pytest

from harness.pytest_plugin import NothingProvedError, RecordProperty
from harness.pytest_plugin.asked import seed_asked_for, target_asked_for
from harness.pytest_plugin.kill_points.session import Planned, begin_session, bench_of, end_session, tell_session
from harness.pytest_plugin.workers import WorkerNode

if TYPE_CHECKING:
    from harness.explore.kill_points import KillPointRun


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerNode) -> None:
    """Tell a worker of xdist which session it is of."""
    tell_session(node)


def pytest_configure(config: pytest.Config) -> None:
    """Name the session."""
    begin_session(config)


@pytest.fixture
def chaos_kill_point(chaos_moments: Planned | None, request: pytest.FixtureRequest, record_property: RecordProperty) -> "KillPointRun":
    """What recovery does after a death at one kill point; assert ``chaos_kill_point.verdict.is_valid, chaos_kill_point.explain()``.

    Raises:
        NothingProvedError: When the verdict is unknown.
    """
    config = request.config
    if chaos_moments is None:
        pytest.skip(f"kill points are tried on this machine only, not on target {target_asked_for(config)}")
    plan, test = chaos_moments
    record_property("workload", test.job)
    record_property("seed", str(seed_asked_for(config)))
    if test.refused:
        if plan.directory:
            record_property("run_directory", plan.directory)
        record_property("verdict", "unknown")
        raise NothingProvedError(f"{test.id}: unknown: {test.refused}")
    judged = bench_of(config, plan).judge(test)
    record_property("run_directory", str(judged.directory.path))
    record_property("verdict", str(judged.verdict.outcome))
    if judged.verdict.outcome == "unknown":
        raise NothingProvedError(judged.explain())
    return judged


def pytest_sessionfinish(session: pytest.Session) -> None:
    """End what judges in this process."""
    end_session(session.config)
