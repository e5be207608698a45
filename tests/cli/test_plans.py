"""A plan on the command line: what it says to do next can be typed as it stands."""

import sys
from pathlib import Path

import pytest

from tests.cli.conftest import CATALOGUE, Command

STEPS = """
set -e
python() { PYTHON "$@"; }
python -m harness run --target gcp --root . --catalogue others:CATALOGUE --seed 3 --gpu-hours 9 --plan-file 'my plan.json' \\
    --project my-project --region europe-west4 --bucket my-bucket --job my-job --image any a-promise-is-broken > said.txt
cat said.txt
test ! -e runs
eval "$(tail -n 1 said.txt)"
"""


def test_the_command_that_a_plan_names_applies_it_as_it_stands(harness: Command, here: Path) -> None:
    (here / "others.py").write_text(CATALOGUE)
    (here / "scenarios.py").write_text("CATALOGUE = {}")
    (here / "steps.sh").write_text(STEPS.replace("PYTHON", sys.executable))
    (here / "state").mkdir()
    there = ("--project", "my-project", "--bucket", "my-bucket", "--bucket-label", "harness-chaos=allowed")

    result = harness("emulate", *there, "--", "bash", "steps.sh")

    lines = [line.strip() for line in result.stdout.splitlines()]
    assert any(
        line.startswith("python -m harness run --target gcp --seed 3 --catalogue others:CATALOGUE --root . --project") for line in lines
    )
    assert result.returncode == 1, result.stderr  # its promise is broken on purpose: one attempt, and a kill
    assert any(line.startswith("invalid") and line.endswith("a-promise-is-broken") for line in lines)
    assert list((here / "runs").glob("a-promise-is-broken/*-3/verdict.json"))


def test_a_plan_of_an_emulator_that_ends_is_not_offered_to_be_applied(harness: Command) -> None:
    result = harness("run", "--target", "gcp", "--emulator", "--plan", "--gpu-hours", "9", "a-good-job-recovers")
    refused = harness("run", "--target", "gcp", "--emulator", "--apply", "plan.json")

    assert result.stdout.splitlines()[-1] == "    python -m harness run --target gcp --emulator a-good-job-recovers"
    assert (refused.returncode, "leave --apply away" in refused.stderr) == (64, True)


@pytest.mark.parametrize("limit", ["--gpu-hours", "--duration-s"])
@pytest.mark.parametrize(("value", "why"), [("inf", "a finite number is needed"), ("nan", "Invalid value for")])
def test_a_limit_that_nothing_passes_is_refused(harness: Command, limit: str, value: str, why: str) -> None:
    result = harness("run", "--target", "gcp", "--emulator", "--plan", limit, value, "a-good-job-recovers")

    assert (result.returncode, why in result.stderr) == (64, True), result.stderr
