"""One test id per scenario: it runs inside the fixture ``chaos_run``, and the test only asserts."""

import contextlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import pytest

from harness.pytest_plugin import ChaosRunner, NothingProvedError, RecordProperty
from harness.pytest_plugin.absence import skip_or_fail_without_target
from harness.pytest_plugin.asked import MARKER, is_to_be_kept, runs_dir_asked_for, seed_asked_for, target_asked_for
from harness.pytest_plugin.catalogue import belonging
from harness.pytest_plugin.time_limits import timeout_marks
from harness.pytest_plugin.turns import Announcer, WaitTeller
from harness.pytest_plugin.workers import is_worker

if TYPE_CHECKING:
    from harness.cli.standing_index import StandingIndex
    from harness.clock import Clock
    from harness.explore.schedules import Failure
    from harness.runner import Run
    from harness.scenario import Scenario
    from harness.store import RunDirectory, RunStore

INDEX: pytest.StashKey["StandingIndex"] = pytest.StashKey()

Opened = Callable[["RunDirectory"], None]
"""Told of the run directory as soon as it exists."""


class Case(NamedTuple):
    """What one test runs, where, and by which seed."""

    scenario: "Scenario"
    target: str
    seed: int


def pytest_configure(config: pytest.Config) -> None:
    """Let waits be told, by the process that has the terminal."""
    if not is_worker(config):
        config.pluginmanager.register(Announcer(config))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test of each scenario where ``chaos_run`` is used: those of the marker, ``@pytest.mark.chaos(A, B)``, or the catalogue's.

    A failure that was written down stands for its scenario, its target and its seed.
    """
    if "chaos_scenario" not in metafunc.fixturenames:
        return
    config, marker = metafunc.config, metafunc.definition.get_closest_marker(MARKER)
    asked: Sequence[Scenario | Failure] = marker.args if marker is not None and marker.args else belonging(config)
    cases = [_case(each, config) for each in asked]
    params = [pytest.param(case, id=case.scenario.name, marks=_marks(case, metafunc)) for case in cases]
    metafunc.parametrize("chaos_scenario", params)


def _case(asked: "Scenario | Failure", config: pytest.Config) -> Case:
    """What is run: a failure has a target and a seed of its own, whatever the command line says."""
    from harness.scenario import Scenario

    if isinstance(asked, Scenario):
        return Case(asked, target_asked_for(config), seed_asked_for(config))
    if not hasattr(asked, "case"):
        raise pytest.UsageError(f"{asked!r} in @pytest.mark.{MARKER}(...) is no scenario, and no failure that was written down")
    return Case(asked.case.scenario, asked.target, asked.seed)


def _marks(case: Case, metafunc: pytest.Metafunc) -> list[pytest.MarkDecorator]:
    slow = [pytest.mark.slow] if "slow" in case.scenario.tags else []
    return [*slow, *timeout_marks(case.scenario, metafunc, target=case.target)]


@pytest.fixture
def chaos_runner(request: pytest.FixtureRequest, record_property: RecordProperty) -> ChaosRunner:
    """A function that runs a scenario on the chosen target and returns the judged run.

    Raises:
        NothingProvedError: When the verdict is unknown.
    """
    config = request.config
    skip_or_fail_without_target(config, target_asked_for(config))

    def run(scenario: "Scenario") -> "Run":
        __tracebackhide__ = True
        return _judged(_case(scenario, config), request.node, record_property)

    return run


@pytest.fixture
def chaos_run(chaos_scenario: Case, request: pytest.FixtureRequest, record_property: RecordProperty) -> "Run":
    """The judged run of one scenario; assert ``chaos_run.verdict.is_valid, chaos_run.explain()``.

    Raises:
        NothingProvedError: When the verdict is unknown.
    """
    skip_or_fail_without_target(request.config, chaos_scenario.target)
    return _judged(chaos_scenario, request.node, record_property)


def _judged(case: Case, item: pytest.Item, record_property: RecordProperty) -> "Run":
    __tracebackhide__ = True
    record_property("scenario", case.scenario.name)
    record_property("target", case.target)
    record_property("seed", str(case.seed))
    judged = _run(case, item, lambda directory: record_property("run_directory", str(directory.path)))
    record_property("verdict", str(judged.verdict.outcome))
    if judged.verdict.outcome == "unknown":
        raise NothingProvedError(judged.explain())
    return judged


def _run(case: Case, item: pytest.Item, opened: Opened) -> "Run":
    from harness.clock import SystemClock
    from harness.report import write_run
    from harness.runner import Options, run_scenario
    from harness.store import RunStore
    from harness.targets import create

    config, clock = item.config, SystemClock()
    store = RunStore(runs_dir_asked_for(config), clock)
    index = _index(config, store, clock)
    index.renew()
    options = Options(
        root=config.rootpath,
        seed=case.seed,
        keep=is_to_be_kept(config),
        opened=opened,
        progress=WaitTeller(item, clock),
    )
    run = run_scenario(case.scenario, target=lambda: create(case.target, clock), clock=clock, store=store, options=options)
    write_run(run.directory)
    index.age()
    index.renew()
    return run


def _index(config: pytest.Config, store: "RunStore", clock: "Clock") -> "StandingIndex":
    """The page over all runs, of this process: it is there from the first run on."""
    from harness.cli.standing_index import StandingIndex

    if INDEX not in config.stash:
        config.stash[INDEX] = StandingIndex(store, clock)
        with contextlib.suppress(OSError):  # the run itself says it better
            store.root.mkdir(parents=True, exist_ok=True)
    return config.stash[INDEX]
