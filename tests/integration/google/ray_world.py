"""The cluster of a test with KubeRay on it: RayJobs become RayClusters of a head, hosts and a submitter, whose log tells the steps.

KubeRay is played in the plainest way: a RayCluster that loses a host is given up, and another one begins as long as the RayJob may be tried again.
"""

import itertools

from harness.kind.topology import TPU_RESOURCE
from harness.quantities import whole_number
from harness.targets.kubernetes.api import PODS, RAY_CLUSTERS, RAY_JOBS, WORKLOADS, Object
from harness.targets.kubernetes.task import RAY_CLUSTER_LABEL
from tests.integration.google.gke_world import STEPS, GkeWorld

QUOTA_HELD = {"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": ""}
ADMITTED = {"type": "Admitted", "status": "True", "reason": "Admitted", "message": ""}


class RayWorld(GkeWorld):
    """As ``GkeWorld``, with RayJobs beside Jobs."""

    def _run_pods(self) -> None:
        super()._run_pods()
        for job in self._all("rayjobs"):
            self._queue(job)
            status = job.get("status") or {}
            if status.get("jobDeploymentStatus") in ("Complete", "Failed"):
                self._clear_up(job)
                continue
            cluster = self.server.api.objects.get(("rayclusters", job["metadata"]["namespace"], status.get("rayClusterName", "")))
            if cluster is None:
                self._begin_cluster(job)
            else:
                self._live_as_cluster(job, cluster)

    def _queue(self, job: Object) -> None:
        """Kueue admits it at once: quota is not what is tried here."""
        name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
        if ("workloads", namespace, f"rayjob-{name}") in self.server.api.objects:
            return
        owner = {"kind": "RayJob", "name": name, "uid": job["metadata"]["uid"]}
        hosts = {"name": "hosts", "flavors": {TPU_RESOURCE: "on-demand"}, "resourceUsage": {TPU_RESOURCE: str(_chips(job))}}
        status = {"conditions": [QUOTA_HELD, ADMITTED], "admission": {"clusterQueue": "cluster-queue", "podSetAssignments": [hosts]}}
        metadata = {"name": f"rayjob-{name}", "namespace": namespace, "ownerReferences": [owner]}
        self.server.api.put(WORKLOADS, {"metadata": metadata, "spec": {"active": True}, "status": status})

    def _begin_cluster(self, job: Object) -> None:
        namespace, spec = job["metadata"]["namespace"], job["spec"]
        nodes = [node["metadata"]["name"] for node in self._all("nodes") if self._takes_pods(node)]
        hosts = [group for group in spec["rayClusterSpec"]["workerGroupSpecs"] for _ in range(int(group["numOfHosts"]))]
        if not nodes:
            return
        name = f"{job['metadata']['name']}-{len(self.server.api.changes)}"
        owner = {"kind": "RayJob", "name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}
        made = {"metadata": {"name": name, "namespace": namespace, "labels": dict(job["metadata"]["labels"]), "ownerReferences": [owner]}}
        cluster = self.server.api.put(RAY_CLUSTERS, made)
        self._start(cluster, "head", spec["rayClusterSpec"]["headGroupSpec"]["template"], nodes[0])
        for rank, (group, node) in enumerate(zip(hosts, itertools.cycle(nodes), strict=False)):
            self._start(cluster, f"host-{rank}", group["template"], node, rank=rank)
        self._start(cluster, "submitter", spec["submitterPodTemplate"], nodes[0])
        self.server.api.logs[f"{name}-submitter"] = f"resumed at step {self.steps.get(job['metadata']['name'], 0)}\n".encode()
        self._tell(job, "Running", "RUNNING", cluster=name)

    def _start(self, cluster: Object, part: str, template: Object, node: str, *, rank: int = 0) -> None:
        name, namespace = cluster["metadata"]["name"], cluster["metadata"]["namespace"]
        labels = {**(template["metadata"].get("labels") or {}), RAY_CLUSTER_LABEL: name, "ray.io/replica-host-index": str(rank)}
        owner = {"kind": "RayCluster", "name": name, "uid": cluster["metadata"]["uid"]}
        annotations = template["metadata"].get("annotations") or {}
        metadata = {
            "name": f"{name}-{part}",
            "namespace": namespace,
            "labels": labels,
            "annotations": annotations,
            "ownerReferences": [owner],
        }
        container = template["spec"]["containers"][0]["name"]
        status = {"phase": "Running", "containerStatuses": [{"name": container, "state": {"running": {}}}]}
        self.server.api.put(PODS, {"metadata": metadata, "spec": {**template["spec"], "nodeName": node}, "status": status})
        self.server.api.logs.setdefault(f"{name}-{part}", b"")

    def _live_as_cluster(self, job: Object, cluster: Object) -> None:
        """One tick."""
        api, name, namespace = self.server.api, cluster["metadata"]["name"], cluster["metadata"]["namespace"]
        pods = self._pods_of_cluster(name)
        nodes = {node["metadata"]["name"] for node in self._all("nodes")}
        lost = [pod for pod in pods if pod["metadata"].get("deletionTimestamp") or pod["spec"]["nodeName"] not in nodes]
        wanted = 2 + sum(int(group["numOfHosts"]) for group in job["spec"]["rayClusterSpec"]["workerGroupSpecs"])
        if lost or len(pods) < wanted:
            self._remove_cluster(name, namespace)
            self._tell(job, "Retrying", "FAILED", cluster=name)
            return
        done = self.steps[job["metadata"]["name"]] = self.steps.get(job["metadata"]["name"], 0) + 1
        api.logs[f"{name}-submitter"] += f"step {done}\n".encode()
        if done >= STEPS:
            api.logs[f"{name}-submitter"] += b"Training Complete!\n"
            for pod in pods:
                self._end_of(pod)
            self._tell(job, "Complete", "SUCCEEDED", cluster=name)

    def _clear_up(self, job: Object) -> None:
        """KubeRay removes the RayCluster of a RayJob that is over (``shutdownAfterJobFinishes``), and Kueue gives its quota back."""
        api, namespace = self.server.api, job["metadata"]["namespace"]
        cluster = job["status"]["rayClusterName"]
        if job["spec"].get("shutdownAfterJobFinishes") and ("rayclusters", namespace, cluster) in api.objects:
            self._remove_cluster(cluster, namespace)
        workload = api.objects.get(("workloads", namespace, f"rayjob-{job['metadata']['name']}"))
        if workload is not None and workload["status"].get("admission"):
            self._evict(workload, "Finished")

    def _pods_of_cluster(self, name: str) -> list[Object]:
        return [pod for pod in self._all("pods") if (pod["metadata"].get("labels") or {}).get(RAY_CLUSTER_LABEL) == name]

    def _remove_cluster(self, name: str, namespace: str) -> None:
        for pod in self._pods_of_cluster(name):
            self.server.api.remove(PODS, pod["metadata"]["name"], namespace)
        self.server.api.remove(RAY_CLUSTERS, name, namespace)

    def _end_of(self, pod: Object) -> None:
        container = pod["status"]["containerStatuses"][0]["name"]
        ended = {"terminated": {"exitCode": 0, "reason": "Completed"}}
        status = {"phase": "Succeeded", "containerStatuses": [{"name": container, "state": ended}]}
        self.server.api.put(PODS, {**pod, "status": status})

    def _tell(self, job: Object, deployment: str, told: str, *, cluster: str) -> None:
        status = {"jobDeploymentStatus": deployment, "jobStatus": told, "rayClusterName": cluster}
        self.server.api.put(RAY_JOBS, {**job, "status": status})


def _chips(job: Object) -> int:
    groups = job["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    return sum(
        int(group["numOfHosts"]) * whole_number(group["template"]["spec"]["containers"][0]["resources"]["limits"][TPU_RESOURCE])
        for group in groups
    )
