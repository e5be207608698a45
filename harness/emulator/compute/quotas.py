"""Quotas of a project as Compute Engine counts them: in each region, or over all.

A quota is what the project's state names; what it does not name has no limit and is not shown.
"""

from collections import Counter
from collections.abc import Iterable

from harness.emulator.compute.instances import Instance
from harness.emulator.compute.machines import gpus_in
from harness.emulator.compute.refusals import global_quota_exceeded
from harness.emulator.project import ProjectState

ALL_REGIONS = "_ALL_REGIONS"
"""How the names of quotas of a whole project end."""


def used_in(instances: Iterable[Instance], project: str, region: str = "") -> Counter[str]:
    """What the instances of a project use that hold a machine; of one region, or of all."""
    used: Counter[str] = Counter()
    for instance in instances:
        if instance.zone.project == project and region in ("", instance.zone.region) and instance.has_machine:
            used += instance.described.used
    if not region:
        used = Counter({f"GPUS{ALL_REGIONS}": gpus_in(used), f"CPUS{ALL_REGIONS}": used["CPUS"]})
    return used


def require_quotas(instances: Iterable[Instance], project: ProjectState, wanted: Instance) -> None:
    """See that there is quota for one more instance, which is not counted yet if it is among ``instances``.

    Raises:
        ApiError: RESOURCE_EXHAUSTED, ``QUOTA_EXCEEDED``.
    """
    others = [instance for instance in instances if instance is not wanted]
    region = wanted.zone.region
    needs = wanted.described.used
    used = used_in(others, project.name, region) + needs
    for name in sorted(needs):
        project.require_quota(name, used[name], place=f"region {region}")
    everywhere = used_in(others, project.name)
    for name, more in ((f"GPUS{ALL_REGIONS}", gpus_in(needs)), (f"CPUS{ALL_REGIONS}", needs["CPUS"])):
        limit = project.quotas.get(name)
        if more and limit is not None and everywhere[name] + more > limit:
            raise global_quota_exceeded(name, limit)


def quota_documents(project: ProjectState, used: Counter[str], *, is_global: bool) -> list[dict[str, object]]:
    """Quotas with their usage, as regions and projects show them."""
    return [
        {"metric": name, "limit": limit, "usage": float(used[name])}
        for name, limit in sorted(project.quotas.items())
        if name.endswith(ALL_REGIONS) == is_global
    ]
