"""A gate on a project: a plan first, then the runs of that plan and no others, and nothing is left; on the emulator, as a user calls it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harness.targets.gcp.permissions import (
    BUCKET_PERMISSIONS,
    JOB_PERMISSIONS,
    PROJECT_PERMISSIONS,
    UNASKED_PERMISSIONS,
    is_of_writing,
)
from harness.targets.gcp.planning import ASKED_AGAIN
from tests.docs.pages import DOCS, files_of, run

CI = DOCS / "ci"

GATE = """
[gate]
config = "harness.toml"
scenarios = ["my-train-killed-without-notice-resumes"]
accepted = "accepted-{target}.json"

[budget]
duration_s = 240
gpu_hours = 1

[thresholds]
lost_steps_max = 60
"""

STEPS = """
python prepare.py
harness gate --target gcp --plan > planned.txt 2>&1; echo "plan $?"
ls runs 2> /dev/null
sed 's/^accepted/repeats = 2\\naccepted/' gate.toml > twice.toml
harness gate --target gcp --config twice.toml --apply plan.json > twice.txt 2>&1; echo "twice $?"
sed 's/^accepted/seeds = [0, 1]\\naccepted/' gate.toml > seeds.toml
harness gate --target gcp --config seeds.toml --plan --plan-file other.json > seeds.txt 2>&1; echo "seeds $?"
ls runs other.json 2> /dev/null
harness gate --target gcp --apply plan.json --accept --summary summary.md --json > gate.json 2> said.txt; echo "apply $?"
harness clean --target gcp --config harness.toml; echo "clean $?"
sed 's/^duration_s.*/duration_s = 2/' gate.toml > short.toml
harness gate --target gcp --config short.toml --plan --plan-file short.json > /dev/null; echo "plan $?"
harness gate --target gcp --config short.toml --apply short.json --summary short.md > short.txt 2>&1; echo "short $?"
harness clean --target gcp --config harness.toml; echo "clean $?"
"""


@pytest.fixture
def here(tmp_path: Path, own_state: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    files = {**files_of("own-job.md"), **files_of("google-cloud.md"), "gate.toml": GATE, "gate.sh": STEPS}
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "train.py").write_text(files["train.py"].replace("sleep(0.005)", "sleep(0.02)"))
    return tmp_path


def test_a_gate_on_a_project_runs_the_plan_that_was_read_and_nothing_else(here: Path):
    said = run("harness emulate --project my-project --bucket my-bucket -- bash gate.sh", here)

    codes = [line for line in said.splitlines() if line.split()[0] in ("plan", "twice", "seeds", "apply", "clean", "short")]
    assert codes == ["plan 0", "twice 64", "seeds 64", "apply 0", "clean 0", "plan 0", "short 2", "clean 0"], said
    assert said.count("nothing was left behind") == 2
    assert "the budget of 2 s is used up" in (here / "short.txt").read_text()
    assert (here / "short.md").read_text().startswith("## The release gate is unknown on target `gcp-emulator`")
    assert "harness gate --target gcp --apply plan.json" in (here / "planned.txt").read_text()
    twice = (here / "twice.txt").read_text()
    assert "the plan does not hold any more" in twice
    assert "make a new one with `harness gate --config twice.toml --target gcp --plan`, and read it" in twice
    assert "a plan is of one seed, and the gate has 2" in (here / "seeds.txt").read_text()
    assert not (here / "other.json").exists()
    assert "runs" not in said.splitlines()
    outcome = json.loads((here / "gate.json").read_text())
    assert (outcome["measured"]["target"], outcome["judged"]["ruling"]) == ("gcp-emulator", "pass")
    assert len(list(here.glob("runs/my-train-*/*/verdict.json"))) == 1
    accepted = json.loads((here / "accepted-gcp-emulator.json").read_text())
    assert set(accepted["scenarios"]) == {"my-train-killed-without-notice-resumes"}
    assert (accepted["surroundings"]["project"], accepted["surroundings"]["job"]) == (
        "my-project",
        outcome["measured"]["surroundings"]["job"],
    )
    assert (here / "summary.md").read_text().startswith("## The release gate passes on target `gcp-emulator`")


TWO_ACCOUNTS = """
grant() {{
  python - "$1" <<'END'
import json, os, sys, urllib.request
address = dict(part.split("=") for part in os.environ["HARNESS_GCP_EMULATOR"].split(","))["http"]
granted = json.loads(sys.argv[1])
body = json.dumps({{"name": "my-project", "granted": granted}}).encode()
wanted = urllib.request.Request(f"http://{{address}}/_emulator/v1/projects", body, {{"content-type": "application/json"}})
urllib.request.urlopen(wanted, timeout=10).close()
END
}}
python prepare.py
grant '{reader}'
harness gate --target gcp --config gate.toml --plan --plan-file strict.json > strict.txt 2>&1; echo "strict $?"
{plan} > planned.txt 2>&1; echo "plan $?"
{apply} > reader.txt 2>&1; echo "reader $?"
grant '{poor}'
{apply} > poor.txt 2>&1; echo "poor $?"
ls runs 2> /dev/null
grant null
{apply} > applied.txt 2>&1; echo "apply $?"
harness clean --target gcp --config harness.toml; echo "clean $?"
"""
"""The two commands of the workflow, by accounts with other permissions."""


def test_the_workflow_plans_with_an_account_that_may_only_read_and_applies_with_another(here: Path):
    text = (CI / "chaos-gcp.yml").read_text(encoding="utf-8")
    plan, apply = (line.partition("run: ")[2] for line in text.splitlines() if "run: harness gate" in line)
    held = (*JOB_PERMISSIONS, *BUCKET_PERMISSIONS, *PROJECT_PERMISSIONS, *UNASKED_PERMISSIONS)
    reader = [name for name in held if not is_of_writing(name)]
    poor = [name for name in held if name != "run.jobs.delete"]
    script = TWO_ACCOUNTS.format(plan=plan, apply=apply, reader=json.dumps(reader), poor=json.dumps(poor))
    (here / "accounts.sh").write_text(script, encoding="utf-8")
    said = run("harness emulate --project my-project --bucket my-bucket -- bash accounts.sh", here)

    codes = [line for line in said.splitlines() if line.split()[0] in ("strict", "plan", "reader", "poor", "apply", "clean")]
    assert codes == ["strict 64", "plan 0", "reader 64", "poor 64", "apply 0", "clean 0"], said
    assert "runs" not in said.splitlines()
    assert "run.jobs.delete are missing" in (here / "strict.txt").read_text()
    planned = json.loads((here / "plan.json").read_text())
    told = {
        permission["name"]: permission for permission in planned["permissions"] if permission["name"] in ("run.jobs.run", "run.jobs.get")
    }
    assert told["run.jobs.get"]["is_held"] is True
    assert (told["run.jobs.run"].get("is_held"), told["run.jobs.run"]["why"]) == (None, ASKED_AGAIN)
    assert "run.jobs.delete are held" in (here / "planned.txt").read_text()
    assert "asked again when the plan is applied" in (here / "planned.txt").read_text()
    assert "run.jobs.run, run.jobs.delete are missing" in (here / "reader.txt").read_text()
    assert "run.jobs.delete is missing" in (here / "poor.txt").read_text()
    assert len(list(here.glob("runs/my-train-*/*/verdict.json"))) == 1


def test_without_a_plan_nothing_of_a_gate_is_imported_that_speaks_with_a_cloud():
    code = "import sys, harness.cli.gate; sys.exit(any(name.split('.')[0] in ('google', 'grpc') for name in sys.modules))"

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
