"""What a gate has measured, and the accepted result that it is compared with: documents, ``gate.json`` and ``accepted.json``."""

import hashlib
from collections import Counter
from pathlib import Path

import msgspec

from harness.errors import InvalidDocumentError, UsageError
from harness.gate.document import TARGET_PLACE
from harness.gate.figures import Figure, FigureName
from harness.history import read_document
from harness.scenario import Scenario, decode, encode
from harness.store import write_whole
from harness.verdict import Outcome

RESULT_VERSION = 1
ACCEPTED_VERSION = 1

RESULT_NAME = "gate.json"
SUMMARY_NAME = "summary.md"


class MeasuredRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run of a scenario; ``reasons`` say why its verdict is not valid, ``run`` is its directory."""

    seed: int
    verdict: Outcome
    figures: dict[FigureName, Figure]
    reasons: tuple[str, ...] = ()
    run: str = ""


class MeasuredScenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scenario and its runs.

    Attributes:
        name: Its name.
        digest: Tells it from one of the same name that does or promises something else.
        seeds: Of the runs that are due, one each.
        runs: Those that were made.
        undone: Why others were not.
    """

    name: str
    digest: str
    seeds: tuple[int, ...]
    runs: tuple[MeasuredRun, ...] = ()
    undone: str = ""

    @property
    def unmade(self) -> int:
        """How many of the runs that are due were not made: one of another seed is none of them."""
        return (Counter(self.seeds) - Counter(run.seed for run in self.runs)).total()


class Measured(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that a gate has measured; ``gate.json`` without the judgement.

    Attributes:
        target: Where.
        made_at: When it began, UTC.
        scenarios: All that are due, in order.
        commit: Of the directory that the job was run from, as the runs say.
        versions: Of what the job's results may depend on, as the runs say.
        surroundings: Where it was measured, by what its times depend on: machine or region, job, GPUs.
        duration_s: How long it took.
        gpu_hours: At most; 0 where the target tells no GPUs.
        stopped: Why it ended before everything was run.
    """

    target: str
    made_at: str
    scenarios: tuple[MeasuredScenario, ...]
    commit: str = ""
    versions: dict[str, str] = {}
    surroundings: dict[str, str] = {}
    duration_s: float = 0.0
    gpu_hours: float = 0.0
    stopped: str = ""
    version: int = RESULT_VERSION


class AcceptedScenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was accepted of a scenario: the worst of its runs; None: there was nothing to measure. What was not measured is not here.

    Attributes:
        digest: Of the scenario as it was.
        seeds: Of the runs, one each: the worst of fewer is no match for it.
        figures: By name.
    """

    digest: str
    seeds: tuple[int, ...]
    figures: dict[FigureName, float | None]


class Accepted(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The accepted result, as it lies in version control.

    Attributes:
        target: Where it was measured.
        made_at: When, UTC.
        commit, versions, surroundings: Of what, and by what its times depend on.
        scenarios: By name.
    """

    target: str
    made_at: str
    scenarios: dict[str, AcceptedScenario]
    commit: str = ""
    versions: dict[str, str] = {}
    surroundings: dict[str, str] = {}
    version: int = ACCEPTED_VERSION


def digest_of(scenario: Scenario) -> str:
    """Tells a scenario by what it does and promises, not by its words; nor by its image, for that is what a release changes."""
    workload = msgspec.structs.replace(scenario.workload, image="")
    return hashlib.sha256(encode(msgspec.structs.replace(scenario, why="-", tags=(), workload=workload))).hexdigest()


def accepted_path(named: str, directory: Path, target: str) -> Path:
    """Where the accepted result of a target is, as ``gate.toml`` names it."""
    return directory / named.replace(TARGET_PLACE, target)


def read_accepted(path: Path) -> Accepted | None:
    """The accepted result; None: there is none yet.

    Raises:
        InvalidDocumentError: When it cannot be read or does not validate.
    """
    try:
        data = read_document(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidDocumentError(
            document=str(path), field="", problem=error.strerror or str(error), advice="name another with --accepted"
        ) from error
    found = decode(data, Accepted, document=str(path))
    _require_version(path, found.version, ACCEPTED_VERSION)
    return found


def write_accepted(path: Path, accepted: Accepted) -> None:
    """Write it, whole or not at all; what was accepted of another target is not overwritten.

    Raises:
        UsageError: When it would be.
        StoreError: When it cannot be written.
    """
    refuse_another(path, read_accepted(path), accepted.target)
    write_whole(path, encode(accepted), advice="name another place with --accepted")


def refuse_another(path: Path, before: Accepted | None, target: str) -> None:
    """Refuse to accept a result where that of another target is.

    Raises:
        UsageError: When one is.
    """
    if before is not None and before.target != target:
        raise UsageError(
            f"{path} is the accepted result of target {before.target}, and this one is of {target}; "
            f'name another file: accepted = "accepted-{TARGET_PLACE}.json" in [gate] has one for each target'
        )


def read_measured(path: Path) -> Measured:
    """What a gate has measured, from its ``gate.json`` or the directory that holds it.

    Raises:
        InvalidDocumentError: When it cannot be read or does not validate.
    """
    path = path / RESULT_NAME if path.is_dir() else path
    try:
        data = read_document(path)
    except OSError as error:
        advice = f"name the {RESULT_NAME} of a gate, or its directory"
        raise InvalidDocumentError(document=str(path), field="", problem=error.strerror or str(error), advice=advice) from error
    found = decode(data, _Written, document=str(path)).measured
    _require_version(path, found.version, RESULT_VERSION)
    return found


class _Written(msgspec.Struct, frozen=True, kw_only=True):
    """``gate.json``, read without its judgement: that is made anew."""

    measured: Measured


def _require_version(path: Path, found: int, known: int) -> None:
    if found != known:
        advice = "it was written by another version of the harness; make it anew"
        raise InvalidDocumentError(document=str(path), field="version", problem=f"it is {found}, and {known} can be read", advice=advice)
