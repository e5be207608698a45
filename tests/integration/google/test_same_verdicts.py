"""The same scenario on ``local``, ``docker`` and ``gcp`` on the emulator: the same verdict, checker by checker, and the same result."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.clock import SystemClock
from harness.emulator.session import emulated_session
from harness.history import ResultSeen
from harness.runner import Options, Run, run_scenario
from harness.store import RunStore
from harness.targets import create
from harness.verdict import Outcome
from tests.contract.presence import skip_or_fail_without
from tests.integration.google.same_scenarios import CASES, Case

ROOT = Path(__file__).resolve().parents[3]

Playing = Callable[[str, Case], Run]


@pytest.fixture(scope="module")
def play(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Playing]:
    """Plays a case on a target, once; each target has uninterrupted runs of its own."""
    clock = SystemClock()
    home = tmp_path_factory.mktemp("same")
    played: dict[tuple[str, str], Run] = {}

    def play(target: str, case: Case) -> Run:
        key = (target, case.scenario.name)
        if key not in played:
            store = RunStore(home / target, clock)
            played[key] = run_scenario(
                case.scenario, target=lambda: create(target, clock), clock=clock, store=store, options=Options(root=ROOT)
            )
        return played[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(home / "state"))  # first: the session is struck off where it was written down
        with emulated_session():
            yield play


def findings(run: Run) -> list[tuple[str, str]]:
    return [(finding.checker, str(finding.outcome)) for finding in run.verdict.findings]


def results(run: Run) -> list[tuple[str, str]]:
    """The digests of what the job has left."""
    return [(event.path, event.sha256) for event in run.history.events if isinstance(event, ResultSeen)]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("target", ["local", "docker", "gcp"])
def test_a_scenario_ends_as_its_job_deserves_and_as_on_this_machine(play: Playing, target: str, name: str):
    skip_or_fail_without(target)
    case = CASES[name]

    here, there = play("local", case), play(target, case)

    assert there.verdict.outcome is case.outcome, there.explain()
    assert not case.accuser or case.accuser in {finding.checker for finding in there.verdict.worst()}, there.explain()
    assert findings(there) == findings(here), f"{here.explain()}\n{there.explain()}"
    if case.scenario.within_budget:  # where one is ended in the middle of its work, what it leaves hangs on the moment
        assert results(there) == results(here)
    if case.outcome is Outcome.VALID and case.scenario.workload.outside.result:
        assert [digest for _, digest in results(there) if digest], "what was compared is there"
