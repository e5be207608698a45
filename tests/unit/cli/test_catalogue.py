"""What is chosen to run."""

from pathlib import Path

import msgspec
import pytest

from harness.cli.catalogue import choose, left_out
from harness.errors import UsageError
from harness.scenario import Scenario, Workload, encode
from harness.scenario.expectations import Completes

SCENARIO = Scenario(name="a-job-runs", why="a test", workload=Workload(name="job", command=("job",)), expects=(Completes(),))
KNOWN = {SCENARIO.name: SCENARIO}


def choose_named(*names: str) -> list[Scenario]:
    return choose(KNOWN, names, everything=False, slow=False, tags=())


def test_a_scenario_named_twice_is_run_once():
    assert choose_named("a-job-runs", "a-job-runs") == [SCENARIO]


def test_two_scenarios_of_one_name_are_refused_for_one_verdict_would_hide_the_other(tmp_path: Path):
    path = tmp_path / "changed.json"
    path.write_bytes(encode(msgspec.structs.replace(SCENARIO, deadline_s=1.0)))

    with pytest.raises(UsageError, match="two of the scenarios are named 'a-job-runs'"):
        choose_named("a-job-runs", str(path))


def test_what_does_not_belong_to_the_target_runs_only_when_it_is_named():
    def choose_all(*names: str) -> list[Scenario]:
        return choose(KNOWN, names, everything=True, slow=False, tags=(), belongs=lambda _scenario: False)

    assert choose_all("a-job-runs") == [SCENARIO]
    with pytest.raises(UsageError, match="no scenario that matches runs on this target"):
        choose_all()


def test_what_a_choice_leaves_out_is_counted_with_the_reason():
    here, slow, elsewhere = (
        msgspec.structs.replace(SCENARIO, name=f"a-job-runs-{name}", tags=tags)
        for name, tags in (("here", ("x",)), ("slowly", ("x", "slow")), ("elsewhere", ("cluster",)))
    )
    known = {scenario.name: scenario for scenario in (here, slow, elsewhere)}

    def belongs(scenario: Scenario) -> bool:
        return "cluster" not in scenario.tags

    assert left_out(known, [here], tags=(), belongs=belongs) == "1 that belong to another target, 1 slow (--slow)"
    assert left_out(known, [here, slow], tags=(), belongs=belongs) == "1 that belong to another target"
    assert left_out(known, [here], tags=("x",), belongs=belongs) == "1 slow (--slow)"
    assert left_out(known, [here, slow], tags=("x",), belongs=belongs) == ""
