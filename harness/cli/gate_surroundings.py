"""What the times of a gate's runs depend on beside the job: noted with a result, so that another place is seen where results differ."""

import os
import platform
from collections.abc import Mapping

from harness.cli.project_plan import Project

OF_PLACES = ("project", "region", "cluster", "zone", "job", "gpus", "gpu_type")

OF_JOBS = ("task_count", "max_retries", "timeout_s", "gpus", "gpu_type")
"""Of the job that is adopted, as the plan has seen it; its image is what a release changes."""


def surroundings_of(project: Project | None) -> Mapping[str, str]:
    """By name; what is not named or known is left out."""
    if project is None or project.applied is None:
        return {"machine": platform.machine(), "system": platform.system(), "processors": str(os.cpu_count() or "")}
    place = project.place.named()
    found = {name: place[name] for name in OF_PLACES}
    for resource in project.applied.resources:
        if resource.kind == "job" and resource.action == "adopt":
            found |= {f"job.{name}": resource.facts.get(name, "") for name in OF_JOBS}
    return {name: value for name, value in found.items() if value}
