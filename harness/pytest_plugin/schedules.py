"""The fixture ``chaos_schedule``: it runs what Hypothesis draws, once.

Workers of pytest-xdist tell what was hit to the process that started them.
"""

import sys
from typing import TYPE_CHECKING

import pytest

from harness.pytest_plugin import NothingProvedError, ScheduleTester
from harness.pytest_plugin.absence import skip_or_fail_without_target
from harness.pytest_plugin.asked import runs_dir_asked_for, seed_asked_for, target_asked_for
from harness.pytest_plugin.coverage import COVERAGE, cover
from harness.pytest_plugin.workers import WorkerNode

if TYPE_CHECKING:
    from harness.explore.schedules import ScheduleRun
    from harness.scenario import Scenario, Schedule, Workload

COVERAGE_OF_WORKER = "chaos_coverage"


def pytest_configure(config: pytest.Config) -> None:
    """Nothing has been hit yet."""
    config.stash[COVERAGE] = {}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: WorkerNode, error: object) -> None:
    """Take in what a worker of xdist has hit; one that crashed tells nothing."""
    del error
    said = getattr(node, "workeroutput", {}).get(COVERAGE_OF_WORKER)
    if not isinstance(said, str):
        return
    import msgspec

    from harness.explore.schedules import Coverage

    for name, coverage in msgspec.json.decode(said, type=dict[str, Coverage]).items():
        node.config.stash[COVERAGE].setdefault(name, Coverage()).merge(coverage)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In a worker of xdist: tell what was hit."""
    config = session.config
    if hasattr(config, "workeroutput") and config.stash[COVERAGE]:
        import msgspec

        config.workeroutput[COVERAGE_OF_WORKER] = msgspec.json.encode(config.stash[COVERAGE]).decode()


@pytest.fixture(scope="session")  # Hypothesis wants no fixture that is made anew for each test, and what is remembered is the session's
def chaos_schedule(request: pytest.FixtureRequest) -> ScheduleTester:
    """A function that runs a schedule on a job, once: what fails is shrunk and written, and shown by ``explain()``.

    Raises:
        NothingProvedError: When the verdict is unknown, or Hypothesis's settings are none for a test that runs jobs.
    """
    from harness.clock import SystemClock
    from harness.explore.schedules import ScheduleRunner
    from harness.store import RunStore

    config, clock = request.config, SystemClock()
    skip_or_fail_without_target(config, target_asked_for(config))
    store = RunStore(runs_dir_asked_for(config), clock)
    runner = ScheduleRunner(
        store=store,
        root=config.rootpath,
        clock=clock,
        target=target_asked_for(config),
        seed=seed_asked_for(config),
    )

    def run(job: "Scenario | Workload", schedule: "Schedule") -> "ScheduleRun":
        __tracebackhide__ = True
        refuse_unfit_settings(config)
        judged = runner.run(job, schedule)
        cover(config, job, schedule, judged)
        if judged.verdict.outcome == "unknown":
            raise NothingProvedError(judged.explain())
        return judged

    return run


def refuse_unfit_settings(config: pytest.Config) -> None:
    """Say it before a job runs: what Hypothesis would say of a test that takes too long for it names neither the job nor a way out.

    Raises:
        NothingProvedError: When a profile is in force by which nothing can be said of a job.
    """
    if "hypothesis" not in sys.modules:
        return
    from harness.strategies.profiles import why_unfit

    why = why_unfit(is_chosen=bool(config.getoption("--hypothesis-profile", default=None)))
    if why:
        raise NothingProvedError(why)
