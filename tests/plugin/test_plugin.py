"""The plugin from outside: inner test suites with good, wrong and impossible scenarios."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from harness.kind.lock import TURN_S_MAX

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]

CONFTEST = """
import pytest
from harness.scenario import Injection, Scenario, Workload
from harness.scenario.expectations import Completes, WithinRetries
from harness.scenario.faults import Kill
from harness.scenario.triggers import AtStep

def job(module, **environment):
    return Workload(
        name="job", command=("{python}", "-m", module), steps=10, save_every=5, layout="text-file", directory=ROOT, sources=("workloads/counter",),
        environment={"STEPS": "10", "STEP_SECONDS": "0", "SAVE_EVERY": "5", **environment},
    )

def scenario(name, workload, step=3, expects=(Completes(), WithinRetries(attempts_max=2)), tags=()):
    return Scenario(
        name=name, why="a test", workload=workload, injections=(Injection(fault=Kill(), at=AtStep(step=step)),), expects=expects, tags=tags,
    )

GOOD = scenario("a-good-job-recovers", job("workloads.counter.train"))
WRONG = scenario("a-job-that-may-not-be-retried-fails", job("workloads.counter.train"), expects=(WithinRetries(attempts_max=1),))
NOT_LANDED = scenario("a-fault-that-never-comes-proves-nothing", job("workloads.counter.train"), step=99)
OF_A_CLUSTER = scenario("a-job-falls-back-to-another-pool", job("workloads.counter.train"), tags=("cluster",))
MISSING = scenario("a-job-whose-program-is-missing-is-an-error", Workload(name="job", command=("no-such-program",)))

@pytest.hookimpl
def pytest_harness_scenarios():
    return {found.name: found for found in CHOSEN}
"""

TEST = """
import pytest

@pytest.mark.chaos
def test_scenario(chaos_run):
    assert chaos_run.verdict.is_valid, chaos_run.explain()

def test_plain():
    pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makepyfile(test_inner=TEST)
    pytester.makeini("[pytest]\njunit_family = xunit1\nfilterwarnings = error\naddopts = --strict-markers -p no:randomly\n")
    return pytester


def bring(pytester: pytest.Pytester, *chosen: str) -> None:
    pytester.makeconftest(f"ROOT = {str(ROOT)!r}\n{CONFTEST}\nCHOSEN = [{', '.join(chosen)}]\n")


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-m", "chaos", *arguments)


def test_a_plain_run_kills_nothing(suite: pytest.Pytester) -> None:
    bring(suite, "GOOD")

    result = suite.runpytest_subprocess()

    result.assert_outcomes(passed=1, deselected=1)
    assert not (suite.path / "runs").exists()


def test_a_valid_run_passes_a_broken_promise_fails_and_a_broken_harness_is_an_error(suite: pytest.Pytester) -> None:
    bring(suite, "GOOD", "WRONG", "MISSING")

    result = run(suite)

    result.assert_outcomes(passed=1, failed=1, errors=1, deselected=1)
    result.stdout.fnmatch_lines(["*within-retries: task 0 took 2 attempts, 1 are promised*"])
    result.stdout.fnmatch_lines(["*cannot find 'no-such-program'*"])


def test_a_run_that_proved_nothing_is_an_error_and_never_a_pass(suite: pytest.Pytester) -> None:
    bring(suite, "NOT_LANDED")

    result = run(suite)

    result.assert_outcomes(errors=1, deselected=1)
    result.stdout.fnmatch_lines(["*NothingProvedError*unknown*"])


def test_ids_are_the_scenarios_names_and_one_can_be_chosen_without_the_marker_expression(suite: pytest.Pytester) -> None:
    bring(suite, "GOOD", "WRONG")

    result = suite.runpytest_subprocess("test_inner.py::test_scenario[a-good-job-recovers]", "-v")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["*test_scenario?a-good-job-recovers?*PASSED*"])


def test_a_marker_with_scenarios_needs_no_catalogue(suite: pytest.Pytester) -> None:
    suite.makeconftest(f"ROOT = {str(ROOT)!r}\n{CONFTEST.split('@pytest.hookimpl', maxsplit=1)[0]}")
    suite.makepyfile(
        test_inner="""
        import pytest
        from conftest import GOOD

        @pytest.mark.chaos(GOOD)
        def test_mine(chaos_run):
            assert chaos_run.verdict.is_valid

        @pytest.mark.chaos
        def test_by_hand(chaos_runner):
            assert chaos_runner(GOOD).verdict.is_valid
        """
    )

    run(suite).assert_outcomes(passed=2)


def test_without_a_catalogue_the_message_says_what_to_write(suite: pytest.Pytester) -> None:
    result = run(suite)

    assert result.ret != 0
    result.stdout.fnmatch_lines(["*no conftest.py implements pytest_harness_scenarios*"])


def test_an_unknown_target_is_refused_by_name(suite: pytest.Pytester) -> None:
    bring(suite, "GOOD")

    result = run(suite, "--target", "moon")

    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*no target is named 'moon'*local*"])


def test_a_missing_target_is_a_skip_and_with_require_an_error(suite: pytest.Pytester) -> None:
    bring(suite, "GOOD")
    conftest = suite.path / "conftest.py"
    conftest.write_text(
        conftest.read_text()
        + "\nimport harness.targets\n"
        + "harness.targets.availability = lambda name: harness.targets.Availability(is_available=False, reason='not here', advice='go there')\n"
    )

    run(suite).assert_outcomes(skipped=1, deselected=1)
    run(suite, "--require", "docker").assert_outcomes(skipped=1, deselected=1)
    result = run(suite, "--require", "docker,local")

    result.assert_outcomes(errors=1, deselected=1)
    result.stdout.fnmatch_lines(["*'local' is not available: not here; go there*--require*"])


def test_what_is_not_here_is_brought_up_once_for_all_workers_and_taken_down_after_them(suite: pytest.Pytester) -> None:
    bring(suite, "GOOD")
    log = suite.path / "machine.log"
    conftest = suite.path / "conftest.py"
    conftest.write_text(
        conftest.read_text()
        + f"""
from dataclasses import replace
from pathlib import Path

import harness.targets as targets

LOG = Path({str(log)!r})

def note(what):
    with LOG.open("a") as file:
        file.write(what + chr(10))

def is_up():
    return LOG.exists() and "up" in LOG.read_text().split()

MOON = replace(
    targets._TARGETS["local"],
    availability=lambda: targets.Availability(is_available=is_up(), reason="not here", advice="go there"),
    bring_up=lambda _clock, say: (note("up"), say("brought up")),
    take_down=lambda _say: note("down"),
)
targets._TARGETS = {{**targets._TARGETS, "moon": MOON}}
"""
    )

    result = run(suite, "--target", "moon", "--bring-up", "-n", "2")

    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["brought up"])
    assert log.read_text().split() == ["up", "down"]


def test_junit_has_what_is_needed_to_find_the_run_again_even_where_it_broke(suite: pytest.Pytester) -> None:
    bring(suite, "GOOD", "MISSING")

    run(suite, "--junitxml=out.xml", "--seed", "7")

    cases = {case.get("name"): case for case in ET.parse(suite.path / "out.xml").iter("testcase")}
    for case in cases.values():
        properties = {found.get("name"): found.get("value") for found in case.iter("property")}
        assert properties["seed"] == "7"
        assert properties["target"] == "local"
        assert "scenario" in properties
        assert Path(properties["run_directory"] or "").is_dir()
    good = {found.get("name"): found.get("value") for found in cases["test_scenario[a-good-job-recovers]"].iter("property")}
    assert good["verdict"] == "valid"


def test_workers_of_xdist_share_runs_and_golden_runs_without_touching_each_other(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_inner="""
        import msgspec, pytest
        from conftest import GOOD
        from harness.scenario.expectations import BitExactResume, Completes

        SAME = [msgspec.structs.replace(GOOD, name=f"the-same-job-number-{n}", expects=(Completes(), BitExactResume())) for n in range(6)]

        @pytest.mark.chaos(*SAME)
        def test_same(chaos_run):
            assert chaos_run.verdict.is_valid, chaos_run.explain()
        """
    )
    bring(suite, "GOOD")

    result = run(suite, "-n", "3")

    result.assert_outcomes(passed=6)
    golden = list((suite.path / "runs" / ".golden").glob("*/*/verdict.json"))
    assert len(golden) == 2


def test_runs_go_where_they_are_told_and_checkpoints_stay_when_asked(suite: pytest.Pytester) -> None:
    bring(suite, "GOOD")

    run(suite, "--runs-dir", "elsewhere", "--keep").assert_outcomes(passed=1, deselected=1)

    (directory,) = (suite.path / "elsewhere" / "a-good-job-recovers").iterdir()
    assert (directory / "checkpoints" / "job-task-0-checkpoint.txt").read_text() == "10"
    assert (directory / "report.html").exists()
    assert (suite.path / "elsewhere" / "index.html").exists()


def test_loading_the_plugin_imports_nothing_heavy(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_inner="""
        import sys

        def test_light():
            heavy = {"msgspec", "jinja2", "typer", "rich", "psutil", "jax", "ray", "hypothesis", "kubernetes", "harness.runner", "harness.scenario"}
            assert not heavy & set(sys.modules)
        """
    )

    suite.runpytest_subprocess("-p", "no:hypothesispytest").assert_outcomes(passed=1)


def test_what_a_target_does_not_run_is_left_out_and_counted(suite: pytest.Pytester) -> None:
    bring(suite, "GOOD", "OF_A_CLUSTER")

    result = run(suite)

    result.assert_outcomes(passed=1, deselected=1)
    result.stdout.fnmatch_lines(
        ["chaos: 1 scenarios of the catalogue do not run on target local; `harness run NAME --target local` says why"]
    )


TAKES_TURNS = """
from pathlib import Path

import harness.targets as targets
from harness.targets.local import LocalTarget

class TakesTurns(LocalTarget):
    def take_turn(self, say):
        assert Path("runs/index.html").exists()
        say("process 7 works on the cluster c")
        say("process 8 works on the cluster c")
        return 0.0

targets._TARGETS = {**targets._TARGETS, "local": replace(targets._TARGETS["local"], create=TakesTurns)}
"""


@pytest.mark.parametrize("options", [(), ("-v",), ("-n", "2"), ("-s",)], ids=["plain", "verbose", "xdist", "not captured"])
def test_a_wait_for_a_turn_is_told_on_the_terminal_at_once(suite: pytest.Pytester, options: tuple[str, ...]) -> None:
    bring(suite, "GOOD")
    conftest = suite.path / "conftest.py"
    conftest.write_text(conftest.read_text() + "\nfrom dataclasses import replace\n" + TAKES_TURNS)

    result = run(suite, *options, "--junitxml=out.xml")

    result.assert_outcomes(passed=1, deselected=0 if "-n" in options else 1)
    result.stdout.fnmatch_lines(
        ["chaos: a-good-job-recovers: process 7 works on the cluster c", "chaos: a-good-job-recovers: goes on after 0 s"]
    )
    result.stdout.no_fnmatch_line("*process 8*")
    assert [case.get("name") for case in ET.parse(suite.path / "out.xml").iter("testcase")] == ["test_scenario[a-good-job-recovers]"]


LIMITS = """
import msgspec, pytest
from conftest import GOOD
from harness.scenario.expectations import BitExactResume, Completes

QUICK = msgspec.structs.replace(GOOD, name="a-quick-one-is-left-alone", deadline_s=20.0)
LONG = msgspec.structs.replace(GOOD, name="a-long-one-is-given-its-time", deadline_s=900.0)
COMPARED = msgspec.structs.replace(LONG, name="a-compared-one-is-given-the-time-of-three", expects=(Completes(), BitExactResume()))

def limit(node):
    mark = node.get_closest_marker("timeout")
    print("limit of", node.name, "is", mark.args[0] if mark else "general")

@pytest.mark.chaos(QUICK, LONG, COMPARED)
def test_any(chaos_scenario, request):
    limit(request.node)

@pytest.mark.chaos(LONG)
@pytest.mark.timeout(7)
def test_own(chaos_scenario, request):
    limit(request.node)

@pytest.mark.timeout(8)
class TestOwn:
    @pytest.mark.chaos(LONG)
    def test_own(self, chaos_scenario, request):
        limit(request.node)
"""


def limits(pytester: pytest.Pytester, *arguments: str) -> list[str]:
    """What each of the inner tests is given, in their order."""
    bring(pytester, "GOOD")
    pytester.makepyfile(test_inner=LIMITS)
    result = run(pytester, "-s", *arguments)
    result.assert_outcomes(passed=5)
    return [line.rpartition(" is ")[2] for line in result.outlines if "limit of" in line]


@pytest.fixture
def general(suite: pytest.Pytester) -> pytest.Pytester:
    """A suite whose tests may take five minutes."""
    ini = suite.path / "tox.ini"
    ini.write_text(ini.read_text() + "\ntimeout = 300\n")
    return suite


def test_a_general_timeout_gives_a_scenario_the_time_that_it_may_take_and_leaves_a_timeout_of_ones_own(general: pytest.Pytester) -> None:
    assert limits(general) == ["general", "960.0", "2880.0", "7", "8"]


def test_where_runs_take_turns_the_wait_for_each_other_worker_counts(general: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    one_s = TURN_S_MAX + 1500.0
    monkeypatch.delenv("PYTEST_XDIST_WORKER_COUNT", raising=False)  # of these tests themselves

    assert limits(general, "--target", "kind") == [str(one_s + 20.0), str(one_s + 900.0), str(3 * (one_s + 900.0)), "7", "8"]
    monkeypatch.setenv("PYTEST_XDIST_WORKER_COUNT", "2")
    assert limits(general, "--target", "kind")[0] == str(one_s + 20.0 + TURN_S_MAX)


def test_a_timeout_of_the_command_line_holds_and_without_one_there_is_none(suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    assert limits(suite) == ["general", "general", "general", "7", "8"]
    assert limits(suite, "--timeout", "60") == ["general", "general", "general", "7", "8"]
    assert limits(suite, "-p", "no:timeout", "-W", "ignore", "-o", "addopts=-p no:randomly") == ["general", "general", "general", "7", "8"]
    monkeypatch.setenv("PYTEST_TIMEOUT", "100")
    assert limits(suite)[1] == "960.0"
