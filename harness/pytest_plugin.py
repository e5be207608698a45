"""``pytest -m chaos``: one test id per scenario.

A scenario runs inside the fixture ``chaos_run`` and the test only asserts, so pytest's own words fit: PASSED is a valid run, FAILED a
broken promise of the job, ERROR a broken harness or a run that proved nothing, SKIPPED a target that is not here.

Importing this module costs nothing: pytest does it at every start, so whatever is heavy is imported where it is used.
"""

import contextlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from harness.cli.standing_index import StandingIndex
    from harness.clock import Clock
    from harness.history import Event
    from harness.runner import Run
    from harness.scenario import Scenario
    from harness.store import RunDirectory, RunStore

MARKER = "chaos"
RUNS: pytest.StashKey["list[Run]"] = pytest.StashKey()
INDEX: pytest.StashKey["StandingIndex"] = pytest.StashKey()
BROUGHT_UP: pytest.StashKey[contextlib.ExitStack] = pytest.StashKey()
"""Takes down at the end what was brought up for the session."""


SHARED_S_MAX = 1500.0
"""What a run takes at most beside its turn and its deadline where runs take turns: setting up may take 600 s, mending nodes 240 s, taking
the run away and bringing node pools to rest another 600 s."""

OWN_S_MAX = 60.0
"""The same where a run has what it needs to itself."""

GOLDEN_RUNS = 2

ChaosRunner = Callable[["Scenario"], "Run"]
"""What the fixture ``chaos_runner`` gives: a scenario in, a judged run out."""

RecordProperty = Callable[[str, object], None]
"""pytest's ``record_property``."""

Opened = Callable[["RunDirectory"], None]
"""Told of the run directory as soon as it exists."""


class NothingProvedError(Exception):
    """The verdict is unknown: not the job's fault, and no pass either."""


class _Announcer:
    """Writes to the terminal what is told while a scenario runs; a worker of xdist has none, so it sends the line in a report."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Such a report says nothing to others: a setup that has passed, of no duration."""
        line = getattr(report, "chaos_line", "")
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if not line or terminal is None:
            return
        capture = self._config.pluginmanager.get_plugin("capturemanager")
        with capture.global_and_fixture_disabled() if capture is not None else contextlib.nullcontext():
            terminal.write_line(line)
            terminal.flush()


class _WaitTeller:
    """Says that a scenario waits for its turn, for whom, and that it goes on; see ``harness.runner.progress.Progress``."""

    def __init__(self, item: pytest.Item, clock: "Clock") -> None:
        self._item = item
        self._clock = clock
        self._since_s: float | None = None

    def waits(self, scenario: "Scenario", why: str) -> None:
        """It begins to wait, or waits for another."""
        if self._since_s is None:
            self._since_s = self._clock.monotonic_s()
            self._tell(f"chaos: {scenario.name}: {why}")

    def saw(self, scenario: "Scenario", events: "Sequence[Event]") -> None:
        """What happens happens after the wait."""
        del events
        if self._since_s is not None:
            self._tell(f"chaos: {scenario.name}: goes on after {self._clock.monotonic_s() - self._since_s:.0f} s")
            self._since_s = None

    def _tell(self, line: str) -> None:
        item = self._item
        report = pytest.TestReport(
            nodeid=item.nodeid, location=item.location, keywords={}, outcome="passed", longrepr=None, when="setup", chaos_line=line
        )
        item.ihook.pytest_runtest_logreport(report=report)


def pytest_addhooks(pluginmanager: pytest.PytestPluginManager) -> None:
    """Register ``pytest_harness_scenarios``."""
    from harness import pytest_hooks

    pluginmanager.add_hookspecs(pytest_hooks)


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
    group.addoption("--keep", action="store_true", help="keep checkpoint directories of valid runs too")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers."""
    config.addinivalue_line("markers", f"{MARKER}: kills real training jobs; runs only when -m names it")
    config.addinivalue_line("markers", "slow: takes more than 20 seconds")
    config.stash[RUNS] = []
    config.stash[BROUGHT_UP] = contextlib.ExitStack()
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Announcer(config))


def pytest_sessionstart(session: pytest.Session) -> None:
    """With ``--bring-up``: once for all workers, by the process that starts them."""
    config = session.config
    if not config.getoption("--bring-up") or hasattr(config, "workerinput") or not _is_asked_for(config):
        return
    from harness.clock import SystemClock
    from harness.errors import HarnessError
    from harness.targets import brought_up

    terminal = config.pluginmanager.get_plugin("terminalreporter")
    say: Callable[[str], None] = terminal.write_line if terminal is not None else lambda _line: None
    try:
        config.stash[BROUGHT_UP].enter_context(brought_up(str(config.getoption("--target")), SystemClock(), say))
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_unconfigure(config: pytest.Config) -> None:
    """Take down what was brought up for the session."""
    if BROUGHT_UP in config.stash:
        config.stash[BROUGHT_UP].close()


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say what chaos tests would run with, where they are asked for."""
    if not _is_asked_for(config):
        return None
    return f"chaos: target {config.getoption('--target')}, seed {config.getoption('--seed')}, runs in {config.getoption('--runs-dir')}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave chaos tests out unless ``-m`` names them or their ids are given: a plain ``pytest`` must not kill anything."""
    if _is_asked_for(config):
        return
    named = [argument.split("::", 1)[1] for argument in config.args if "::" in argument]
    left_out = [
        item
        for item in items
        if item.get_closest_marker(MARKER) and not any(item.nodeid.split("::", 1)[-1].startswith(name) for name in named)
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test of each scenario where ``chaos_run`` is used: those of the marker, ``@pytest.mark.chaos(A, B)``, or the catalogue's."""
    if "chaos_scenario" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker(MARKER)
    scenarios: Sequence[Scenario] = marker.args if marker is not None and marker.args else _belonging(metafunc.config)
    slow = {True: [pytest.mark.slow], False: []}
    params = [
        pytest.param(scenario, id=scenario.name, marks=[*slow["slow" in scenario.tags], *_timeout_marks(scenario, metafunc)])
        for scenario in scenarios
    ]
    metafunc.parametrize("chaos_scenario", params)


@pytest.fixture
def chaos_runner(request: pytest.FixtureRequest, record_property: RecordProperty) -> ChaosRunner:
    """A function that runs a scenario on the chosen target and returns the judged run.

    Raises:
        NothingProvedError: When the verdict is unknown.
    """
    _skip_or_fail_without_target(request.config)

    def run(scenario: "Scenario") -> "Run":
        record_property("scenario", scenario.name)
        record_property("target", request.config.getoption("--target"))
        record_property("seed", str(request.config.getoption("--seed")))
        judged = _run(scenario, request.node, lambda directory: record_property("run_directory", str(directory.path)))
        record_property("verdict", str(judged.verdict.outcome))
        request.config.stash[RUNS].append(judged)
        if judged.verdict.outcome == "unknown":
            raise NothingProvedError(judged.explain())
        return judged

    return run


@pytest.fixture
def chaos_run(chaos_scenario: "Scenario", chaos_runner: ChaosRunner) -> "Run":
    """The judged run of one scenario; assert ``chaos_run.verdict.is_valid, chaos_run.explain()``."""
    return chaos_runner(chaos_scenario)


def _is_asked_for(config: pytest.Config) -> bool:
    return re.search(rf"\b{MARKER}\b", str(config.getoption("-m", default="") or "")) is not None


def _catalogue(config: pytest.Config) -> "Mapping[str, Scenario]":
    catalogue = config.hook.pytest_harness_scenarios(config=config)
    if catalogue is None:
        raise pytest.UsageError("a test asks for chaos_run, but no conftest.py implements pytest_harness_scenarios(config)")
    if not isinstance(catalogue, Mapping):
        raise pytest.UsageError(f"pytest_harness_scenarios returned a {type(catalogue).__name__}: return a mapping of names to scenarios")
    return catalogue


def _belonging(config: pytest.Config) -> "list[Scenario]":
    """The scenarios of the catalogue that the target runs without being told to."""
    catalogue = _catalogue(config)
    if not _is_asked_for(config):
        return list(catalogue.values())
    from harness.clock import SystemClock
    from harness.errors import UnknownNameError
    from harness.runner import belongs_to
    from harness.targets import create

    try:
        target = create(str(config.getoption("--target")), SystemClock())
    except UnknownNameError as error:
        raise pytest.UsageError(str(error)) from error
    return [scenario for scenario in catalogue.values() if belongs_to(scenario, target)]


def _timeout_marks(scenario: "Scenario", metafunc: pytest.Metafunc) -> list[pytest.MarkDecorator]:
    """pytest-timeout's, where its general timeout would break off what may take longer; a mark or an option of the user's own holds."""
    config = metafunc.config
    is_own = metafunc.definition.get_closest_marker("timeout") is not None
    if is_own or not config.pluginmanager.hasplugin("timeout") or config.getoption("timeout", default=None) is not None:
        return []
    with contextlib.suppress(ValueError):  # what is no number is pytest-timeout's to refuse
        general_s = float(os.environ.get("PYTEST_TIMEOUT") or config.getini("timeout") or 0.0)
        needed_s = _longest_s(scenario, config)
        return [pytest.mark.timeout(needed_s)] if 0.0 < general_s < needed_s else []
    return []


def _longest_s(scenario: "Scenario", config: pytest.Config) -> float:
    """How long a test of a scenario may take: turn, deadline and end have limits of their own, and better words than a timeout."""
    from harness.runner import golden

    turn_s = _turn_s_max(config)
    one_s = turn_s + scenario.deadline_s + (SHARED_S_MAX if turn_s else OWN_S_MAX)
    return one_s * (1 + (GOLDEN_RUNS if golden.is_needed(scenario.expects) else 0))


def _turn_s_max(config: pytest.Config) -> float:
    """How long a run may wait for its turn, behind one of each other worker and one from elsewhere; 0: the target has no turns."""
    from harness.capabilities import TurnTaking
    from harness.clock import SystemClock
    from harness.errors import UnknownNameError
    from harness.kind.lock import TURN_S_MAX
    from harness.targets import create

    with contextlib.suppress(ImportError, UnknownNameError):  # a target that is not here, or none: the test says so
        if isinstance(create(str(config.getoption("--target")), SystemClock()), TurnTaking):
            return TURN_S_MAX * int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return 0.0


def _skip_or_fail_without_target(config: pytest.Config) -> None:
    from harness.targets import availability

    name = str(config.getoption("--target"))
    found = availability(name)
    if found.is_available:
        return
    required = str(config.getoption("--require")).split(",")
    message = f"target {name!r} is not available: {found.reason}; {found.advice}"
    if name in required:
        pytest.fail(f"{message} (and --require names it)", pytrace=False)
    pytest.skip(message)


def _run(scenario: "Scenario", item: pytest.Item, opened: Opened) -> "Run":
    from harness.clock import SystemClock
    from harness.report import write_run
    from harness.runner import Options, run_scenario
    from harness.store import RunStore
    from harness.targets import create

    config, clock = item.config, SystemClock()
    store = RunStore(Path(config.getoption("--runs-dir")).resolve(), clock)
    index = _index(config, store, clock)
    index.renew()
    options = Options(
        root=config.rootpath,
        seed=int(config.getoption("--seed")),
        keep=bool(config.getoption("--keep")),
        opened=opened,
        progress=_WaitTeller(item, clock),
    )
    run = run_scenario(scenario, target=lambda: create(str(config.getoption("--target")), clock), clock=clock, store=store, options=options)
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


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say where to look; the workers of xdist have run, so the index is made of what lies on disk."""
    if not _is_asked_for(config) or hasattr(config, "workerinput"):
        return
    runs_dir = Path(config.getoption("--runs-dir")).resolve()
    if not runs_dir.exists():
        return
    from harness.clock import SystemClock
    from harness.report import write_index
    from harness.store import RunStore

    index = write_index(RunStore(runs_dir, SystemClock()))
    terminalreporter.write_line(f"chaos: reports in {index}")
    if config.hook.pytest_harness_scenarios(config=config) is not None:
        left_out = len(_catalogue(config)) - len(_belonging(config))
        if left_out:
            target = config.getoption("--target")
            terminalreporter.write_line(
                f"chaos: {left_out} scenarios of the catalogue do not run on target {target}; `harness run NAME --target {target}` says why"
            )
