"""What runs on a project would touch, as a document: ``plan.json``. Making one changes nothing; only one that still holds is applied."""

import hashlib
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Literal

import msgspec

from harness.errors import InvalidDocumentError, UsageError
from harness.history import read_document
from harness.scenario.documents import decode, encode
from harness.scenario.model import Scenario
from harness.targets.gcp.advice import planning, planning_anew
from harness.targets.gcp.place import Place

PLAN_VERSION = 1

ResourceKind = Literal["job", "bucket", "cluster", "node-pool"]


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a plan must stay within; as ``[gcp.limits]`` of ``harness.toml``."""

    blast_radius: int = 1
    gpu_hours: float = 1.0
    duration_s: float = 3600.0


class Resource(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A real thing that is adopted, or one that would be made.

    Attributes:
        kind: What it is.
        name: Full name.
        action: ``adopt``: it is there. ``make``: it is not, and would be made and removed again. ``missing``: it is not, and must be.
        facts: What would tell that it is another one, or was changed: uid, etag, generation, labels, and what the run depends on.
    """

    kind: ResourceKind
    name: str
    action: Literal["adopt", "make", "missing"]
    facts: dict[str, str] = {}


class Permission(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One that is needed; ``is_held`` None: no service tells, the call itself will."""

    resource: str
    name: str
    is_held: bool | None
    why: str = ""


class Quota(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A quota that is needed; ``limit`` None: it is not known, for the reason ``why``."""

    name: str
    place: str
    needed: float
    limit: float | None
    why: str = ""


class PlannedFault(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One injection: what is hit, by exact names, and how many at most.

    Attributes:
        injection: Its name.
        fault: Its kind.
        hits: What is hit.
        unit: What ``blast_radius`` counts.
        blast_radius: How many at once.
        times: In how many attempts.
        undo: How it is taken back; empty: it leaves nothing.
    """

    injection: str
    fault: str
    hits: tuple[str, ...]
    unit: Literal["tasks", "nodes"]
    blast_radius: int
    times: int = 1
    undo: str = ""


class Exposure(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What runs cost at worst: the timeout is per attempt, and every attempt is billed.

    Attributes:
        executions: The run itself, and uninterrupted ones that it is compared with.
        tasks: Of one execution.
        attempts: Of one task: ``max_retries`` + 1.
        timeout_s: Of one attempt. On a cluster nothing ends an attempt but the run's deadline: that, of all attempts together.
        gpus: Of one task, at once; TPU chips count as GPUs.
        chips: TPU chips among them.

    Source: https://docs.cloud.google.com/run/docs/configuring/task-timeout, /max-retries (both per attempt of a task).
    """

    executions: int
    tasks: int
    attempts: int
    timeout_s: float
    gpus: int
    chips: int = 0

    @property
    def gpu_hours(self) -> float:
        """Timeout × (retries + 1) × tasks × gpus, of all executions."""
        return self.executions * self.tasks * self.attempts * self.timeout_s * self.gpus / 3600.0


class PlannedScenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A scenario that would be run; ``digest`` tells one that was edited since, ``uninterrupted`` the run that it is compared with.

    ``files`` are the manifests that it names, each with a digest of what it holds.
    """

    name: str
    digest: str
    seed: int
    exposure: Exposure
    duration_s: float
    faults: tuple[PlannedFault, ...] = ()
    uninterrupted: str = ""
    files: dict[str, str] = {}

    @property
    def blast_radius(self) -> int:
        """The largest of its faults; 0 where there is none."""
        return max((fault.blast_radius for fault in self.faults), default=0)


class Plan(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole document.

    Attributes:
        version: Of its form.
        made_at: UTC.
        expires_at: UTC; after that it is not applied.
        place: Where.
        limits: What it was held against.
        scenarios: What would be run, in order.
        resources: What would be touched.
        permissions: What is needed, and held.
        quotas: What is needed, and there.
        problems: Why it cannot be applied; empty: it can.
        unknowns: What nobody could tell.
        notes: What is worth knowing.
        jobs: How many scenarios may run at once.
        read_only_planner: Whether it was made by an account that may only read: what that lacks for writing is unknown, and is asked
            again of the account that applies the plan.
        sha256: Of all the rest, where it stands in a file: what was read is what is applied. It tells edits by mistake; whoever means to
            can make it anew, and then what is there now is still held against it, field by field.
    """

    version: int = PLAN_VERSION
    made_at: datetime
    expires_at: datetime
    place: Place
    limits: Limits
    scenarios: tuple[PlannedScenario, ...]
    resources: tuple[Resource, ...]
    permissions: tuple[Permission, ...] = ()
    quotas: tuple[Quota, ...] = ()
    problems: tuple[str, ...] = ()
    unknowns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    jobs: int = 1
    read_only_planner: bool = False
    sha256: str = ""

    @property
    def gpu_hours(self) -> float:
        """At worst, of all scenarios."""
        return sum(scenario.exposure.gpu_hours for scenario in self.scenarios)

    @property
    def accelerators(self) -> str:
        """What is counted: ``GPUs``, or ``accelerators`` where TPU chips are among them."""
        return "accelerators" if any(scenario.exposure.chips for scenario in self.scenarios) else "GPUs"

    @property
    def hours(self) -> str:
        """Their hours."""
        return {"GPUs": "GPU-hours"}.get(self.accelerators, "accelerator-hours")

    @property
    def duration_s(self) -> float:
        """At worst, one scenario after the other."""
        return sum(scenario.duration_s for scenario in self.scenarios)

    @property
    def blast_radius(self) -> int:
        """Of faults that may act at once: the largest, one for each scenario that runs at the same time; 0 where there is none."""
        return _largest(self.jobs, [scenario.blast_radius for scenario in self.scenarios])

    @property
    def gpus(self) -> int:
        """That run at once, at most."""
        return _largest(self.jobs, [scenario.exposure.gpus * scenario.exposure.tasks for scenario in self.scenarios])


def _largest(count: int, figures: list[int]) -> int:
    return sum(sorted(figures, reverse=True)[:count])


def digest_of(scenario: Scenario, seed: int = 0) -> str:
    """Tells a scenario from one of the same name that promises or does something else, or is run with another seed."""
    return hashlib.sha256(encode(scenario) + f"seed {seed}".encode()).hexdigest()


def write_plan(plan: Plan, path: Path) -> None:
    """Write it, with the digest of what it holds.

    Raises:
        UsageError: When it cannot be written; directories are not made for it.
    """
    try:
        path.write_bytes(encode(msgspec.structs.replace(plan, sha256=sha256_of(plan))))
    except OSError as error:
        raise UsageError(f"cannot write the plan {path}: {error.strerror or error}; name a writable place with --plan-file") from error


def read_plan(path: Path) -> Plan:
    """Read one.

    Raises:
        InvalidDocumentError: When it cannot be read, is no plan, or was changed after it was written.
    """
    advice = f"make one with {planning()}"
    try:
        data = read_document(path)
    except OSError as error:
        problem = f"the plan cannot be read: {error.strerror or error}"
        raise InvalidDocumentError(document=str(path), field="", problem=problem, advice=advice) from error
    try:
        plan = decode(data, Plan, document=str(path))
    except InvalidDocumentError as error:
        where = f"{error.field}: " if error.field else ""
        raise InvalidDocumentError(document=str(path), field="", problem=f"is no plan: {where}{error.problem}", advice=advice) from error
    if plan.sha256 != sha256_of(plan):
        problem = "the plan was changed after it was written: its content is not that of its sha256"
        raise InvalidDocumentError(document=str(path), field="", problem=problem, advice=planning_anew())
    return msgspec.structs.replace(plan, sha256="")


def sha256_of(plan: Plan) -> str:
    """Tells a plan from every other, of whatever moment."""
    return hashlib.sha256(encode(msgspec.structs.replace(plan, sha256=""))).hexdigest()


def facts_of(labels: Mapping[str, str], prefix: str = "labels") -> dict[str, str]:
    """Labels as facts."""
    return {f"{prefix}.{name}": value for name, value in sorted(labels.items())}
