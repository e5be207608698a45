"""What keeps faults where they are allowed: labels, exact names, limits, and the conditions at which a run ends itself."""

from collections.abc import Mapping

import msgspec

from harness.errors import UsageError
from harness.targets.gcp.plan import Limits, Plan

ALLOWED_LABEL, ALLOWED_VALUE = "harness-chaos", "allowed"
"""Who owns a resource says so on the resource itself; nothing else opts it in."""

RUN_LABEL = "harness-run"
"""On everything that a run makes: by it, it is found and removed."""

LOCK_LABEL = "harness-lock"
"""On the job of a run: whose lock it was made under. Whoever looks at the region sees it, whatever bucket he works with."""

RUN_PREFIX = "harness/"
"""Of objects in the bucket; nothing outside of it is touched."""


class NotAllowedError(UsageError):
    """A resource that faults may not touch."""

    def __init__(self, *, kind: str, name: str, found: str) -> None:
        self.kind, self.name, self.found = kind, name, found
        super().__init__(
            f"{kind} {name} is not labelled {ALLOWED_LABEL}={ALLOWED_VALUE} ({found}), and is left alone; its owner may change that"
        )


class OverLimitError(UsageError):
    """A plan that goes beyond what was allowed."""

    def __init__(self, *, problems: tuple[str, ...]) -> None:
        self.problems = problems
        super().__init__(f"the plan is over its limits: {'; '.join(problems)}; run less, or raise them in [gcp.limits] of harness.toml")


class Reading(msgspec.Struct, frozen=True, kw_only=True):
    """What a run on a project sees of itself, for ``abort_reason``.

    Attributes:
        elapsed_s: Since the first run of its plan began.
        gpu_hours: Used so far, by all runs of its plan; those of TPU chips count.
        hours: What they are called.
        labels: Of each adopted resource now, by its full name; None: it is gone.
        holds_lock: Whether the project is still ours.
        foreign_executions: Executions of the adopted job itself that were begun since: what we run is a copy.
    """

    elapsed_s: float
    gpu_hours: float
    labels: Mapping[str, Mapping[str, str] | None]
    holds_lock: bool
    foreign_executions: tuple[str, ...] = ()
    hours: str = "GPU-hours"


def is_allowed(labels: Mapping[str, str]) -> bool:
    """Whether the owner of a resource allows faults on it."""
    return labels.get(ALLOWED_LABEL) == ALLOWED_VALUE


def require_allowed(kind: str, name: str, labels: Mapping[str, str]) -> None:
    """See that a resource may be touched.

    Raises:
        NotAllowedError: When it may not.
    """
    if not is_allowed(labels):
        value = labels.get(ALLOWED_LABEL)
        raise NotAllowedError(kind=kind, name=name, found="it has no such label" if value is None else f"its value is {value!r}")


def require_run_owned(object_name: str, run_id: str) -> None:
    """See that an object is below the prefix of a run; an empty run id owns nothing.

    Raises:
        NotAllowedError: When it is not.
    """
    prefix = run_prefix(run_id)
    if not run_id or not object_name.startswith(prefix) or ".." in object_name.split("/"):
        raise NotAllowedError(kind="object", name=object_name, found=f"it is not below {prefix}")


def run_prefix(run_id: str) -> str:
    """Where the objects of a run lie."""
    return f"{RUN_PREFIX}{run_id}/"


def limit_problems(plan: Plan, limits: Limits) -> tuple[str, ...]:
    """In what a plan is over limits, each with the value and the limit."""
    found: list[str] = []
    for scenario in plan.scenarios:
        found += [
            f"{fault.injection} of {scenario.name} hits {fault.blast_radius} {fault.unit}, and blast_radius is {limits.blast_radius}"
            for fault in scenario.faults
            if fault.blast_radius > limits.blast_radius
        ]
    if not found and plan.blast_radius > limits.blast_radius:
        at_once = f"{plan.jobs} scenarios at once (--jobs) hit {plan.blast_radius} tasks or nodes"
        found.append(f"{at_once}, and blast_radius is {limits.blast_radius}")
    if plan.gpu_hours > limits.gpu_hours:
        found.append(f"{plan.gpu_hours:.2f} {plan.hours} at worst, and gpu_hours is {limits.gpu_hours:g}")
    if plan.duration_s > limits.duration_s:
        found.append(f"{plan.duration_s:.0f} s at worst, and duration_s is {limits.duration_s:g}")
    return tuple(found)


def abort_reason(reading: Reading, limits: Limits) -> str:
    """Why a run must end itself now; empty: it may go on."""
    if not reading.holds_lock:
        return "the lock of the project is not ours any more"
    if over := used_up_reason(reading, limits):
        return over
    for name, labels in sorted(reading.labels.items()):
        if labels is None:
            return f"{name} is gone: somebody deleted it"
        if not is_allowed(labels):
            return f"{name} is not labelled {ALLOWED_LABEL}={ALLOWED_VALUE} any more: its owner wants no faults on it"
    if reading.foreign_executions:
        return f"somebody else runs the job: {', '.join(reading.foreign_executions)}"
    return ""


def used_up_reason(reading: Reading, limits: Limits) -> str:
    """In what a plan has used up its limits; empty: in nothing."""
    if reading.elapsed_s > limits.duration_s:
        return f"the runs of its plan have lasted for {reading.elapsed_s:.0f} s, and duration_s is {limits.duration_s:g}"
    if reading.gpu_hours > limits.gpu_hours:
        return f"the runs of its plan have used {reading.gpu_hours:.2f} {reading.hours}, and gpu_hours is {limits.gpu_hours:g}"
    return ""
