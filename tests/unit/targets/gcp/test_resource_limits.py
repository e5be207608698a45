"""Memory of a job that is made or copied, and the CPUs that Cloud Run grants it with."""

from pathlib import Path

import pytest
from google.cloud import run_v2
from msgspec.structs import replace

from harness.emulator.failures import ApiError
from harness.emulator.run.resource_limits import check_limits
from harness.errors import UsageError
from harness.targets.gcp.deployment import Surroundings, build_job, copy_job
from harness.targets.gcp.pace import PROJECT
from harness.targets.gcp.refusals import MEMORY_MIB_MAX, MEMORY_MIB_MIN
from harness.targets.gcp.resource_limits import limits_of_copy, limits_of_made
from tests.unit.targets.gcp.launches import PLACE, launch_of

WITH_L4 = replace(PLACE, gpus=1, gpu_type="nvidia-l4")
EDGES = [MEMORY_MIB_MIN, 1024, 4096, 4097, 8192, 8193, 16384, 16385, 24576, 24577, MEMORY_MIB_MAX]


def taken(job: run_v2.Job) -> dict[str, str]:
    """The limits of a job, of which Cloud Run would not say that they do not fit one another."""
    task = job.template.template
    limits = dict(task.containers[0].resources.limits)
    check_limits(limits, accelerator=task.node_selector.accelerator, field="limits")
    return limits


@pytest.mark.parametrize("memory_mib", EDGES)
def test_a_job_that_is_made_has_the_cpus_that_its_memory_needs(tmp_path: Path, memory_mib: int):
    limits = taken(build_job(launch_of(tmp_path, memory_mib=memory_mib), Surroundings(place=PLACE, pace=PROJECT)))

    assert limits["memory"] == f"{memory_mib}Mi"


def test_that_much_memory_without_them_is_what_cloud_run_refuses():
    with pytest.raises(ApiError, match="for 1 CPU it must be between"):
        check_limits({"memory": "4097Mi"}, accelerator="", field="limits")


@pytest.mark.parametrize("memory_mib", [0, 16384, 16385, 24577, MEMORY_MIB_MAX])
def test_beside_a_gpu_it_has_at_least_what_that_one_needs(tmp_path: Path, memory_mib: int):
    limits = taken(build_job(launch_of(tmp_path, memory_mib=memory_mib), Surroundings(place=WITH_L4, pace=PROJECT)))

    assert limits["memory"] == f"{memory_mib or 16384}Mi"
    assert int(limits["cpu"]) >= 4


def test_less_than_a_gpu_needs_is_refused():
    with pytest.raises(UsageError, match="memory_mib is 8192, and a task with a nvidia-l4 has at least 16384 MiB"):
        limits_of_made(8192, gpus=1, gpu_type="nvidia-l4")
    with pytest.raises(UsageError, match=r"memory_mib is 8192, and the adopted job's 1 GPU of type nvidia-l4 and 4 CPUs"):
        limits_of_copy({"nvidia.com/gpu": "1", "cpu": "4", "memory": "16Gi"}, 8192, gpu_type="nvidia-l4")


@pytest.mark.parametrize("memory_mib", EDGES)
@pytest.mark.parametrize("cpu", [None, "500m", "1", "1000m", "2"])
def test_a_copy_has_more_cpus_where_its_memory_needs_them_and_never_fewer(tmp_path: Path, cpu: str | None, memory_mib: int):
    given = {"cpu": cpu} if cpu is not None else {}
    container = run_v2.Container(image="i", resources=run_v2.ResourceRequirements(limits=given))
    adopted = run_v2.Job(template=run_v2.ExecutionTemplate(template=run_v2.TaskTemplate(containers=[container])))

    limits = taken(copy_job(adopted, launch_of(tmp_path, memory_mib=memory_mib), Surroundings(place=PLACE, pace=PROJECT)))

    assert limits["memory"] == f"{memory_mib}Mi"
    assert memory_mib > 4096 or cpu in ("500m", None) or limits["cpu"] == cpu


def test_a_copy_whose_cpus_come_with_more_memory_is_refused():
    with pytest.raises(UsageError, match="memory_mib is 2048, and the adopted job's 8 CPUs come with at least 4096 MiB"):
        limits_of_copy({"cpu": "8000m", "memory": "8Gi"}, 2048)


def test_without_a_limit_of_the_scenario_the_adopted_jobs_hold():
    assert limits_of_copy({"cpu": "8", "memory": "8Gi"}, 0) == {"cpu": "8", "memory": "8Gi"}
