"""Objects as the API server has them, in the few words that a test needs."""

from typing import Any

from harness.targets.kubernetes.api import Object

RUN = "run-1"
NAMESPACE = "harness-run-1"


def metadata(name: str, task: int | None = 0, **fields: Any) -> Object:
    labels = fields.pop("labels", {}) | ({} if task is None else {"chaos-harness/task": str(task), "chaos-harness/run-id": RUN})
    return {"name": name, "namespace": NAMESPACE, "uid": f"uid-{name}", "labels": labels, **fields}


def pod(
    name: str,
    *,
    task: int | None = 0,
    phase: str = "Running",
    code: int | None = None,
    state: Object | None = None,
    labels: dict[str, str] | None = None,
    node: str = "worker2",
    conditions: tuple[Object, ...] = (),
    **fields: Any,
) -> Object:
    """A pod; ``code``: its container has ended with it."""
    ended = {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}}
    main = state if state is not None else {"running": {}} if code is None else ended
    return {
        "metadata": metadata(name, task, labels=labels or {}, **fields),
        "spec": {"nodeName": node, "containers": [{"name": "host"}]},
        "status": {"phase": phase, "containerStatuses": [{"name": "host", "state": main}], "conditions": list(conditions)},
    }


def pending(name: str, **fields: Any) -> Object:
    return pod(name, phase="Pending", state={"waiting": {"reason": "ContainerCreating"}}, **fields)


def host(name: str, rank: int, **fields: Any) -> Object:
    """A pod of a Job of several hosts."""
    return pod(name, labels={"batch.kubernetes.io/job-completion-index": str(rank), "chaos-harness/role": "host"}, **fields)


def ray_pod(name: str, cluster: str, *, role: str = "host", rank: int = 0, **fields: Any) -> Object:
    """A pod of a RayCluster."""
    labels = {"ray.io/cluster": cluster, "chaos-harness/role": role, "ray.io/replica-host-index": str(rank)}
    return pod(name, labels=labels, **fields)


def condition(kind: str, status: str = "True", reason: str = "", message: str = "") -> Object:
    return {"type": kind, "status": status, "reason": reason, "message": message}


def job(
    *conditions: Object, suspended: bool = False, backoff_limit: int = 2, failed: int = 0, name: str = "job-0", task: int = 0
) -> Object:
    spec = {"suspend": suspended, "backoffLimit": backoff_limit}
    return {"kind": "Job", "metadata": metadata(name, task), "spec": spec, "status": {"conditions": list(conditions), "failed": failed}}


def ray_job(deployment: str = "", job_status: str = "", *, cluster: str = "", **status: Any) -> Object:
    told = {"jobDeploymentStatus": deployment, "jobStatus": job_status, "rayClusterName": cluster, **status}
    return {"kind": "RayJob", "metadata": metadata("ray-0"), "spec": {"rayClusterSpec": {}}, "status": told}


def workload(*conditions: Object, name: str = "workload-0", owner: str = "uid-job-0", active: bool = True, **status: Any) -> Object:
    return {
        "metadata": metadata(name, None, ownerReferences=[{"uid": owner}]),
        "spec": {"active": active, "queueName": "user-queue"},
        "status": {"conditions": list(conditions), **status},
    }


def request(name: str, *conditions: Object, owner: str = "uid-workload-0") -> Object:
    return {"metadata": metadata(name, None, ownerReferences=[{"uid": owner}]), "spec": {}, "status": {"conditions": list(conditions)}}


def node(name: str, *, pool: str = "on-demand-pool", ready: str = "True", **spec: Any) -> Object:
    labels = {"cloud.google.com/gke-nodepool": pool} if pool else {}
    status = {"conditions": [condition("Ready", ready)]}
    return {"metadata": {"name": name, "uid": f"uid-{name}", "labels": labels}, "spec": spec, "status": status}
