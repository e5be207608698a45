"""Ray Train's directory: what the snapshot names is committed, and only that."""

import json
import os
from pathlib import Path

import pytest

from harness.checkpoints import newest_committed, paths_of, step_path, survey, temporary_path
from harness.checkpoints.ray_train import SNAPSHOT
from harness.history import CheckpointSeen

FIRST, SECOND, ORPHAN = (f"checkpoint_2026-01-01_00-00-0{second}.123456" for second in range(3))


def build(directory: Path, name: str, step: int) -> Path:
    path = directory / name
    path.mkdir(parents=True)
    (path / "s.npz").write_bytes(bytes(100))
    (path / "s.json").write_text(json.dumps({"step": step, "epoch": 0}))
    return path


def result(name: str, **metrics: object) -> dict[str, object]:
    return {"version": 0, "checkpoint_dir_name": name, "metrics": metrics}


def write_snapshot(run: Path, *results: dict[str, object]) -> Path:
    path = run / SNAPSHOT
    document = {
        "ray_version": "2.60.0",
        "checkpoint_results": results,
        "checkpoint_report_indices": list(range(len(results))),
        "latest_checkpoint_result": results[-1] if results else None,
        "pending_training_results": [],
        "current_report_index": len(results),
    }
    path.write_text(json.dumps(document))
    return path


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Two committed checkpoints and one that was reported but not committed."""
    path = tmp_path / "job"
    build(path, FIRST, 3)
    build(path, SECOND, 6)
    build(path, ORPHAN, 9)
    (path / ".validate_storage_marker").touch()
    write_snapshot(path, result(FIRST, step=3, loss=float("nan")), result(SECOND, step=6))
    return path


def look(directory: Path) -> dict[str, CheckpointSeen]:
    seen = survey(directory, "ray-train")

    assert seen.lost == ()
    return {checkpoint.path.removeprefix("job/"): checkpoint for checkpoint in seen.checkpoints}


def test_the_snapshot_commits_and_an_orphan_is_incomplete(tmp_path: Path, run: Path) -> None:
    seen = [(each.path, each.step, each.state, each.is_latest) for each in survey(tmp_path, "ray-train").checkpoints]

    assert seen == [
        (f"job/{FIRST}", 3, "committed", False),
        (f"job/{SECOND}", 6, "committed", True),
        (f"job/{ORPHAN}", 9, "incomplete", False),
    ]


def test_the_directory_of_a_run_can_be_looked_at_by_itself(run: Path) -> None:
    assert [each.state for each in look(run).values()] == ["committed", "committed", "incomplete"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b'{"checkpoint_results": [{"check',
        b"[]",
        b"\xff",
        b"[" * 100_000,
        b'{"checkpoint_results": [{"checkpoint_dir_name": "../../elsewhere", "metrics": {}}]}',
        b'{"checkpoint_results": [{"checkpoint_dir_name": 3, "metrics": {}}]}',
    ],
)
def test_a_snapshot_that_does_not_parse_commits_nothing(tmp_path: Path, run: Path, content: bytes) -> None:
    (run / SNAPSHOT).write_bytes(content)

    seen = look(tmp_path)

    assert [(each.step, each.state, each.is_latest) for each in seen.values()] == [(step, "incomplete", False) for step in (3, 6, 9)]
    assert newest_committed(tmp_path, "ray-train") is None
    assert paths_of(tmp_path, "ray-train", "snapshot") == (run / SNAPSHOT,)


def test_without_a_snapshot_all_are_orphans(tmp_path: Path, run: Path) -> None:
    (run / SNAPSHOT).unlink()

    assert {each.state for each in look(tmp_path).values()} == {"incomplete"}
    assert paths_of(tmp_path, "ray-train", "snapshot") == ()


def test_a_checkpoint_that_is_named_and_gone_is_incomplete_and_offered(tmp_path: Path, run: Path) -> None:
    for file in (run / SECOND).iterdir():
        file.unlink()
    (run / SECOND).rmdir()

    seen = look(tmp_path)[SECOND]

    assert (seen.step, seen.state, seen.is_latest, seen.digest, seen.files) == (6, "incomplete", True, "", 0)


def test_an_empty_checkpoint_is_incomplete(tmp_path: Path, run: Path) -> None:
    for file in (run / SECOND).iterdir():
        file.unlink()

    assert look(tmp_path)[SECOND].state == "incomplete"


def test_the_step_comes_from_the_metrics_then_from_a_file_then_from_the_name(tmp_path: Path) -> None:
    run = tmp_path / "job"
    for name, step in {"checkpoint_a": 1, "checkpoint_b": 2, "checkpoint_000030": 3, "checkpoint_2026": 4}.items():
        build(run, name, step)
    (run / "checkpoint_b" / "a.json").write_text("{")
    for name in ("checkpoint_000030", "checkpoint_2026"):
        (run / name / "s.json").write_text('{"step": true}')
    write_snapshot(run, result("checkpoint_a", step=10), result("checkpoint_b", step="many"))

    assert {name: each.step for name, each in look(tmp_path).items()} == {
        "checkpoint_a": 10,
        "checkpoint_b": 2,
        "checkpoint_000030": 30,
        "checkpoint_2026": 2026,
    }


def test_orphans_with_names_of_the_job_are_known_by_their_likeness(tmp_path: Path) -> None:
    run = tmp_path / "job"
    for step in (5, 10):
        build(run, f"after-{step}", step)
    build(run, "plots", 7)
    write_snapshot(run, result("after-5", step=5))

    assert [(each.path, each.state) for each in survey(tmp_path, "ray-train").checkpoints] == [
        ("job/after-5", "committed"),
        ("job/after-10", "incomplete"),
    ]


def test_of_two_runs_the_one_written_last_is_restored(tmp_path: Path, run: Path) -> None:
    other = tmp_path / "other"
    build(other, FIRST, 30)
    os.utime(write_snapshot(other, result(FIRST, step=30)), ns=(1, 1))

    assert [each.path for each in survey(tmp_path, "ray-train").checkpoints if each.is_latest] == [f"job/{SECOND}"]
    assert paths_of(tmp_path, "ray-train", "snapshot") == (run / SNAPSHOT, other / SNAPSHOT)


def test_files_have_classes(tmp_path: Path, run: Path) -> None:
    (run / SECOND / "manifest.ocdbt").write_bytes(b"1")

    assert paths_of(tmp_path, "ray-train", "data") == (run / SECOND / "s.npz", run / SECOND / "s.json")
    assert paths_of(tmp_path, "ray-train", "metadata") == (run / SECOND / "manifest.ocdbt",)
    assert paths_of(tmp_path, "ray-train", "pointer") == (run / SNAPSHOT,)
    assert paths_of(tmp_path, "ray-train", "commit-marker") == ()
    assert paths_of(tmp_path, "ray-train", "step") == (run / SECOND,)


def test_a_new_step_lies_in_the_run_and_is_an_orphan(tmp_path: Path, run: Path) -> None:
    assert step_path(tmp_path, "ray-train", 6) == run / SECOND
    path = step_path(tmp_path, "ray-train", 15)
    assert path == temporary_path(tmp_path, "ray-train", 15) == run / "checkpoint_000015"

    path.mkdir()

    assert (look(tmp_path)[path.name].step, look(tmp_path)[path.name].state) == (15, "incomplete")
