"""What is chosen to run."""

import sys
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from harness.cli.catalogue import CatalogueMissingError, choose, left_out, load, matching_scenarios, misplaced
from harness.errors import UnknownNameError, UsageError
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


@pytest.mark.parametrize("tags", [[], ["x"]])
def test_a_catalogue_with_two_scenarios_of_one_name_is_refused_however_they_are_chosen(tags: list[str]):
    one = msgspec.structs.replace(SCENARIO, tags=("x",))
    known = {"one": one, "two": msgspec.structs.replace(one, deadline_s=1.0)}

    with pytest.raises(UsageError, match="two of the scenarios are named 'a-job-runs'"):
        choose(known, (), everything=not tags, slow=False, tags=tags)


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


def test_those_that_match_have_one_of_the_tags_and_belong_to_the_target():
    known = {
        name: msgspec.structs.replace(SCENARIO, name=name, tags=tags)
        for name, tags in (("a-job-here", ("x",)), ("a-job-there", ("x", "cluster")), ("another-job", ("y",)))
    }

    def belongs(scenario: Scenario) -> bool:
        return "cluster" not in scenario.tags

    assert [found.name for found in matching_scenarios(known, tags=("x",), belongs=belongs)] == ["a-job-here"]
    assert [found.name for found in matching_scenarios(known, tags=(), belongs=belongs)] == ["a-job-here", "another-job"]
    with pytest.raises(UnknownNameError, match="no tag is named 'z'"):
        matching_scenarios(known, tags=("z",), belongs=belongs)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "\nfrom harness.scenario.faults import EvictWorkload",
            r"cannot import name 'EvictWorkload' from .*\(MODULE.py, line 2\); import EvictWorkload from harness.scenario.cluster_faults$",
        ),
        ("from harness.scenario.faults import Moon", r"ImportError .*'Moon'.*; correct that file$"),
        ("import no_such_package", r"ModuleNotFoundError .*; install no_such_package, or correct its name$"),
        ("object().moon", r"AttributeError .*\(MODULE.py, line 1\); correct that file$"),
        ("", r"module 'MODULE' has no attribute 'CATALOGUE'; run in a directory that has one"),
        (None, r"no module named MODULE; run in a directory that has one, name it with --catalogue, or use --config$"),
    ],
    ids=["name-of-another-module", "no-such-name", "no-such-package", "attribute", "no-catalogue", "no-module"],
)
def test_a_catalogue_that_cannot_be_loaded_says_what_to_correct(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest, text: str | None, says: str
):
    module = f"chaos_{request.node.callspec.id.replace('-', '_')}"
    if text is not None:
        (tmp_path / f"{module}.py").write_text(text)
    monkeypatch.syspath_prepend(str(tmp_path))

    with pytest.raises(CatalogueMissingError, match=says.replace("MODULE", module)):
        load(catalogue=f"{module}:CATALOGUE", config=None, root=tmp_path)


def test_workloads_that_lie_where_the_catalogue_does_and_not_here_are_said_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    there, here = tmp_path / "there", tmp_path / "here"
    (there / "workloads" / "job").mkdir(parents=True)
    here.mkdir()
    module = ModuleType("of_a_test")
    module.__file__ = str(there / "of_a_test.py")
    monkeypatch.setitem(sys.modules, "of_a_test", module)
    job = msgspec.structs.replace(SCENARIO, workload=Workload(name="job", command=("job",), sources=("workloads/job",)))

    def said(root: Path, scenario: Scenario = job, catalogue: str = "of_a_test:CATALOGUE") -> str:
        return misplaced([scenario], catalogue=catalogue, root=root)

    assert said(here).endswith(f"there is no workloads/job; the catalogue lies in {there}: add --root {there}")
    assert said(there) == ""
    assert said(here, SCENARIO) == ""
    assert said(here, catalogue="not_imported") == ""
    lost = msgspec.structs.replace(job, workload=msgspec.structs.replace(job.workload, sources=("workloads/lost",)))
    assert said(here, lost) == ""  # it is nowhere: what runs it says so
    (here / "workloads" / "job").mkdir(parents=True)
    assert said(here) == ""
