"""The command line: what it prints, and what its exit code says."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from harness.undo import identify
from tests.cli.conftest import Command


def only_run(here: Path, name: str) -> Path:
    (run,) = (here / "runs" / name).iterdir()
    return run


def test_a_valid_run_exits_0_with_one_line_and_the_path_of_a_report(harness: Command, here: Path) -> None:
    result = harness("run", "a-good-job-recovers")

    assert result.returncode == 0, result.stderr
    heading, line, count, report = result.stdout.splitlines()
    assert heading.split() == ["verdict", "faults", "tries", "lost", "recovery", "margin", "scenario"]
    assert line.split()[:4] == ["valid", "1/1", "2", "2"]
    assert line.endswith("a-good-job-recovers")
    assert re.fullmatch(r"1 valid in \d+ s", count)
    assert Path(report.removeprefix("report: ")).exists()
    assert (only_run(here, "a-good-job-recovers") / "report.html").exists()


def test_a_broken_promise_exits_1_and_says_which_and_where(harness: Command, here: Path) -> None:
    result = harness("run", "a-promise-is-broken")

    assert result.returncode == 1
    assert "within-retries: task 0 took 2 attempts, 1 are promised" in result.stdout
    assert str(only_run(here, "a-promise-is-broken")) in result.stdout


def test_nothing_proved_exits_2(harness: Command) -> None:
    result = harness("run", "a-fault-never-comes")

    assert result.returncode == 2
    assert "landed" in result.stdout


def test_a_missing_program_exits_64_and_nothing_was_started(harness: Command) -> None:
    result = harness("run", "a-program-is-missing")

    assert result.returncode == 64
    assert "cannot find 'no-such-program'" in result.stdout


def test_all_runs_side_by_side_leave_slow_ones_out_and_the_worst_decides(harness: Command, here: Path) -> None:
    result = harness("run", "--all", "--jobs", "3")

    assert result.returncode == 1
    assert "1 valid, 1 invalid, 1 unknown" in result.stdout
    assert not (here / "runs" / "a-slow-job-takes-its-time").exists()


def test_json_goes_to_standard_output_alone(harness: Command) -> None:
    result = harness("run", "a-good-job-recovers", "a-promise-is-broken", "--json")

    rows = {row["scenario"]: row for row in json.loads(result.stdout)}
    assert rows["a-good-job-recovers"]["summary"]["outcome"] == "valid"
    assert rows["a-promise-is-broken"]["summary"]["outcome"] == "invalid"
    assert "2 valid" not in result.stdout


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["run"], "nothing to run"),
        (["run", "a-good-job"], "did you mean a-good-job-recovers?"),
        (["run", "--all", "--tag", "moon"], "no tag is named 'moon'"),
        (["run", "--all", "--jobs", "0"], "--jobs"),
        (["run", "--all", "--seed", "x"], "--seed"),
        (["run", "--all", "--moon"], "No such option: --moon"),
        (["run", "--all", "--target", "moon"], "no target is named 'moon'"),
        (["run", "--all", "--runs-dir", "scenarios.py/runs"], "cannot be written"),
        (["run", "--config", "no.toml"], "no.toml: No such file or directory"),
        (["run", "no.json"], "no.json"),
        (["list", "--catalogue", "moon:LANDER"], "no module named moon"),
        (["list", "--catalogue", "scenarios:job"], "not a mapping"),
        (["check", "nowhere"], "no run directory is named 'nowhere'"),
        (["report", "nowhere"], "no run directory is named 'nowhere'"),
        (["replay", "nowhere"], "no run directory is named 'nowhere'"),
        (["moon"], "No such command 'moon'"),
        ([], "Usage"),
    ],
)
def test_wrong_usage_is_one_message_exit_64_and_nothing_started(harness: Command, here: Path, arguments: list[str], says: str) -> None:
    result = harness(*arguments)

    assert result.returncode == 64
    assert says in result.stderr
    assert "Traceback" not in result.stderr
    assert not list(here.glob("runs/*/*/history.jsonl"))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("raise SystemExit(0)", "SystemExit while it was imported: 0"),
        ("raise RuntimeError('out of\\nfuel')", "RuntimeError while it was imported: out of fuel"),
        ("def land(:", "SyntaxError while it was imported"),
    ],
)
def test_a_catalogue_that_cannot_be_imported_is_one_message_and_never_exit_0(harness: Command, here: Path, text: str, says: str) -> None:
    (here / "moon.py").write_text(text)

    result = harness("run", "--all", "--catalogue", "moon:LANDER")

    assert result.returncode == 64
    assert says in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"deadline_s": 60.0', '"deadline_s": -1', "deadline_s: it is -1.0: a finite number > 0"),
        ('"type": "kill"', '"type": "moon"', "injections[0].fault"),
        ('"directory": "', '"directory": "\\u0000', "workload.directory"),
        ('"step": 7', '"step": "seven"', "injections[0].at.step: it is 'seven': expected `int`, got `str`"),
        ('"name": "a-good', '"nme": "a-good', "nme"),
        ('"a test"', '"a test', "malformed"),
    ],
)
def test_a_wrong_scenario_file_is_named_with_field_and_value(harness: Command, here: Path, old: str, new: str, says: str) -> None:
    text = harness("show", "a-good-job-recovers").stdout
    assert old in text
    (here / "wrong.json").write_text(text.replace(old, new, 1))

    result = harness("run", "wrong.json")

    assert result.returncode == 64
    assert result.stderr.startswith("harness: wrong.json")
    assert says in result.stderr


def test_a_scenario_can_be_shown_changed_and_run(harness: Command, here: Path) -> None:
    (here / "mine.json").write_text(harness("show", "a-promise-is-broken").stdout.replace('"attempts_max": 1', '"attempts_max": 2'))

    assert harness("run", "mine.json").returncode == 0


def test_check_judges_again_without_running_or_writing(harness: Command, here: Path) -> None:
    harness("run", "a-promise-is-broken")
    run = only_run(here, "a-promise-is-broken")
    before = {path: path.stat().st_mtime_ns for path in run.rglob("*")}

    result = harness("check", str(run))
    as_json = json.loads(harness("check", str(run), "--json").stdout)

    assert result.returncode == 1
    assert "within-retries" in result.stdout
    assert as_json["outcome"] == "invalid"
    assert {path: path.stat().st_mtime_ns for path in run.rglob("*")} == before


def test_a_history_with_a_bad_line_is_named_by_its_number(harness: Command, here: Path) -> None:
    harness("run", "a-promise-is-broken")
    history = only_run(here, "a-promise-is-broken") / "history.jsonl"
    lines = history.read_text().splitlines()
    lines[4] = "moon"
    history.write_text("\n".join(lines) + "\n")

    result = harness("check", str(history.parent))

    assert result.returncode == 70
    assert "history.jsonl:5: not an event" in result.stderr


def test_replay_makes_the_run_again_by_the_command_and_by_its_script(harness: Command, here: Path) -> None:
    harness("run", "a-good-job-recovers", "--seed", "3")
    run = only_run(here, "a-good-job-recovers")

    assert harness("replay", str(run)).returncode == 0
    script = subprocess.run(
        ["sh", str(run / "replay.sh")], cwd=here, env=_with_harness_on_path(), capture_output=True, text=True, timeout=60
    )

    assert script.returncode == 0, script.stderr
    assert len(list((here / "runs" / "a-good-job-recovers").glob("*-3*"))) == 3


def test_a_damaged_history_prevents_no_replay_and_an_unknown_seed_is_asked_for(harness: Command, here: Path) -> None:
    harness("run", "a-good-job-recovers", "--seed", "3")
    run = only_run(here, "a-good-job-recovers")
    history = run / "history.jsonl"
    header = history.read_bytes().split(b"\n")[0]
    history.write_bytes(header + b"\nthis is no event\n")

    assert harness("replay", str(run)).returncode == 0
    assert len(list((here / "runs" / "a-good-job-recovers").glob("*-3*"))) == 2

    history.write_bytes(b"this is no header\n")
    refused = harness("replay", str(run))
    assert refused.returncode == 64
    assert "the seed is not known; give it with --seed" in refused.stderr
    assert harness("replay", str(run), "--seed", "3").returncode == 0


def test_reports_are_written_again_with_an_index(harness: Command, here: Path) -> None:
    harness("run", "a-good-job-recovers")
    page = only_run(here, "a-good-job-recovers") / "report.html"
    page.unlink()

    result = harness("report")

    assert result.returncode == 0
    assert page.exists()
    assert Path(result.stdout.strip()).exists()


def test_list_shows_every_scenario_and_as_json_all_of_it(harness: Command) -> None:
    assert "a-slow-job-takes-its-time (slow)" in harness("list").stdout
    assert len(json.loads(harness("list", "--json").stdout)) == 5


def test_list_shows_those_of_a_tag_and_those_of_a_target(harness: Command) -> None:
    slow = harness("list", "--tag", "slow").stdout.splitlines()
    assert [line.partition(" ")[0] for line in slow[:-1:2]] == ["a-slow-job-takes-its-time", "a-program-is-missing"]
    assert slow[-1] == "2 of 5 scenarios"
    assert json.loads(harness("list", "--target", "kind", "--json").stdout) == []
    assert harness("list", "--target", "local").stdout.splitlines()[-1] == "5 scenarios"
    assert "no target is named 'moon'" in harness("list", "--target", "moon").stderr


def test_the_schema_is_one_of_scenarios(harness: Command) -> None:
    schema = json.loads(harness("schema").stdout)

    assert "Scenario" in schema["$defs"]


def test_init_writes_a_file_that_validates_and_never_over_another(harness: Command, here: Path) -> None:
    assert harness("init").returncode == 0
    assert "my-train-killed-without-notice-resumes" in harness("list", "--config", "harness.toml").stdout
    again = harness("init")

    assert again.returncode == 64
    assert "harness.toml exists" in again.stderr


def test_doctor_says_what_is_here(harness: Command) -> None:
    found = json.loads(harness("doctor", "--json").stdout)

    assert {"python", "target local"} <= {line["name"] for line in found if line["is_available"]}
    assert "target local" in harness("doctor").stdout


def test_clean_has_nothing_to_do_after_runs_that_ended(harness: Command) -> None:
    harness("run", "a-good-job-recovers")

    assert harness("clean").stdout == "nothing was left behind\n"


def test_a_broken_run_does_not_keep_the_others_from_being_cleaned(harness: Command, here: Path) -> None:
    harness("run", "a-good-job-recovers", "a-promise-is-broken")
    journal = only_run(here, "a-promise-is-broken") / "undo.jsonl"
    journal.unlink()
    journal.mkdir()

    result = harness("clean")

    assert result.returncode == 70
    assert "a-promise-is-broken" in result.stdout
    assert "cannot be read" in result.stdout
    assert result.stdout.endswith("1 could not be done; run it again when that is mended\n")


def test_checkpoints_are_kept_only_where_something_is_to_be_looked_at(harness: Command, here: Path) -> None:
    harness("run", "a-good-job-recovers", "a-promise-is-broken")

    assert not (only_run(here, "a-good-job-recovers") / "checkpoints").exists()
    assert (only_run(here, "a-promise-is-broken") / "checkpoints" / "job-task-0-checkpoint.txt").exists()


def _with_harness_on_path() -> dict[str, str]:
    import sys

    return {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}


@pytest.mark.parametrize("name", ["history.jsonl", "scenario.json", "owner.json", "undo.jsonl"])
def test_a_fifo_in_place_of_a_document_makes_nobody_wait(harness: Command, here: Path, name: str) -> None:
    harness("run", "a-promise-is-broken")
    run = only_run(here, "a-promise-is-broken")
    (run / name).unlink()
    os.mkfifo(run / name)

    results = [harness("check", str(run)), harness("clean"), harness("report")]

    assert all("Traceback" not in result.stderr for result in results)


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_an_interrupt_ends_with_what_was_done_what_was_not_run_and_the_report(here: Path) -> None:
    catalogue = here / "scenarios.py"
    more = """
for name, seconds in (("a-job-takes-very-long", "1"), ("so-another-follows", "0")):
    CATALOGUE[name] = scenario(name, workload=job(STEPS="60", STEP_SECONDS=seconds))
"""
    catalogue.write_text(catalogue.read_text() + more)
    names = ["a-good-job-recovers", "a-job-takes-very-long", "so-another-follows"]  # in this order
    command = [sys.executable, "-m", "harness", "run", *names]
    process = subprocess.Popen(command, cwd=here, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    deadline_s = time.monotonic() + 60
    while "A good job recovers" not in text_of(here / "runs" / "index.html") or not list(
        here.glob("runs/a-job-takes-very-long/*/history.jsonl")
    ):
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=60)

    *done, said, stopped, why, run, counted, not_run, report = output.splitlines()
    assert process.returncode == 130
    assert len(done) == 2
    assert "ends what runs: a-job-takes-very-long; that may take up to 30 s" in said
    assert stopped.split() == ["stopped", "a-job-takes-very-long"]
    assert why.strip() == "interrupted; everything it started was ended"
    assert run.strip().startswith("run: ")
    assert re.fullmatch(r"1 valid, 1 stopped in \d+ s", counted)
    assert not_run == "not run: 1: so-another-follows"
    assert Path(report.removeprefix("report: ")).exists()
    assert errors == "harness: interrupted\n"


def test_a_run_that_never_began_is_told_from_one_that_is_not_there(harness: Command, here: Path) -> None:
    harness("run", "a-slow-job-takes-its-time")
    run = only_run(here, "a-slow-job-takes-its-time")
    (run / "verdict.json").unlink()

    result = harness("check", str(run))
    assert result.stdout.splitlines()[0] == "a-slow-job-takes-its-time: valid, by what there is: it ended before it was judged"

    (run / "scenario.json").unlink()
    for command in ("check", "report", "replay"):
        result = harness(command, str(run))
        assert result.returncode == 64
        assert result.stderr == f"harness: the run {run} was never judged: it ended before it began; run its scenario again\n"

    owner = json.loads((run / "owner.json").read_bytes())
    owner["process"] = msgspec.to_builtins(identify([os.getpid()])[0])
    (run / "owner.json").write_text(json.dumps(owner))
    result = harness("check", str(run))
    assert f"is not judged yet: process {os.getpid()} has it, and waits for its turn" in result.stderr


def test_list_and_run_say_alike_that_the_workloads_of_a_catalogue_lie_elsewhere(harness: Command, here: Path) -> None:
    (here / "elsewhere" / "theirs").mkdir(parents=True)
    (here / "elsewhere" / "theirs" / "train.py").write_text("")
    (here / "elsewhere" / "others.py").write_text(
        "from harness.scenario import Scenario, Workload\n"
        "from harness.scenario.expectations import Completes\n"
        "job = Workload(name='job', command=('{python}', 'theirs/train.py'), sources=('theirs',))\n"
        "CATALOGUE = {'it-completes': Scenario(name='it-completes', why='a test', workload=job, expects=(Completes(),))}\n"
    )
    common = {"PYTHONPATH": str(here / "elsewhere")}

    listed = harness("list", "--catalogue", "others", **common)
    ran = harness("run", "--catalogue", "others", "it-completes", **common)

    advice = f"there is no theirs; the catalogue lies in {here / 'elsewhere'}: add --root {here / 'elsewhere'}"
    assert (listed.returncode, listed.stderr.strip().endswith(advice)) == (0, True)
    assert (ran.returncode, ran.stderr.strip().endswith(advice)) == (64, True)
    assert not list((here / "runs").glob("*"))
