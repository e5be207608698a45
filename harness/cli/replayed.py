"""What ``harness replay`` runs again: a run, a scenario, the schedule of a run, or a failure that was written down."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.cli.worker import Finished, Refused
from harness.errors import InvalidDocumentError, UsageError
from harness.explore.schedules import Failure, read_failure, scenario_of
from harness.explore.schedules.cases import Case, Signature, signature_of
from harness.history import read_document, read_header, read_regular
from harness.scenario import Scenario, read_scenario, read_schedule
from harness.scenario.rules import RefusedValueError
from harness.store import RunDirectory
from harness.verdict import Outcome, Verdict


@dataclass(frozen=True, slots=True)
class ToRun:
    """What is run again.

    Attributes:
        case: The job, its faults, where, and by which seed.
        failure: Where it was written down as one.
    """

    case: Case
    failure: Failure | None = None


def read_asked(path: Path, *, seed: int | None = None) -> ToRun:
    """The case in a file: a failure, a scenario, or the faults of a run with the scenario that lies beside them.

    What lies beside the history of a run is run where that was, and by its seed.

    Args:
        path: The file.
        seed: Another seed than that.

    Raises:
        InvalidDocumentError: When it is none of these.
        UsageError: When the history says no seed.
    """
    fields = _fields(path)
    if "schedule" in fields:
        failure = read_failure(path)
        return ToRun(failure.case if seed is None else msgspec.structs.replace(failure.case, seed=seed), failure)
    history_path = RunDirectory(path.parent).history_path
    beside = path.with_name("scenario.json")
    if "injections" not in fields or "workload" in fields or not beside.exists():
        return ToRun(_as_it_ran(read_scenario(path), history_path, seed))
    scenario, schedule = read_scenario(beside), read_schedule(path)
    try:
        return ToRun(_as_it_ran(scenario_of(scenario, schedule), history_path, seed))
    except RefusedValueError as error:
        raise InvalidDocumentError(document=str(path), field="injections", problem=f"{error}, in {beside}") from error


def case_of_run(run: RunDirectory, *, seed: int | None = None) -> Case:
    """The case of a run: its scenario, where it ran, and its seed or another.

    Raises:
        InvalidDocumentError: When its scenario cannot be read.
        UsageError: When nobody says the seed.
    """
    return _as_it_ran(read_scenario(run.scenario_path), run.history_path, seed, must_say=True)


def said_of(failure: Failure, results: Sequence[Finished | Refused]) -> list[str]:
    """What a replay of a failure tells of it: how often it came then, and whether it is the same now."""
    lines = [f"it failed in {failure.reproduction.times} of {failure.reproduction.of} runs as: {_named(failure.signature)}"]
    if not failure.reproduction.of:
        lines = [f"it failed as: {_named(failure.signature)}; {failure.reproduction}"]
    for verdict in (_verdict_of(result) for result in results if isinstance(result, Finished)):
        signature = signature_of(verdict)
        if signature:
            lines.append("it fails as before" if signature == failure.signature else f"it fails in another way: {_named(signature)}")
        elif verdict.outcome is Outcome.VALID and failure.reproduction.times < (failure.reproduction.of or 1):
            lines[0] += "; one valid run proves little"
    return lines


def _as_it_ran(scenario: Scenario, history_path: Path, seed: int | None, *, must_say: bool = False) -> Case:
    """By the header of the history: what comes after it may be damaged."""
    if not must_say and not history_path.exists():
        return Case(scenario=scenario, seed=seed or 0)
    header = read_header(history_path)
    if header is None and seed is None:
        raise UsageError(f"{history_path} does not begin with a header, so the seed is not known; give it with --seed")
    if header is None:
        return Case(scenario=scenario, seed=seed or 0)
    return Case(scenario=scenario, target=header.target, seed=header.seed if seed is None else seed)


def _verdict_of(result: Finished) -> Verdict:
    path = RunDirectory(Path(result.summary.run)).verdict_path
    try:
        return msgspec.json.decode(read_regular(path), type=Verdict)
    except (OSError, msgspec.MsgspecError) as error:
        raise InvalidDocumentError(document=str(path), field="", problem=str(error)) from error


def _named(signature: Signature) -> str:
    return ", ".join(signature) or "no checker"


def _fields(path: Path) -> frozenset[str]:
    """The names that a document has at its top; none where it cannot be read, which its reader says better."""
    try:
        plain = msgspec.json.decode(read_document(path))
    except (OSError, msgspec.MsgspecError, UnicodeError, RecursionError):
        return frozenset()
    return frozenset(plain) if isinstance(plain, dict) else frozenset()
