"""Jobs that are wrong in one known way are found out from one crash state; the right job is valid from each of them."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.explore.executors.local import LocalExecutor
from harness.explore.judgement import Judgement
from harness.explore.judging.copies import describe
from harness.explore.judging.criteria import judge
from harness.explore.judging.expected import expect
from harness.explore.operations import Said
from harness.explore.recipe import StateTask
from harness.verdict import Outcome
from tests.integration.explore.recipes import LINEAR, ROOT, linear

DIES = """
import importlib, os, sys
from workloads import protocol
from workloads.linear import checkpoints, train
name, event, nth = sys.argv[1], sys.argv[2], int(sys.argv[3])
seen = 0
def emit(said, **fields):
    global seen
    protocol.emit(said, **fields)
    seen += said == event
    if said == event and seen == nth:
        os._exit(9)
train.emit = checkpoints.emit = emit
module = importlib.import_module(name)
if hasattr(module, 'emit'):
    module.emit = emit
own = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, train.Trainer) and kind.__module__ == name]
raise SystemExit(train.main(own[0] if own else train.Trainer))
"""
"""The job, which dies right after the nth event of a kind."""

STEP, RESTORES, KEEPS = "step 9", "restores-what-was-saved", "keeps-what-was-acknowledged"
COMPLETES, RECOVERS, SAVES = "completes-as-uninterrupted", "recovers", "saves-at-its-cadence"

WRONG = {
    "crash_loop": ("step 5", RECOVERS),
    "crashes_on_stale_lock": (STEP, RECOVERS),
    "crashes_on_stale_temporary": ("save.write 3", RECOVERS),
    "deletes_old_before_new": ("save.begin 2", KEEPS),
    "forgets_average": (STEP, COMPLETES),
    "forgets_optimizer": (STEP, RESTORES),
    "forgets_rng": (STEP, RESTORES),
    "latest_before_data": ("save.begin 2", KEEPS),
    "off_by_one_on_resume": (STEP, COMPLETES),
    "picks_incomplete_checkpoint": ("save.write 3", RECOVERS),
    "restarts_data_order": (STEP, RESTORES),
    "saves_in_place": ("save.write 2", KEEPS),
    "skips_saves_after_resume": ("save.commit 2", SAVES),
    "stale_learning_rate": (STEP, COMPLETES),
    "starts_from_scratch": (STEP, KEEPS),
}

JudgeOne = Callable[[str, str], Judgement]


@pytest.fixture
def judge_crash(tmp_path: Path) -> Iterator[JudgeOne]:
    """Lets a job die after an event, and judges recovery from what it left."""
    blobs = tmp_path / "blobs"
    blobs.mkdir()
    executor = LocalExecutor(blobs, jobs=2, run_id=tmp_path.name)

    def judge_one(job: str, point: str) -> Judgement:
        directory, events = tmp_path / "checkpoints", tmp_path / "events.jsonl"
        directory.mkdir()
        own = {**LINEAR["environment"], "CHECKPOINT_DIR": str(directory), "HARNESS_EVENTS": str(events)}
        died = subprocess.run([sys.executable, "-c", DIES, job, *point.split()], cwd=ROOT, env={**os.environ, **own}, capture_output=True)
        assert died.returncode == 9, died.stderr
        pieces = describe(directory)
        for piece in pieces:
            if piece.kind == "file":
                shutil.copy(directory / piece.path, blobs / piece.content)
        log = [Said(index=index, t_s=0.0, line=line) for index, line in enumerate(events.read_text().splitlines(), start=1)]
        recipe = linear(command=(sys.executable, "-m", job))
        tasks = [StateTask(state="golden", pieces=(), again=True), StateTask(state="crash", pieces=pieces, again=True)]
        tried = {each.state: each for each in executor.try_all(tasks, recipe, deadline_s=float("inf"))}
        golden = tried["golden"].first
        assert golden is not None
        expected = expect(log, golden, golden_again=tried["golden"].second)
        return judge(tried["crash"], expected, at=len(log))

    yield judge_one
    executor.close()


def named(judgement: Judgement) -> dict[str, str]:
    return {broken.promise: broken.says for broken in judgement.broken if broken.outcome is Outcome.INVALID}


@pytest.mark.parametrize(("job", "point", "promise"), [(job, *what) for job, what in WRONG.items()], ids=WRONG)
def test_a_wrong_job_breaks_the_promise_that_it_is_known_to_break(judge_crash: JudgeOne, job: str, point: str, promise: str) -> None:
    broken = named(judge_crash(f"workloads.broken.{job}", point))

    assert promise in broken, json.dumps(broken)


@pytest.mark.parametrize("point", sorted({point for point, _ in WRONG.values()} | {"save.end 2", "gc.begin 2", "save.latest 3", "boot 1"}))
def test_the_right_job_is_valid_wherever_it_dies(judge_crash: JudgeOne, point: str) -> None:
    judgement = judge_crash("workloads.linear.train", point)

    assert judgement.broken == ()
    assert {RECOVERS, COMPLETES, "keeps-the-last-good-checkpoint", "recovers-twice-alike"} <= set(judgement.checked)
    assert (SAVES in judgement.checked) is (point != "save.latest 3")  # then nothing is left to be saved
