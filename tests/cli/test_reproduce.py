"""``harness reproduce``: what it prints, and what its exit code says."""

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Command

EXPORTS = ROOT / "tests" / "unit" / "incidents" / "exports"
HEALTHY = EXPORTS / "cloud-run-preempted-and-resumed.json"
WRONG = EXPORTS / "cloud-run-no-save-after-sigterm.json"

CONFIG = f"""
[workload]
name = "job"
command = ["{{python}}", "-m", "workloads.counter.train"]
directory = "{ROOT}"
steps = 60
save_every = 5
layout = "text-file"
speaks_protocol = true

[workload.environment]
STEPS = "60"
STEP_SECONDS = "0.01"
SAVE_EVERY = "5"
"""


def incident_in(here: Path) -> Path:
    (found,) = (here / "runs").glob("reproduced-*/*/incident.json")
    return found.parent


def test_a_healthy_incident_exits_0_and_says_what_happened_and_what_it_cost(harness: Command, here: Path) -> None:
    result = harness("reproduce", str(HEALTHY))

    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    assert lines[0] == "train-x7k2p on cloud-run: 80 entries, 2 attempts"
    assert any("attempt 0: notices SIGTERM" in line for line in lines)
    assert any(line.startswith("valid   healthy (seen): train-x7k2p completed after 1 interruption") for line in lines)
    assert any(line.startswith("0 steps done again, recovery took 64.0 s") for line in lines)
    assert lines[-1] == f"report: {(incident_in(here) / 'report.html').relative_to(here)}"


def test_a_wrong_one_exits_1_with_its_evidence_and_what_to_do(harness: Command) -> None:
    result = harness("reproduce", str(WRONG))

    assert result.returncode == 1, result.stderr
    assert "invalid no-save-after-sigterm (seen): attempt 0 of task 0 was told to go" in result.stdout
    assert "what to do: handle SIGTERM" in result.stdout
    assert "69a4" in result.stdout


def test_nothing_seen_exits_2(harness: Command, here: Path) -> None:
    (here / "empty.json").write_text("[]")

    result = harness("reproduce", "empty.json")

    assert result.returncode == 2, result.stderr
    assert "unknown unknown (seen): no entry tells of the job" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("reproduce",), "name the file of an export"),
        (("reproduce", str(HEALTHY), "--project", "p"), "name the file of an export"),
        (("reproduce", "--project", "p"), "name it with --execution"),
        (("reproduce", "nothing.json"), "nothing.json"),
        (("reproduce", str(HEALTHY), "--execution", "other"), "no execution is named 'other'; known: train-x7k2p"),
        (("reproduce", str(HEALTHY), "--workload", "no-such-job"), "no workload is named 'no-such-job'"),
        (("reproduce", str(HEALTHY), "--workload", "job", "--config", "harness.toml"), "not both"),
        (("reproduce", str(EXPORTS / "gke-stockout.json"), "--execution", "sweep", "--run"), ""),
        (("reproduce", sys.executable), "no log entry could be read: line"),
        (("reproduce", str(HEALTHY), "--speed", "0"), "speed"),
    ],
)
def test_what_cannot_be_meant_exits_64_with_one_line(harness: Command, here: Path, arguments: tuple[str, ...], said: str) -> None:
    (here / "harness.toml").write_text(CONFIG)

    result = harness(*arguments)

    assert result.returncode == 64, result.stdout
    assert said in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not list((here / "runs").glob("*"))


def test_an_export_of_several_executions_lists_them(harness: Command, here: Path) -> None:
    both = [*json.loads(HEALTHY.read_text()), *map(json.loads, (EXPORTS / "cloud-run-out-of-memory.jsonl").read_text().splitlines())]
    (here / "both.json").write_text(json.dumps(both))

    refused = harness("reproduce", "both.json")
    chosen = harness("reproduce", "both.json", "--execution", "finetune-q2w9z")

    assert refused.returncode == 64
    assert "2 executions: finetune-q2w9z, train-x7k2p; name one with --execution" in refused.stderr
    assert chosen.returncode == 1
    assert "out-of-memory (seen)" in chosen.stdout


def test_an_export_is_read_packed_and_from_standard_input(here: Path) -> None:
    def reproduce(data: bytes) -> str:
        command = [sys.executable, "-m", "harness", "reproduce", "-"]
        return subprocess.run(command, cwd=here, input=data, capture_output=True, timeout=120, check=True).stdout.decode()

    plain, packed = reproduce(HEALTHY.read_bytes()), reproduce(gzip.compress(HEALTHY.read_bytes()))

    assert plain.splitlines()[:20] == packed.splitlines()[:20]


def test_json_is_one_document_for_a_machine(harness: Command, here: Path) -> None:
    result = harness("reproduce", str(HEALTHY), "--json", "--output", "again.json")

    answer = json.loads(result.stdout)
    assert answer["incident"]["outcome"] == "valid"
    assert answer["comparison"] is None
    assert Path(answer["directory"]) == incident_in(here)


def test_without_a_job_there_is_no_scenario_and_that_is_told(harness: Command) -> None:
    result = harness("reproduce", str(HEALTHY))

    assert "no scenario: name the job with --config harness.toml, or a workload of a catalogue with --workload" in result.stdout


def test_the_scenario_of_a_job_of_ones_own_is_written_run_and_compared(harness: Command, here: Path) -> None:
    (here / "harness.toml").write_text(CONFIG)

    result = harness("reproduce", str(HEALTHY), "--config", "harness.toml", "--output", "again.json", "--run", "--speed", "100")
    again = harness("run", "again.json", "--root", ".")

    assert result.returncode == 0, result.stdout + result.stderr
    assert "it went the same way here; steps done again: 0 then, 0 here" in result.stdout
    assert again.returncode == 0, again.stdout + again.stderr
    assert json.loads((here / "again.json").read_text())["injections"][0]["at"] == {"type": "at-step", "step": 42, "rank": 0}


def test_a_right_job_goes_another_way_than_a_wrong_one_and_exits_2(harness: Command, here: Path) -> None:
    (here / "harness.toml").write_text(CONFIG.replace("60", "30"))  # the job of that log had 30 steps

    result = harness("reproduce", str(WRONG), "--config", "harness.toml", "--run", "--speed", "100")

    assert result.returncode == 2, result.stdout + result.stderr
    assert "it went another way here: only in the incident: no-save-after-sigterm" in result.stdout


def test_an_incident_is_no_run_and_whoever_takes_it_for_one_is_told(harness: Command, here: Path) -> None:
    harness("reproduce", str(HEALTHY), "--workload", "job")
    incident = incident_in(here)

    for command in ("check", "replay", "report"):
        result = harness(command, str(incident))
        assert result.returncode == 64
        assert f"harness run {incident / 'reproduction.json'}" in result.stderr
    assert harness("report").returncode == 0
    assert "reproduced-train-x7k2p" in (here / "runs" / "index.html").read_text()
    assert harness("clean").returncode == 0
