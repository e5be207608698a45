"""Sees whether a plan still holds before anything of it is done: another project, another scenario, too late, drifted, over limits."""

from collections.abc import Mapping, Sequence
from datetime import timedelta

import msgspec

from harness.clock import Clock
from harness.errors import UsageError
from harness.targets.gcp.advice import planning_anew
from harness.targets.gcp.guard import OverLimitError, limit_problems
from harness.targets.gcp.place import Place
from harness.targets.gcp.plan import PLAN_VERSION, Limits, Plan


class Drift(msgspec.Struct, frozen=True, kw_only=True):
    """A field that is not what it was when the plan was made."""

    field: str
    planned: str
    found: str

    def __str__(self) -> str:
        return f"{self.field}: planned {self.planned or 'nothing'}, found {self.found or 'nothing'}"


class PlanRefusedError(UsageError):
    """A plan that is not applied; nothing was done."""


class PlanDriftedError(PlanRefusedError):
    """What a plan was made for is not what is there now."""

    def __init__(self, *, drifts: Sequence[Drift]) -> None:
        self.drifts = tuple(drifts)
        super().__init__(f"the plan does not hold any more: {'; '.join(map(str, drifts))}; {planning_anew()}")


class PlanExpiredError(PlanRefusedError):
    """A plan that is too old, or comes from the future."""

    def __init__(self, *, made_at: str, expires_at: str, now: str) -> None:
        super().__init__(f"the plan was made at {made_at} for use until {expires_at}, and it is {now}; {planning_anew()}")


class PlanOfAnotherError(PlanRefusedError):
    """A plan for another place, or for other scenarios."""

    def __init__(self, *, drifts: Sequence[Drift]) -> None:
        self.drifts = tuple(drifts)
        super().__init__(f"the plan is for something else: {'; '.join(map(str, drifts))}; {planning_anew()}")


class PlanProblemError(PlanRefusedError):
    """A plan that could not be applied when it was made."""

    def __init__(self, *, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__(f"the plan has problems: {'; '.join(problems)}; mend them, then {planning_anew()}")


def require_fitting(plan: Plan, *, place: Place, digests: Mapping[str, str], clock: Clock, jobs: int = 1) -> None:
    """See that a plan is for this place, these scenarios and this hour; asks no service.

    Args:
        plan: As it was read.
        place: Where runs shall happen.
        digests: Of the scenarios that shall run, by name.
        clock: For the hour.
        jobs: How many shall run at once; fewer than planned is right.

    Raises:
        PlanRefusedError: When it is not.
    """
    others = _scenario_differences(plan, digests)
    if jobs > plan.jobs:
        others.append(Drift(field="scenarios at once", planned=str(plan.jobs), found=str(jobs)))
    if others:
        raise PlanOfAnotherError(drifts=others)
    require_current(plan, place=place, clock=clock)


def require_current(plan: Plan, *, place: Place, clock: Clock, late_s: float = 0.0) -> None:
    """See that a plan is for this place and this hour, and could be applied when it was made; asks no service.

    Args:
        plan: As it was read.
        place: Where runs shall happen.
        clock: For the hour.
        late_s: By how much it may be over: runs of a plan that was applied in time may last.

    Raises:
        PlanRefusedError: When it is not.
    """
    if plan.version != PLAN_VERSION:
        raise PlanOfAnotherError(drifts=[Drift(field="version", planned=str(plan.version), found=str(PLAN_VERSION))])
    others = _differences("", msgspec.to_builtins(plan.place), msgspec.to_builtins(place))
    if others:
        raise PlanOfAnotherError(drifts=others)
    now = clock.utc()
    if not plan.made_at <= now < plan.expires_at + timedelta(seconds=late_s):
        raise PlanExpiredError(made_at=_told(plan.made_at), expires_at=_told(plan.expires_at), now=_told(now))
    if plan.problems:
        raise PlanProblemError(problems=plan.problems)


def require_holding(plan: Plan, found: Plan, limits: Limits) -> None:
    """See that what a plan was made for is there unchanged, and within limits.

    Where it was made by an account that only reads, the permissions are those of the account that applies it, all of them, and no drift.

    Args:
        plan: As it was read.
        found: The same plan, made just now.
        limits: As they are now.

    Raises:
        PlanDriftedError: When something is not as it was.
        OverLimitError: When it is over limits.
        PlanProblemError: When something stands in the way that no field tells.
    """
    drifts = drifts_between(plan, found)
    if drifts:
        raise PlanDriftedError(drifts=drifts)
    over = (*limit_problems(plan, limits), *_wider(plan.limits, limits))
    if over:
        raise OverLimitError(problems=over)
    if found.problems:
        raise PlanProblemError(problems=found.problems)


def _wider(planned: Limits, limits: Limits) -> list[str]:
    """Limits of a plan by which a run would end itself later than is allowed now."""
    asked, allowed = msgspec.structs.asdict(planned), msgspec.structs.asdict(limits)
    return [f"the plan has {name} {asked[name]:g}, and it is {allowed[name]:g}" for name in asked if asked[name] > allowed[name]]


def drifts_between(plan: Plan, found: Plan) -> list[Drift]:
    """Each field of resources, permissions, quotas, costs and faults that is not what it was, with what was planned and found."""
    return [
        *_differences("", _resources(plan), _resources(found)),
        *([] if plan.read_only_planner else _differences("", _permissions(plan), _permissions(found))),
        *([] if _is_unread(plan, found) else _differences("", _quotas(plan), _quotas(found))),
        *_differences("", _costs(plan), _costs(found)),
    ]


def _is_unread(plan: Plan, found: Plan) -> bool:
    """Whether the account that planned or the one that applies, another one, may not read quotas: that is no drift of theirs."""
    return plan.read_only_planner and any(quota.limit is None for quota in (*plan.quotas, *found.quotas))


def _scenario_differences(plan: Plan, digests: Mapping[str, str]) -> list[Drift]:
    planned = {f"scenario {scenario.name}": f"digest {scenario.digest[:12]}" for scenario in plan.scenarios}
    return _differences("", planned, {f"scenario {name}": f"digest {digest[:12]}" for name, digest in digests.items()})


def _differences(place: str, planned: Mapping[str, object], found: Mapping[str, object]) -> list[Drift]:
    return [
        Drift(field=f"{place}{name}", planned=_shown(planned, name), found=_shown(found, name))
        for name in dict.fromkeys([*planned, *found])
        if planned.get(name) != found.get(name)
    ]


def _shown(fields: Mapping[str, object], name: str) -> str:
    return str(fields[name]) if name in fields else ""


def _resources(plan: Plan) -> dict[str, str]:
    fields: dict[str, str] = {}
    for resource in plan.resources:
        place = f"{resource.kind} {resource.name}"
        fields[place] = resource.action
        fields |= {f"{place}: {name}": value for name, value in resource.facts.items()}
    return fields


def _permissions(plan: Plan) -> dict[str, str]:
    told = {True: "held", False: "missing", None: "unknown"}
    return {f"{permission.name} on {permission.resource}": told[permission.is_held] for permission in plan.permissions}


def _quotas(plan: Plan) -> dict[str, str]:
    return {
        f"quota {quota.name} in {quota.place}": f"{quota.needed:g} of {'an unknown limit' if quota.limit is None else f'{quota.limit:g}'}"
        for quota in plan.quotas
    }


def _costs(plan: Plan) -> dict[str, str]:
    fields: dict[str, str] = {}
    for scenario in plan.scenarios:
        fields[f"{plan.hours} of {scenario.name}"] = f"{scenario.exposure.gpu_hours:.3f}"
        fields[f"seconds of {scenario.name}"] = f"{scenario.duration_s:g}"
        fields[f"uninterrupted run of {scenario.name}"] = scenario.uninterrupted[:12]
        fields |= {f"{name} of {scenario.name}": digest[:12] for name, digest in scenario.files.items()}
        for fault in scenario.faults:
            fields[f"{fault.injection} of {scenario.name}"] = f"{fault.blast_radius} {fault.unit}: {', '.join(fault.hits)}"
    return fields


def _told(moment: object) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"
