"""What tells that a resource is another one, or was changed, since a plan was made for it; and what of a job decides what it costs."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from harness.targets.gcp.job_volumes import other_volumes, told_volume
from harness.targets.gcp.plan import facts_of

if TYPE_CHECKING:
    from google.cloud.container_v1 import Cluster, NodePool
    from google.cloud.run_v2 import Job

GPU_RESOURCE = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobShape:
    """What of a job decides what a run of it costs, and how much memory one may have."""

    tasks: int = 0
    max_retries: int = 0
    timeout_s: float = 0.0
    gpus: int = 0
    gpu_type: str = ""
    limits: Mapping[str, str] = field(default_factory=dict)


def shape_of(job: "Job") -> JobShape:
    """What of a job decides what a run of it costs."""
    task = job.template.template
    return JobShape(
        tasks=job.template.task_count or 1,
        max_retries=task.max_retries,
        timeout_s=task.timeout.total_seconds(),
        gpu_type=task.node_selector.accelerator,
        gpus=sum(int(container.resources.limits.get(GPU_RESOURCE, "0")) for container in task.containers),
        limits=dict(task.containers[0].resources.limits) if task.containers else {},
    )


def job_facts(job: "Job") -> dict[str, str]:
    """What tells that a job is another one, was changed, or was used."""
    shape, task = shape_of(job), job.template.template
    return {
        "uid": job.uid,
        "etag": job.etag,
        "generation": str(job.generation),
        "executions": str(job.execution_count),
        "service_account": task.service_account,
        "images": ", ".join(container.image for container in task.containers),
        "task_count": str(shape.tasks),
        "max_retries": str(shape.max_retries),
        "timeout_s": f"{shape.timeout_s:g}",
        "gpus": str(shape.gpus),
        "gpu_type": shape.gpu_type,
        **{f"volumes.{volume.name}": told_volume(volume) for volume in other_volumes(job)},
        **facts_of(job.labels),
    }


def bucket_facts(document: Mapping[str, object]) -> dict[str, str]:
    """What tells that a bucket is another one of that name, or was changed."""
    labels = document.get("labels")
    facts = {
        name: str(document.get(name, "")) for name in ("id", "projectNumber", "location", "storageClass", "metageneration", "timeCreated")
    }
    space = document.get("hierarchicalNamespace")
    facts["hierarchicalNamespace"] = str(bool(isinstance(space, Mapping) and space.get("enabled"))).lower()
    facts["versioning"] = str(bool(_within(document, "versioning", "enabled"))).lower()
    facts["softDelete_s"] = str(_within(document, "softDeletePolicy", "retentionDurationSeconds") or 0)
    facts["holds"] = str(bool(document.get("defaultEventBasedHold"))).lower()
    facts["retention_s"] = str(_within(document, "retentionPolicy", "retentionPeriod") or 0)
    return facts | facts_of({str(key): str(value) for key, value in labels.items()} if isinstance(labels, Mapping) else {})


def _within(document: Mapping[str, object], name: str, field: str) -> object:
    """A field of a part of a bucket's document. Source: https://cloud.google.com/storage/docs/json_api/v1/buckets."""
    part = document.get(name)
    return part.get(field) if isinstance(part, Mapping) else None


def cluster_facts(cluster: "Cluster") -> dict[str, str]:
    """What tells that a cluster is another one, or was changed."""
    return {
        "id": cluster.id,
        "etag": cluster.etag,
        "status": cluster.status.name,
        "version": cluster.current_master_version,
        **facts_of(cluster.resource_labels),
    }


def pool_facts(pool: "NodePool") -> dict[str, str]:
    """What tells that a pool was changed, and all that an undo of a resize needs."""
    scaling = pool.autoscaling
    return {
        "etag": pool.etag,
        "status": pool.status.name,
        "version": pool.version,
        "machine_type": pool.config.machine_type,
        "initial_node_count": str(pool.initial_node_count),
        "autoscaling": f"{scaling.min_node_count}-{scaling.max_node_count}" if scaling.enabled else "off",
        **facts_of(pool.config.resource_labels),
    }


def pool_size_max(pool: "NodePool") -> int:
    """Nodes that a pool has or may have; counts are per zone, but for the total."""
    zones = max(1, len(pool.locations))
    scaling = pool.autoscaling
    limits = (scaling.max_node_count * zones, scaling.total_max_node_count) if scaling.enabled else ()
    return max(pool.initial_node_count * zones, *limits, 0)
