"""A release gate on the command line: passes, fails, is unknown, is worse than what was accepted, and never more than was measured."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Command

JOB = """
import os, runpy
os.environ["SAVE_EVERY"] = "2"
runpy.run_module("workloads.counter.train", run_name="__main__")
"""

SAVES_RARELY = JOB.replace('"2"', '"5"')
SAVES_NOTHING = JOB.replace('"2"', '"99"')

CATALOGUE = f"""
from harness.scenario import Injection, Scenario, Workload
from harness.scenario.expectations import Completes, MakesProgress, ResumesFromNewestDurable, WithinRetries
from harness.scenario.faults import Kill, Terminate
from harness.scenario.triggers import AtStep
from pathlib import Path

JOB = Path(__file__).with_name("job.py")

def scenario(name, fault, step, seconds="0", lost_steps_max=9, tags=("gate",)):
    workload = Workload(
        name="job", command=("{{python}}", str(JOB)), steps=10, save_every=2, layout="text-file", directory={str(ROOT)!r},
        environment={{"STEPS": "10", "STEP_SECONDS": seconds}},
    )
    expects = (Completes(), WithinRetries(attempts_max=2), ResumesFromNewestDurable(lost_steps_max=lost_steps_max))
    return Scenario(name=name, why="a test", workload=workload, injections=(Injection(fault=fault, at=AtStep(step=step)),), expects=expects, tags=tags)

SCENARIOS = (
    scenario("a-killed-job-resumes", Kill(), 9),
    scenario("a-terminated-job-resumes", Terminate(), 5),
    scenario("a-fault-never-comes", Kill(), 99, tags=("hopeless",)),
    scenario("a-job-takes-its-time", Kill(), 7, seconds="30", tags=("endless",)),
)
CATALOGUE = {{found.name: found for found in SCENARIOS}}
"""

GATE = """
[gate]
tags = ["gate"]

[thresholds]
lost_steps_max = 6
recovery_s_max = 100
"""

Gate = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def here(tmp_path: Path) -> Path:
    (tmp_path / "scenarios.py").write_text(CATALOGUE)
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "gate.toml").write_text(GATE)
    return tmp_path


def last_result(here: Path) -> dict[str, object]:
    path = max((here / "runs" / "gates").iterdir()) / "gate.json"
    return json.loads(path.read_text())


def figures_of(result: dict, name: str) -> dict[str, float | None]:
    (found,) = [each for each in result["judged"]["scenarios"] if each["name"] == name]
    return {figure: judged["figure"].get("value") for figure, judged in found["figures"].items()}


def test_a_gate_passes_is_accepted_and_finds_that_a_later_release_is_worse(harness: Command, here: Path) -> None:
    first = harness("gate", "--accept", "--summary", "summary.md", GITHUB_STEP_SUMMARY="step.md")

    assert first.returncode == 0, first.stdout + first.stderr
    assert "gate: pass" in first.stdout
    assert "no result is accepted yet" in first.stdout
    accepted = json.loads((here / "accepted.json").read_text())
    assert accepted["target"] == "local"
    assert accepted["scenarios"]["a-killed-job-resumes"]["figures"]["lost_steps"] == 1
    assert accepted["scenarios"]["a-killed-job-resumes"]["figures"]["grace_margin_s"] is None
    assert accepted["scenarios"]["a-terminated-job-resumes"]["figures"]["grace_margin_s"] > 5
    summary = (here / "summary.md").read_text()
    assert summary.startswith("## The release gate passes on target `local`")
    assert (here / "step.md").read_text() == summary
    before = (here / "accepted.json").read_bytes()

    (here / "job.py").write_text(SAVES_RARELY)
    second = harness("gate", "--json", "--summary", "summary.md")

    assert second.returncode == 1, second.stderr
    result = json.loads(second.stdout)
    assert result["judged"]["ruling"] == "fail"
    assert {each["verdict"] for each in result["judged"]["scenarios"]} == {"valid"}
    assert result == last_result(here)
    assert "regression: lost steps 4 is 3 worse than the accepted 1; 1 is allowed" in second.stderr
    assert "### What fails" in (here / "summary.md").read_text()
    assert (here / "accepted.json").read_bytes() == before

    again = harness("gate", "--from", str(max((here / "runs" / "gates").iterdir())), "--accept")

    assert again.returncode == 0, again.stdout + again.stderr
    assert json.loads((here / "accepted.json").read_text())["scenarios"]["a-killed-job-resumes"]["figures"]["lost_steps"] == 4
    assert len(list((here / "runs" / "gates").iterdir())) == 2


def test_a_threshold_that_is_not_kept_fails_and_is_not_accepted(harness: Command, here: Path) -> None:
    (here / "job.py").write_text(SAVES_NOTHING)
    result = harness("gate", "--accept")

    assert result.returncode == 1, result.stdout + result.stderr
    assert "lost steps 9: lost_steps_max is 6" in result.stdout
    assert "not accepted: " in result.stdout
    assert not (here / "accepted.json").exists()


def test_a_broken_promise_fails_and_a_fault_that_never_comes_is_unknown(harness: Command, here: Path) -> None:
    (here / "gate.toml").write_text('[gate]\ntags = ["hopeless"]\n')
    unknown = harness("gate")
    assert unknown.returncode == 2, unknown.stdout + unknown.stderr

    (here / "scenarios.py").write_text(CATALOGUE.replace("lost_steps_max=9", "lost_steps_max=0"))
    (here / "gate.toml").write_text('[gate]\nscenarios = ["a-killed-job-resumes", "a-fault-never-comes"]\n')
    broken = harness("gate", "--jobs", "2")

    assert broken.returncode == 1
    assert last_result(here)["judged"]["ruling"] == "fail"  # type: ignore[index]


def test_when_the_budget_is_used_up_the_rest_is_unknown(harness: Command, here: Path) -> None:
    (here / "gate.toml").write_text('[gate]\ntags = ["gate", "endless"]\nseeds = [0, 1]\n[budget]\nduration_s = 4\n')
    result = harness("gate", "--summary", "summary.md", "--accept")

    assert result.returncode == 2, result.stdout + result.stderr
    assert "the budget of 4 s is used up" in result.stdout
    assert "not accepted: " in result.stdout
    measured = last_result(here)["measured"]
    assert measured["stopped"] == "the budget of 4 s is used up"  # type: ignore[index]
    made = {each["name"]: len(each["runs"]) for each in measured["scenarios"]}  # type: ignore[index]
    assert made["a-job-takes-its-time"] == 0
    assert "ended early: `the budget of 4 s is used up`" in (here / "summary.md").read_text()
    assert "nothing was left behind" in harness("clean").stdout


def test_an_interrupt_leaves_what_was_measured_and_the_rest_is_unknown(here: Path) -> None:
    (here / "gate.toml").write_text(
        '[gate]\nscenarios = ["a-killed-job-resumes", "a-job-takes-its-time"]\n[scenarios.a-job-takes-its-time]\n'
    )
    (here / "scenarios.py").write_text(CATALOGUE.replace("tags=tags)", "tags=tags, deadline_s=300.0 if seconds == '0' else 200.0)"))
    process = subprocess.Popen(
        [sys.executable, "-m", "harness", "gate"],
        cwd=here,
        env={**os.environ, "HARNESS_CACHE_DIR": str(here / "cache")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    for line in process.stdout:  # the longer deadline comes first, and this line ends it
        if line.endswith("a-killed-job-resumes\n"):
            break
    while not list(here.glob("runs/a-job-takes-its-time/*/history.jsonl")):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=60)

    assert process.returncode == 130
    scenarios = {each["name"]: each for each in last_result(here)["judged"]["scenarios"]}  # type: ignore[index]
    assert scenarios["a-killed-job-resumes"]["ruling"] == "pass"
    assert scenarios["a-job-takes-its-time"]["ruling"] == "unknown"
    assert scenarios["a-job-takes-its-time"]["reasons"] == ["1 of 1 run not made: interrupted"]


def test_seeds_and_repeats_are_runs_and_the_worst_counts(harness: Command, here: Path) -> None:
    (here / "gate.toml").write_text('[gate]\nscenarios = ["a-killed-job-resumes"]\nseeds = [3, 4]\nrepeats = 2\n')
    result = harness("gate")

    assert result.returncode == 0, result.stdout + result.stderr
    (scenario,) = last_result(here)["measured"]["scenarios"]  # type: ignore[index]
    assert [run["seed"] for run in scenario["runs"]] == [3, 4, 3, 4]
    assert len({run["run"] for run in scenario["runs"]}) == 4
    goodputs = [run["figures"]["goodput"]["value"] for run in scenario["runs"]]
    assert figures_of(last_result(here), "a-killed-job-resumes")["goodput"] == min(goodputs)


def test_an_older_result_is_judged_by_what_is_asked_now(harness: Command, here: Path) -> None:
    assert harness("gate").returncode == 0
    (result,) = (here / "runs" / "gates").iterdir()

    (here / "gate.toml").write_text(GATE.replace("lost_steps_max = 6", "lost_steps_max = 0"))
    stricter = harness("gate", "--from", str(result))
    (here / "gate.toml").write_text(GATE.replace('"gate"', '"gate", "hopeless"'))
    more = harness("gate", "--from", str(result / "gate.json"))
    (here / "gate.toml").write_text(GATE)
    (here / "scenarios.py").write_text(CATALOGUE.replace("lost_steps_max=9", "lost_steps_max=8"))
    other = harness("gate", "--from", str(result))

    assert (stricter.returncode, more.returncode, other.returncode) == (1, 2, 2)
    assert "lost_steps_max is 0" in stricter.stdout
    assert "the result does not have it" in more.stdout
    assert "the result is of another scenario of that name" in other.stdout
    assert not list(here.glob("runs/a-fault-never-comes"))


def test_a_result_is_of_its_target_and_goes_where_it_is_asked_to(harness: Command, here: Path) -> None:
    (here / "gate.toml").write_text('[gate]\nscenarios = ["a-terminated-job-resumes"]\naccepted = "accepted-{target}.json"\n')
    assert harness("gate", "--accept").returncode == 0
    (result,) = (here / "runs" / "gates").iterdir()

    other = harness("gate", "--from", str(result), "--target", "kind")
    elsewhere = harness("gate", "--from", str(result), "--accept", "--accepted", "here.json")
    unwritable = harness("gate", "--from", str(result), GITHUB_STEP_SUMMARY="nowhere/step.md")

    assert (other.returncode, elsewhere.returncode, unwritable.returncode) == (64, 0, 64)
    assert "is of target local, and not of kind; leave --target away" in other.stderr
    assert (here / "here.json").read_bytes() == (here / "accepted-local.json").read_bytes()
    assert "the summary nowhere/step.md cannot be written" in unwritable.stderr
    assert not (here / "accepted.json").exists()


OF_RUNS = (
    ["--jobs", "2"],
    ["--keep"],
    ["--runs-dir", "runs"],
    ["--root", "."],
    ["--plan"],
    ["--plan-file", "plan.json"],
    ["--apply", "plan.json"],
    ["--project", "p"],
    ["--gpu-hours", "1"],
    ["--emulator"],
)

NAMESAKES = """
from scenarios import *
import msgspec
one = CATALOGUE["a-killed-job-resumes"]
CATALOGUE = {"one": one, "two": msgspec.structs.replace(one, expects=one.expects[:1])}
"""


@pytest.mark.parametrize(
    ("text", "arguments", "says"),
    [
        (None, [], "gate.toml: No such file or directory"),
        ("[gate]\n", [], "gate.scenarios: it is []"),
        ('[gate]\nscenarios = ["a-killed-job"]\n', [], "did you mean a-killed-job-resumes?"),
        ('[gate]\nall = true\nconfig = "no.toml"\n', [], "no.toml: No such file"),
        (GATE + "[scenarios.a-fault-never-comes]\n", [], "no scenario of the gate is named 'a-fault-never-comes'"),
        (GATE, ["--from", "nowhere"], "nowhere: No such file or directory; name the gate.json of a gate, or its directory"),
        (GATE, ["--accept", "--accepted", "nowhere/a.json"], "what is accepted cannot be written to nowhere/a.json"),
        (GATE, ["--summary", "nowhere/summary.md"], "summary nowhere/summary.md cannot be written"),
        (GATE, ["--plan"], "a project, limits and plans are of the target gcp"),
        (GATE, ["--target", "gcp"], "HARNESS_GCP_PROJECT"),
        *((GATE, ["--from", "x", *used], f"--from runs nothing, and does nothing with {used[0]}") for used in OF_RUNS),
        (GATE, ["--accepted", "gate.toml"], "gate.toml"),
        (
            GATE,
            ["--accepted", "nowhere.json"],
            "the accepted result nowhere.json is not there: name one that is, or accept this result there",
        ),
        (
            GATE.replace('tags = ["gate"]', "all = true\ncatalogue = 'namesakes'"),
            [],
            "two of the scenarios are named 'a-killed-job-resumes'",
        ),
    ],
)
def test_a_mistake_is_one_message_and_nothing_was_started(
    harness: Command, here: Path, text: str | None, arguments: list[str], says: str
) -> None:
    (here / "gate.toml").unlink() if text is None else (here / "gate.toml").write_text(text)
    (here / "namesakes.py").write_text(NAMESAKES)
    result = harness("gate", *arguments)

    assert result.returncode == 64, result.stdout + result.stderr
    assert says in result.stderr
    assert result.stderr.count("\n") == 1
    assert not (here / "runs").exists()


@pytest.mark.parametrize("name", ["gate.toml", "job.py", "accepted.json", "other.json"])
def test_a_summary_is_written_over_no_other_file(harness: Command, here: Path, name: str) -> None:
    if name == "other.json":
        (here / name).write_text("{}")
    before = (here / name).read_bytes() if (here / name).exists() else None
    result = harness("gate", "--summary", f"./{name}", "--accepted", name if name == "other.json" else "accepted.json", "--accept")

    assert result.returncode == 64, result.stdout + result.stderr
    assert f"the summary {name} " in result.stderr
    assert ((here / name).read_bytes() if (here / name).exists() else None) == before
    assert not (here / "runs").exists()


def test_a_gate_that_is_refused_takes_the_place_of_the_summary_before(harness: Command, here: Path) -> None:
    (here / "summary.md").write_text("## The release gate passes on target `local`\n")
    (here / "gate.toml").write_text(GATE.replace("[gate]", "[gate]\nmoon = 1"))
    result = harness("gate", "--summary", "summary.md", GITHUB_STEP_SUMMARY="step.md")

    assert result.returncode == 64
    for name in ("summary.md", "step.md"):
        text = (here / name).read_text()
        assert text.startswith("## The release gate **has no result**")
        assert "unknown field 'moon'" in text


def test_the_accepted_result_of_another_target_is_said_and_not_overwritten(harness: Command, here: Path) -> None:
    (here / "accepted.json").write_text('{"target": "gcp", "made_at": "2026-01-01T00:00:00", "scenarios": {}, "version": 1}')

    refused = harness("gate", "--accept")
    assert refused.returncode == 64
    assert "accepted-{target}.json" in refused.stderr
    assert not (here / "runs").exists()

    said = harness("gate")
    assert said.returncode == 2
    assert "gate: unknown\nunknown  not compared: the accepted result is of target `gcp`, and this one of `local`" in said.stdout


def test_what_was_accepted_and_is_another_scenario_now_or_none_is_unknown_until_it_is_accepted_anew(harness: Command, here: Path) -> None:
    steps_alone = GATE + '[regression]\nrecovery_s = "none"\ngoodput = "none"\ngrace_margin_s = "none"\n'
    (here / "gate.toml").write_text(steps_alone)
    assert harness("gate", "--accept").returncode == 0
    (result,) = (here / "runs" / "gates").iterdir()

    (here / "scenarios.py").write_text(CATALOGUE.replace('"STEPS": "10"', '"STEPS": "10", "OTHER": "1"'))
    other = harness("gate")
    anew = harness("gate", "--accept")
    again = harness("gate")
    (here / "gate.toml").write_text(steps_alone.replace('tags = ["gate"]', 'scenarios = ["a-killed-job-resumes"]'))
    fewer = harness("gate")
    (here / "gate.toml").write_text(steps_alone.replace('tags = ["gate"]', 'tags = ["gate"]\nseeds = [7]'))
    seeds = harness("gate", "--from", str(result))

    assert [each.returncode for each in (other, anew, again, fewer, seeds)] == [2, 0, 0, 2, 2]
    assert other.stdout.count("not compared: the scenario was another one when its result was accepted; see that it is meant") == 2
    assert (
        "accepted and not run now: `a-terminated-job-resumes`; see that it is meant, and accept it anew: harness gate --accept"
        in fewer.stdout
    )
    assert "is of another scenario of that name" in seeds.stdout
    (here / "scenarios.py").write_text(CATALOGUE)
    assert "the result lacks 1 run of seed 7" in harness("gate", "--from", str(result)).stdout
