"""What is written of a failure: ``schedule.json``, which runs it again, and a test that fails until the job is mended.

The artefact of record is the schedule as data, not what a tool drew it from: it outlives versions of Hypothesis, and people can read it.
"""

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.errors import InvalidDocumentError, StoreError
from harness.explore.schedules.cases import Case, Signature, canonical
from harness.explore.schedules.shrinking import Reproduction
from harness.history import read_document
from harness.scenario import Scenario, Schedule, decode, encode
from harness.store import write_whole

SCHEDULE_NAME = "schedule.json"

SCHEMA = 1


class Failure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A schedule with the job that fails under it.

    Attributes:
        schema: Version of this document.
        sha256: Of the document without this field and ``reproduced``; empty: it was written by hand.
        schedule: The faults.
        scenario: The job and its promises, without faults.
        target: Where it failed.
        seed: Of the job.
        signature: How it failed: the checkers, each with the class of the path that it names.
        reproduced: In how many runs it failed again, of how many; of 0: nobody has tried.
    """

    schema: int = SCHEMA
    sha256: str = ""
    schedule: Schedule
    scenario: Scenario
    target: str = "local"
    seed: int = 0
    signature: Signature = ()
    reproduced: tuple[int, int] = (0, 0)

    @property
    def case(self) -> Case:
        """What is run to see it again."""
        faulty = msgspec.structs.replace(self.scenario, injections=self.schedule.injections)
        return Case(scenario=faulty, target=self.target, seed=self.seed)

    @property
    def name(self) -> str:
        """Of its directory: the job's promise and the first digits of the hash."""
        return f"{self.scenario.name}-{self.sha256[:12]}"

    @property
    def reproduction(self) -> Reproduction:
        """How often it failed again."""
        return Reproduction(*self.reproduced)

    def __str__(self) -> str:
        return f"{', '.join(self.signature) or 'no checker'}; {self.reproduction}"


def failure_of(case: Case, signature: Signature, reproduced: tuple[int, int]) -> Failure:
    """The document of a failing case, in its canonical form."""
    failure = Failure(
        schedule=canonical(case.scenario.schedule),
        scenario=msgspec.structs.replace(case.scenario, injections=()),
        target=case.target,
        seed=case.seed,
        signature=signature,
        reproduced=reproduced,
    )
    return msgspec.structs.replace(failure, sha256=_hash(failure))


def write_failure(failure: Failure, directory: Path) -> Path:
    """Write a failure into a directory of its own below ``directory``: the schedule and a test. Returns the path of the schedule.

    Raises:
        StoreError: When it cannot be written.
    """
    own = directory / failure.name
    path = own / SCHEDULE_NAME
    try:
        own.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(path=own, attempted="create", reason=error.strerror or str(error)) from error
    write_whole(path, encode(failure))
    write_whole(own / f"test_{_identifier(failure)}.py", _regression_test(failure).encode())
    return path


def read_failure(path: Path) -> Failure:
    """Read ``schedule.json`` of a failure.

    Raises:
        InvalidDocumentError: When it cannot be read, does not validate, or is not what was written.
    """
    try:
        data = read_document(path)
    except OSError as error:
        problem = error.strerror or str(error)
        raise InvalidDocumentError(document=str(path), field="", problem=problem, advice="name a readable file") from error
    failure = decode(data, Failure, document=str(path))
    if failure.schema != SCHEMA:
        raise InvalidDocumentError(document=str(path), field="schema", problem=f"it is {failure.schema}, and this version reads {SCHEMA}")
    if failure.sha256 not in ("", _hash(failure)):
        advice = "take the field out to run what is there"
        raise InvalidDocumentError(
            document=str(path), field="sha256", problem="the document was changed after it was written", advice=advice
        )
    try:
        failure.case  # noqa: B018  the faults must be faults of the job
    except ValueError as error:
        raise InvalidDocumentError(document=str(path), field="schedule", problem=str(error)) from error
    return failure


def failures_in(directory: Path, scenario: str) -> Iterator[tuple[Path, Failure]]:
    """The failures of a scenario that were written below a directory; what cannot be read any more is none."""
    for path in sorted(directory.glob(f"{scenario}-*/{SCHEDULE_NAME}")):
        with contextlib.suppress(InvalidDocumentError):
            yield path, read_failure(path)


def _hash(failure: Failure) -> str:
    return hashlib.sha256(encode(msgspec.structs.replace(failure, sha256="", reproduced=(0, 0)))).hexdigest()


def _identifier(failure: Failure) -> str:
    return failure.name.replace("-", "_")


def _regression_test(failure: Failure) -> str:
    return f'''"""{failure.scenario.workload.name} failed: {failure}.

Put this directory below your tests to keep the failure from coming back. It runs on the target and with the seed with which it failed,
whatever the command line says. ``harness replay {SCHEDULE_NAME}`` runs it alone, with ``--root`` from anywhere but the root directory.
"""

from pathlib import Path

import pytest

from harness.explore.schedules import read_failure

FAILURE = read_failure(Path(__file__).with_name("{SCHEDULE_NAME}"))


@pytest.mark.chaos(FAILURE)
def test_it_stays_mended(chaos_run):
    assert chaos_run.verdict.is_valid, chaos_run.explain()
'''
