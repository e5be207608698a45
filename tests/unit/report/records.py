"""Runs to be shown: a story told by the builder of histories, as a record in memory or as a run directory on disk."""

import os
from pathlib import Path

import msgspec

from harness.capabilities import Fidelity
from harness.history import Event, HistoryWriter
from harness.report.record import Record
from harness.scenario import Injection, Scenario, encode
from harness.scenario.faults import Kill
from harness.scenario.triggers import AtStep
from harness.store import Owner, RunDirectory
from harness.undo import identify
from harness.verdict import Finding, Outcome, Verdict, merge
from tests.unit.checkers.builders import JOB, Run, scenario_of

KILL = Injection(fault=Kill(), at=AtStep(step=7))

VALID = merge([Finding(checker="completes", outcome=Outcome.VALID, reason="task 0 is done")])
INVALID = merge(
    [
        Finding(checker="completes", outcome=Outcome.VALID, reason="task 0 is done"),
        Finding(checker="bit-exact-resume", outcome=Outcome.INVALID, reason="rng differs at step 6", evidence=("attempt 1, step 6",)),
    ]
)

PLAYED = Fidelity(what="SIGTERM, grace, SIGKILL", here="emulated", note="The moment is ours.", source="https://example.org/a?b=1&c=2")
ASSUMED = Fidelity(what="grace at timeout", here="emulated", note="Nobody says it.", source="a guess", verified=False)


def record_of(
    run: Run,
    *,
    injections: tuple[Injection, ...] = (),
    verdict: Verdict | None = VALID,
    fidelity: tuple[Fidelity, ...] | None = None,
    path: Path = Path("runs/a-job-is-judged/20260101T000000.000Z-0"),
) -> Record:
    """A record as it is read from a directory."""
    scenario = scenario_of(run.workload, injections=injections, platform=run.platform)
    return Record(directory=RunDirectory(path), scenario=scenario, history=run.history(), verdict=verdict, fidelity=fidelity)


def bare(*events: Event) -> Record:
    """A record of nothing but events."""
    from harness.history import History

    return Record(directory=RunDirectory(Path("runs/s/r")), scenario=None, history=History(events=events), verdict=None)


def keep(
    root: Path,
    events: list[Event],
    *,
    scenario: Scenario | None = None,
    verdict: Verdict | None = VALID,
    name: str = "20260101T000000.000Z-0",
    tail: bytes = b"",
) -> RunDirectory:
    """A run directory; ``tail`` is what stands at the end of the history after its events."""
    scenario = scenario if scenario is not None else scenario_of(JOB, injections=(KILL,))
    directory = RunDirectory(root / scenario.name / name)
    directory.path.mkdir(parents=True)
    directory.write(directory.owner_path, msgspec.json.encode(Owner(run_id="r", process=identify([os.getpid()])[0])))
    directory.write(directory.scenario_path, encode(scenario))
    writer = HistoryWriter(directory.history_path)
    writer.append(events)
    writer.close()
    with directory.history_path.open("ab") as file:
        file.write(tail)
    if verdict is not None:
        directory.write(directory.verdict_path, msgspec.json.encode(verdict))
    return directory
