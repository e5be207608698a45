"""What is explored."""

import sys
from pathlib import Path

import pytest

from harness.errors import UsageError, WorkloadMissingError
from harness.explore.subject import name_of, subject_of_command, subject_of_workload, with_options
from harness.scenario import LogPatterns, Outside, Workload


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("python train.py --out {checkpoint_dir}", "train"),
        ("python -m workloads.linear.train", "linear"),
        ("python -m workloads.broken.saves_in_place", "saves-in-place"),
        ("./My_Job.sh", "my-job-sh"),
        ("bash -c x", "bash"),
        ("/usr/bin/___", "job"),
    ],
)
def test_a_command_has_the_name_of_its_script(command: str, name: str) -> None:
    assert name_of(command.split()) == name


def test_placeholders_of_a_declared_job_are_filled_but_for_the_directory(tmp_path: Path) -> None:
    workload = Workload(
        name="job",
        command=("{python}", "x", "{checkpoint_dir}"),
        environment={"SEED": "{seed}", "OUT": "{checkpoint_dir}"},
        speaks_protocol=False,
        outside=Outside(logs=LogPatterns(saved=r"saved (?P<step>\d+)"), result="{checkpoint_dir}/final"),
    )

    recipe = subject_of_workload(workload, root=tmp_path, seed=7).recipe

    assert recipe.command == (sys.executable, "x", "{checkpoint_dir}")
    assert recipe.environment == {"SEED": "7", "OUT": "{checkpoint_dir}"}
    assert recipe.patterns == {"saved": r"saved (?P<step>\d+)"}
    assert (recipe.result, recipe.directory) == ("{checkpoint_dir}/final", str(tmp_path))


def test_what_cannot_be_started_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(WorkloadMissingError, match="no-such-program"):
        subject_of_command(["no-such-program"], directory=tmp_path, seed=0)
    with pytest.raises(UsageError, match="is not there"):
        subject_of_command(["python"], directory=tmp_path / "nowhere", seed=0)
    with pytest.raises(UsageError, match="is no UTF-8"):
        subject_of_command([sys.executable, "caf\udce9.py"], directory=tmp_path, seed=0)
    subject = subject_of_command([sys.executable], directory=tmp_path, seed=0)
    for program in ("no-such-program", "./no-such-program"):
        with pytest.raises(UsageError, match=f"cannot find '{program}', which is to inspect"):
            with_options(subject, inspect=[program, "{checkpoint_dir}"])
    assert with_options(subject, inspect=[sys.executable, "look.py"]).recipe.inspect == (sys.executable, "look.py")


@pytest.mark.parametrize(
    ("result", "place", "meant"),
    [
        ("final.json", None, "{checkpoint_dir}/final.json"),
        ("a/final.json", None, "{checkpoint_dir}/a/final.json"),
        ("{checkpoint_dir}/final.json", None, "{checkpoint_dir}/final.json"),
        ("/data/ckpt/final.json", "/data/ckpt", "{checkpoint_dir}/final.json"),
    ],
)
def test_a_result_is_a_file_of_the_checkpoint_directory(result: str, place: str | None, meant: str) -> None:
    subject = subject_of_command([sys.executable], directory=Path.cwd(), seed=0)

    asked = with_options(subject, result=result, checkpoints=Path(place) if place else None)

    assert asked.recipe.result == meant


@pytest.mark.parametrize(
    ("result", "place"),
    [
        ("/etc/passwd", None),
        ("../x", None),
        ("{checkpoint_dir}/../x", None),
        ("{checkpoint_dir}/a/../../x", "/data/ckpt"),
        ("/data/final", "/data/ckpt"),
    ],
)
def test_a_result_elsewhere_is_refused(result: str, place: str | None) -> None:
    subject = subject_of_command([sys.executable], directory=Path.cwd(), seed=0)

    with pytest.raises(UsageError, match="is not below the checkpoint directory"):
        with_options(subject, result=result, checkpoints=Path(place) if place else None)
