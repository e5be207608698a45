"""Makes a plan: what scenarios would touch on a real project, at what cost at worst, and what stands in the way. Reads only."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import msgspec

from harness.clock import Clock
from harness.errors import UsageError
from harness.scenario import Platform, Scenario, injection_name
from harness.scenario.cluster_faults import OccupyCapacity, PreemptWorkload
from harness.targets.gcp.guard import ALLOWED_LABEL, ALLOWED_VALUE, limit_problems
from harness.targets.gcp.impact import planned_faults
from harness.targets.gcp.permissions import is_of_writing
from harness.targets.gcp.place import Place
from harness.targets.gcp.plan import Exposure, Limits, Permission, Plan, PlannedScenario, Resource, digest_of
from harness.targets.gcp.quotas import is_short
from harness.targets.gcp.refusals import credentials_in
from harness.targets.gcp.resolving import Resolved
from harness.targets.gcp.resource_facts import JobShape
from harness.targets.gcp.resource_limits import limits_of_copy, limits_of_made
from harness.targets.gcp.secrets import Secrets, redact_document
from harness.targets.gcp.startup import startup_s_max

EXPIRES_AFTER_S = 3600.0
"""A person reads a plan and applies it; what is older than that was read by somebody who did something else since."""

ASKED_AGAIN = "the account that plans only reads; asked again when the plan is applied"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerators:
    """What one submission to a cluster holds at once, at most.

    Attributes:
        gpus: By what its pods ask for.
        chips: Of TPUs.
        problem: Why that cannot be read; empty: it was.
    """

    gpus: int = 0
    chips: int = 0
    problem: str = ""


UNREAD = Accelerators(problem="what its pods ask for was not read")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A scenario that shall be run.

    Attributes:
        scenario: Which.
        seed: With which seed.
        executions: How many: the run itself, and the uninterrupted ones that it is compared with.
        uninterrupted: What those are; None: there are none.
        accelerators: On a cluster.
        files: Manifests that it names, with digests of what they hold.
    """

    scenario: Scenario
    seed: int = 0
    executions: int = 1
    uninterrupted: Scenario | None = None
    accelerators: Accelerators = UNREAD
    files: Mapping[str, str] = field(default_factory=dict)


def make_plan(
    wanted: Sequence[Wanted],
    place: Place,
    resolved: Resolved,
    limits: Limits,
    *,
    clock: Clock,
    secrets: Secrets,
    jobs: int = 1,
    read_only_planner: bool = False,
) -> Plan:
    """The plan for what was resolved; it can be applied when it has no problems. Nothing in it looks like a credential.

    ``jobs`` is how many scenarios may run at once: each has its own execution, its own GPUs, its own faults. Of a ``read_only_planner``
    only the permissions to read are asked for: whether others are held is unknown until the plan is applied.
    """
    made_at = clock.utc()
    if read_only_planner:
        resolved = replace(resolved, permissions=tuple(map(_as_of_reader, resolved.permissions)))
    plan = Plan(
        made_at=made_at,
        expires_at=made_at + timedelta(seconds=EXPIRES_AFTER_S),
        place=place,
        limits=limits,
        scenarios=tuple(_scenario(each, place, resolved) for each in wanted),
        resources=resolved.resources,
        permissions=resolved.permissions,
        quotas=resolved.quotas,
        unknowns=(*_unknowns(resolved), *_uncounted(wanted)),
        notes=_notes(wanted, resolved),
        jobs=jobs,
        read_only_planner=read_only_planner,
    )
    problems = (
        *resolved.problems,
        *_credential_problems(wanted),
        *_resource_problems(plan),
        *_memory_problems(wanted, place, resolved.job),
        *_accelerator_problems(wanted, place),
        *_permission_problems(plan),
        *_quota_problems(plan),
        *limit_problems(plan, limits),
    )
    document = redact_document(msgspec.to_builtins(msgspec.structs.replace(plan, problems=problems)), secrets)
    return msgspec.convert(document, Plan)


def _as_of_reader(permission: Permission) -> Permission:
    """One that a reader need not hold tells nothing of who will apply the plan."""
    if not is_of_writing(permission.name) or permission.is_held is None:
        return permission
    return msgspec.structs.replace(permission, is_held=None, why=ASKED_AGAIN)


def _scenario(wanted: Wanted, place: Place, resolved: Resolved) -> PlannedScenario:
    scenario = wanted.scenario
    exposure = _exposure(wanted, place, resolved.job)
    return PlannedScenario(
        name=scenario.name,
        digest=digest_of(scenario, wanted.seed),
        seed=wanted.seed,
        exposure=exposure,
        duration_s=wanted.executions * (scenario.deadline_s + startup_s_max(exposure.attempts - 1)),
        faults=planned_faults(scenario, place, resolved.pool_sizes),
        uninterrupted=digest_of(wanted.uninterrupted, wanted.seed) if wanted.uninterrupted is not None else "",
        files=dict(wanted.files),
    )


def _exposure(wanted: Wanted, place: Place, job: JobShape | None) -> Exposure:
    """What the scenario grants, with the GPUs of the adopted job: a run's own job is a copy of that one with these retries and timeouts.

    Uninterrupted runs have the platform's defaults where the scenario grants less. Jobs on a cluster have no timeout of the platform's:
    until the deadline, and while they start and are ended, they hold what their pods ask for.
    """
    platform, usual = wanted.scenario.platform, Platform()
    if place.is_of_cluster:
        held = wanted.accelerators
        return Exposure(
            executions=wanted.executions,
            tasks=platform.tasks,
            attempts=1,
            timeout_s=wanted.scenario.deadline_s + startup_s_max(0),
            gpus=held.gpus + held.chips,
            chips=held.chips,
        )
    is_compared = wanted.uninterrupted is not None
    return Exposure(
        executions=wanted.executions,
        tasks=platform.tasks,
        attempts=1 + max(platform.max_retries, usual.max_retries if is_compared else 0),
        timeout_s=max(platform.timeout_s, usual.timeout_s if is_compared else 0.0),
        gpus=job.gpus if job is not None else place.gpus,
    )


def _credential_problems(wanted: Sequence[Wanted]) -> list[str]:
    found = [(each.scenario.name, problem) for each in wanted for problem in _credentials(each.scenario)]
    return [f"{name}: {problem}; take it out of the workload" for name, problem in found]


def _credentials(scenario: Scenario) -> list[str]:
    workload = scenario.workload
    return [f"{field}: {problem}" for field, problem in credentials_in(workload.environment, workload.command)]


def _resource_problems(plan: Plan) -> list[str]:
    found = [
        f"bucket {resource.name} has a retention policy of {seconds} s: what a run has written could not be removed"
        for resource in plan.resources
        if resource.kind == "bucket" and (seconds := resource.facts.get("retention_s", "0")) != "0"
    ]
    found += [
        f"bucket {resource.name} holds every new object (defaultEventBasedHold): what a run has written could not be removed"
        for resource in plan.resources
        if resource.kind == "bucket" and resource.facts.get("holds") == "true"
    ]
    for resource in plan.resources:
        if resource.action == "missing":
            more = "; name an image, and it is made" if resource.kind == "job" else ""
            found.append(f"{resource.kind} {resource.name} is not there{more}")
        elif resource.action == "adopt" and not _is_labelled(resource):
            label = f"{ALLOWED_LABEL}={ALLOWED_VALUE}"
            found.append(f"{resource.kind} {resource.name} is not labelled {label}; its owner may allow it by that label")
    return found


def _memory_problems(wanted: Sequence[Wanted], place: Place, job: JobShape | None) -> Iterator[str]:
    """Scenarios that ask for memory which Cloud Run does not grant with the CPUs and the GPU of the job."""
    for each in wanted:
        memory_mib = each.scenario.platform.memory_mib
        try:
            if job is None:
                limits_of_made(memory_mib, gpus=place.gpus, gpu_type=place.gpu_type)
            else:
                limits_of_copy(job.limits, memory_mib, gpu_type=job.gpu_type)
        except UsageError as error:
            yield f"{each.scenario.name}: {error}"


def _accelerator_problems(wanted: Sequence[Wanted], place: Place) -> list[str]:
    """Scenarios of which nobody can tell what they cost: that is not nothing."""
    return [
        f"{each.scenario.name}: the accelerator-hours are not known, and would be over every limit: {each.accelerators.problem}"
        for each in wanted
        if place.is_of_cluster and each.accelerators.problem
    ]


def _is_labelled(resource: Resource) -> bool:
    return resource.facts.get(f"labels.{ALLOWED_LABEL}") == ALLOWED_VALUE


def _permission_problems(plan: Plan) -> list[str]:
    missing: dict[str, list[str]] = {}
    for permission in plan.permissions:
        if permission.is_held is False:
            missing.setdefault(permission.resource, []).append(permission.name)
    return [f"{', '.join(names)} {'is' if len(names) == 1 else 'are'} missing on {resource}" for resource, names in missing.items()]


def _quota_problems(plan: Plan) -> list[str]:
    if not is_short(plan.quotas):
        return []
    limits = ", ".join(f"{quota.name} {quota.limit:g}" for quota in plan.quotas)
    return [f"{plan.quotas[0].needed:g} GPUs are needed in {plan.quotas[0].place}, and the quota is {limits}"]


def gpus_needed(wanted: Sequence[Wanted], place: Place, job: JobShape | None, jobs: int = 1) -> int:
    """GPUs that run at once, at most, when so many scenarios do."""
    return sum(sorted((cost.gpus * cost.tasks for cost in (_exposure(each, place, job) for each in wanted)), reverse=True)[:jobs])


def _unknowns(resolved: Resolved) -> tuple[str, ...]:
    """What nobody could tell, by resource."""
    unasked: dict[tuple[str, str], list[str]] = {}
    for permission in resolved.permissions:
        if permission.is_held is None:
            unasked.setdefault((permission.resource, permission.why), []).append(permission.name)
    return tuple(f"whether {', '.join(names)} are held on {resource}: {why}" for (resource, why), names in unasked.items())


def _uncounted(wanted: Sequence[Wanted]) -> list[str]:
    """Placeholders that faults bring into a queue: they take what is free there, while the fault lasts."""
    return [
        f"how many chips the placeholder of {injection_name(each.scenario.injections, index)} of {each.scenario.name} holds: not counted"
        for each in wanted
        for index, injection in enumerate(each.scenario.injections)
        if isinstance(injection.fault, OccupyCapacity | PreemptWorkload)
    ]


def _kept(bucket: Resource) -> list[str]:
    """What of a run stays in a bucket, and is billed, after everything was deleted."""
    facts, notes = bucket.facts, []
    if facts.get("versioning") == "true":
        notes.append(f"bucket {bucket.name} keeps versions: all that a run writes over is billed until the run ends, and is deleted then")
    if facts.get("softDelete_s", "0") != "0":
        days = int(facts["softDelete_s"]) / 86400
        notes.append(f"bucket {bucket.name} keeps what is deleted or written over for {days:g} days, and it is billed")
    if facts.get("hierarchicalNamespace") == "true":
        notes.append(
            f"bucket {bucket.name} has folders of its own: those of a run stay, empty; `gcloud storage rm --recursive` takes them away"
        )
    return notes


def _notes(wanted: Sequence[Wanted], resolved: Resolved) -> tuple[str, ...]:
    """Where what runs is not what the adopted job is, and what a bucket keeps of what is deleted."""
    notes = [
        f"what else the job mounts, its copies mount so: {told}"
        for resource in resolved.resources
        for name, told in resource.facts.items()
        if resource.kind == "job" and name.startswith("volumes.")
    ]
    notes += [note for resource in resolved.resources if resource.kind == "bucket" for note in _kept(resource)]
    job = resolved.job
    if job is None:
        return tuple(notes)
    for each in wanted:
        platform, name = each.scenario.platform, each.scenario.name
        if platform.max_retries != job.max_retries:
            notes.append(f"{name} runs with max_retries {platform.max_retries}, and the job itself has {job.max_retries}")
        if job.timeout_s and platform.timeout_s != job.timeout_s:
            notes.append(f"{name} runs with a timeout of {platform.timeout_s:g} s, and the job itself has {job.timeout_s:g} s")
    return tuple(notes)
