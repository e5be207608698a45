"""Tells what a job did that is followed by its log: its steps, its saves every tenth of them, and one file whose name tells no step."""

from msgspec.structs import replace

from harness.history import SaveEnded, Started, StepDone
from harness.scenario import LogPatterns, Outside, Workload
from tests.unit.checkers.builders import SILENT, Run

PATTERNS = LogPatterns(step=r"^step (?P<step>\d+)", saved=r"^saved (?P<step>\d+)", resumed=r"^resumed (?P<step>\d+)", done="^done")
JOB = replace(SILENT, steps=60, save_every=10, layout="files", outside=Outside(logs=PATTERNS))


def said(run: Run, *steps: int) -> Run:
    """It says these steps, and that it has saved those that it saves."""
    for step in steps:
        run.here(StepDone, step=step)
        if run.workload.save_every and step % run.workload.save_every == 0:
            run.put(-1, content=f"c{step}").here(SaveEnded, step=step)
    return run


def killed(*steps: int, workload: Workload = JOB) -> Run:
    """Its first attempt said these steps, and was killed."""
    return said(Run(workload).attempt(0).put(-1), *steps).killed()


def resumed(run: Run, step: int) -> Run:
    """It is tried again, and says from where it goes on."""
    return run.attempt(run.number + 1).here(Started, restored_step=step)
