"""A GKE cluster for tests: node pools and machines of the emulator, an API server in memory, and what controllers do between the two.

Nodes follow machines, Kueue's admission follows quota, pods of jobs count steps. Each is played in the plainest way that the objects allow.
"""

import contextlib
import threading
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from google.api_core.exceptions import GoogleAPICallError

from harness.clock import SystemClock
from harness.emulator import Emulator
from harness.emulator.container.durations import Durations
from harness.emulator.storage.buckets import BucketSettings
from harness.kind.topology import POOL_LABEL, TPU_RESOURCE
from harness.quantities import whole_number
from harness.targets.gcp.connection import Clients, connect
from harness.targets.gcp.secrets import Secrets
from harness.targets.kubernetes.api import (
    CLUSTER_QUEUES,
    CONFIG_MAPS,
    JOBS,
    LOCAL_QUEUES,
    NAMESPACES,
    NODES,
    PODS,
    RAY_CLUSTERS,
    RAY_JOBS,
    RESOURCE_FLAVORS,
    RESOURCE_QUOTAS,
    WORKLOADS,
    Object,
)
from tests.integration.google.api_server import TOKEN, ApiServer

PROJECT, ZONE, BUCKET = "our-project", "us-east5-b", "our-bucket"
PARENT = f"projects/{PROJECT}/locations/{ZONE}"
CLUSTER = f"{PARENT}/clusters/tpu"
POOL = f"{CLUSTER}/nodePools/on-demand-pool"
ALLOWED = {"harness-chaos": "allowed"}
STEPS = 60
TICK_S = 0.02
QUICK = Durations(create_cluster_s=0.05, create_pool_s=0.05, resize_s=0.2, update_s=0.1)
FLAVORS = {"on-demand": "on-demand-pool", "dws": "dws-pool"}


class GkeWorld:
    """Running from its construction to ``close``."""

    def __init__(self, directory: Path, *, pools: dict[str, dict[str, object]] | None = None, has_fuse: bool = True) -> None:
        self.clock = SystemClock()
        self.emulator = Emulator(directory / "emulator", clock=self.clock, projects=[PROJECT])
        project = self.emulator.world.projects.find(PROJECT)
        assert project is not None
        settings = BucketSettings(labels=ALLOWED)
        self.emulator.buckets.create(BUCKET, project=PROJECT, project_number=project.number, settings=settings)
        self.emulator.container.engine._durations = QUICK
        self.server = ApiServer(directory)
        self.clients: Clients = connect(PROJECT, self.emulator.endpoints.environment(), Secrets())
        self.token, self.renewals = TOKEN, 0
        self.steps: dict[str, int] = {}  # of each job
        self.ticks_a_step = 1
        self.expire_at_step = 0
        self._ticks = 0
        self._make_cluster(pools or {"on-demand-pool": {}}, has_fuse=has_fuse)
        self._make_queues()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.failure: BaseException | None = None
        self._thread.start()
        end_s = self.clock.monotonic_s() + 30.0
        while sum("on-demand-pool" in name for name in self.nodes()) < 2:
            assert self.clock.monotonic_s() < end_s, "the nodes do not come"
            self.clock.sleep(TICK_S)

    def environment(self) -> dict[str, str]:
        """The variables of the place."""
        told = {name: value for name, value in self.emulator.endpoints.environment().items() if name.startswith("HARNESS_")}
        place = {
            "PROJECT": PROJECT,
            "REGION": "us-east5",
            "BUCKET": BUCKET,
            "CLUSTER": "tpu",
            "ZONE": ZONE,
            "IMAGE": "some/image",
            "JOB": "",
        }
        return told | {f"HARNESS_GCP_{name}": value for name, value in place.items()}

    def connect(self, project: str, environment: Mapping[str, str], secrets: Secrets) -> Clients:
        """Clients of the emulator that have a token for the API server, as those of a real project have."""
        found = connect(project, environment, secrets)
        return replace(found, authorization=lambda: {"Authorization": f"Bearer {self.token}"}, renew=self._renew)

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Let the target ``gcp`` of this process be on it."""
        for name, value in self.environment().items():
            monkeypatch.setenv(name, value)
        for module in ("gke.target", "gke.leftovers", "gcp.undoing"):
            monkeypatch.setattr(f"harness.targets.{module}.connect", self.connect)

    def _renew(self) -> None:
        self.renewals += 1
        self.token = next(iter(self.server.tokens))

    def close(self) -> None:
        self._ended.set()
        self._thread.join()
        self.server.close()
        self.clients.close()
        self.emulator.close()
        assert self.failure is None, self.failure

    def finish(self, operation: object) -> None:
        """Wait for an operation of Kubernetes Engine."""
        name = f"{PARENT}/operations/{operation.name}"  # type: ignore[attr-defined]
        while self.clients.clusters.get_operation(name=name).status.name != "DONE":
            self.clock.sleep(0.02)

    def nodes(self) -> list[str]:
        """Names of nodes that are there."""
        with self.server.lock:
            return sorted(key[2] for key in self.server.api.objects if key[0] == "nodes")

    def pool_state(self) -> tuple[int, str]:
        """Nodes of the on-demand pool, and its autoscaling."""
        pool = self.clients.clusters.get_node_pool(name=POOL)
        return sum("on-demand-pool" in name for name in self.nodes()), str(pool.autoscaling)

    def forgive(self) -> None:
        """Every call is answered again."""
        self.server.refusals.clear()
        self.emulator.world.injections.clear()

    def await_pool(self, wanted: tuple[int, str]) -> None:
        """Machines come back in a while."""
        end_s = self.clock.monotonic_s() + 20.0
        while self.pool_state() != wanted:
            assert self.clock.monotonic_s() < end_s, (self.pool_state(), wanted)
            self.clock.sleep(TICK_S)

    def quota(self, flavor: str = "on-demand") -> int:
        """Nominal quota of chips."""
        with self.server.lock:
            return _quotas(self.server.api.objects["clusterqueues", "", "cluster-queue"])[flavor]

    def google_calls(self) -> list[str]:
        """Calls of Google's services that were to change something."""
        return [f"{call.method} {call.resource}" for call in self.emulator.world.calls.writes()]

    def namespaces(self) -> list[str]:
        with self.server.lock:
            return [key[2] for key in self.server.api.objects if key[0] == "namespaces"]

    # ---- what is there before a run ----------------------------------------------------------------------------------

    def _make_cluster(self, pools: dict[str, dict[str, object]], *, has_fuse: bool) -> None:
        wanted = {
            "name": "tpu",
            "initial_node_count": 1,
            "resource_labels": ALLOWED,
            "endpoint": self.server.endpoint,
            "master_auth": {"cluster_ca_certificate": self.server.authority},
            "addons_config": {"gcs_fuse_csi_driver_config": {"enabled": has_fuse}},
        }
        self.finish(self.clients.clusters.create_cluster(parent=PARENT, cluster=wanted))
        for name, fields in pools.items():
            config = {"machine_type": "ct6e-standard-4t", "resource_labels": ALLOWED, **fields.pop("config", {})}  # type: ignore[dict-item]
            pool = {"name": name, "initial_node_count": 2, "config": config, **fields}
            self.finish(self.clients.clusters.create_node_pool(parent=CLUSTER, node_pool=pool))

    def _make_queues(self) -> None:
        api = self.server.api
        resources = [{"name": TPU_RESOURCE, "nominalQuota": "16"}]
        groups = [{"coveredResources": [TPU_RESOURCE], "flavors": [{"name": "on-demand", "resources": resources}]}]
        api.put(
            CLUSTER_QUEUES,
            {
                "metadata": {"name": "cluster-queue", "labels": dict(ALLOWED)},
                "spec": {"resourceGroups": groups, "preemption": {"withinClusterQueue": "LowerPriority"}},
                "status": {"conditions": [{"type": "Active", "status": "True"}]},
            },
        )
        for flavor, pool in FLAVORS.items():
            api.put(RESOURCE_FLAVORS, {"metadata": {"name": flavor}, "spec": {"nodeLabels": {POOL_LABEL: pool}}})

    # ---- controllers -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while not self._ended.wait(TICK_S):
                self._ticks += 1
                if self._ticks % 10 == 1:  # instance groups look after their machines
                    with contextlib.suppress(GoogleAPICallError):  # a test lets the call fail
                        self.clients.clusters.get_cluster(name=CLUSTER, retry=None)
                with self.server.lock:
                    self._follow_machines()
                    self._collect_garbage()
                    self._admit()
                    self._run_pods()
        except BaseException as error:  # noqa: BLE001  the test is told
            self.failure = error

    def _all(self, plural: str) -> list[Object]:
        return [found for key, found in self.server.api.objects.items() if key[0] == plural]

    def _follow_machines(self) -> None:
        """GKE's node controller: a node for each machine that runs, none for one that does not."""
        api = self.server.api
        there: dict[str, Object] = {}
        with self.emulator.compute.engine.instances.lock:
            for found in self.emulator.compute.engine.instances:
                if found.stage.status == "RUNNING":
                    there[found.name] = {
                        "metadata": {"name": found.name, "labels": {POOL_LABEL: found.labels["goog-k8s-node-pool-name"]}},
                        "spec": {"providerID": f"gce://{PROJECT}/{ZONE}/{found.name}"},
                        "status": {
                            "nodeInfo": {"bootID": f"boot-{found.identifier}-{found.boots}"},
                            "conditions": [{"type": "Ready", "status": "True"}],
                        },
                    }
        known = {node["metadata"]["name"]: node for node in self._all("nodes")}
        for name in known.keys() - there.keys():
            api.remove(NODES, name)
        for name, node in there.items():
            if name not in known:
                api.put(NODES, node)
            elif known[name]["status"] != node["status"]:
                api.put(NODES, {**known[name], "status": node["status"]})

    def _collect_garbage(self) -> None:
        api = self.server.api
        spaces = {one["metadata"]["name"] for one in self._all("namespaces")}
        uids = {one["metadata"]["uid"] for one in api.objects.values()}
        for (plural, namespace, name), found in list(api.objects.items()):
            owners = found["metadata"].get("ownerReferences") or []
            is_orphan = bool(owners) and not any(owner["uid"] in uids for owner in owners)
            if (namespace and namespace not in spaces) or is_orphan:
                api.remove(_resource(plural), name, namespace)
        for one in self._all("localqueues"):
            if not one.get("status"):
                api.put(LOCAL_QUEUES, {**one, "status": {"conditions": [{"type": "Active", "status": "True"}]}})
        for one in self._all("resourcequotas"):
            if not one.get("status"):
                api.put(RESOURCE_QUOTAS, {**one, "status": {"hard": dict(one["spec"]["hard"])}})

    def _admit(self) -> None:
        """Kueue: one workload a job, admitted to the first flavor with quota; the greater priority first."""
        api = self.server.api
        for job in self._all("jobs"):
            name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
            if ("workloads", namespace, f"job-{name}") not in api.objects:
                owner = {"kind": "Job", "name": name, "uid": job["metadata"]["uid"]}
                metadata = {"name": f"job-{name}", "namespace": namespace, "ownerReferences": [owner]}
                api.put(WORKLOADS, {"metadata": metadata, "spec": {"active": True}, "status": {"conditions": []}})
        quota = _quotas(api.objects["clusterqueues", "", "cluster-queue"])["on-demand"]
        free = quota - sum(_held(one) for one in self._all("workloads"))
        for workload in sorted(self._all("workloads"), key=lambda one: not self._is_preempting(one)):
            job = self._job_of(workload)
            if job is None:
                continue
            chips = _chips(job)
            is_done = _has(job, "Complete")
            if _held(workload) and (is_done or not workload["spec"]["active"]):
                free += _held(workload)
                self._evict(workload, "Finished" if is_done else "Deactivated")
            elif not _held(workload) and workload["spec"]["active"] and not is_done:
                victims = [one for one in self._all("workloads") if _held(one) and not self._is_preempting(one)]
                if free < chips and self._is_preempting(workload):
                    for victim in victims:
                        free += _held(victim)
                        self._evict(victim, "Preempted")
                if free >= chips:
                    free -= chips
                    self._take_in(workload, chips)
        reserved = [{"name": "on-demand", "resources": [{"name": TPU_RESOURCE, "total": str(quota - free)}]}]
        queue = api.objects["clusterqueues", "", "cluster-queue"]
        if queue["status"].get("flavorsReservation") != reserved:
            api.put(CLUSTER_QUEUES, {**queue, "status": {**queue["status"], "flavorsReservation": reserved}})

    def _take_in(self, workload: Object, chips: int) -> None:
        assignment = {"name": "main", "flavors": {TPU_RESOURCE: "on-demand"}, "resourceUsage": {TPU_RESOURCE: str(chips)}}
        conditions = [{"type": kind, "status": "True", "reason": kind, "message": ""} for kind in ("QuotaReserved", "Admitted")]
        admission = {"clusterQueue": "cluster-queue", "podSetAssignments": [assignment]}
        self.server.api.put(WORKLOADS, {**workload, "status": {"conditions": conditions, "admission": admission}})

    def _evict(self, workload: Object, reason: str) -> None:
        kind = "Finished" if reason == "Finished" else "Evicted"
        conditions = [{"type": kind, "status": "True", "reason": reason, "message": f"because of {reason}"}]
        conditions += [{"type": one, "status": "False", "reason": reason, "message": ""} for one in ("QuotaReserved", "Admitted")]
        self.server.api.put(WORKLOADS, {**workload, "status": {"conditions": conditions}})
        job = self._job_of(workload)
        if reason != "Finished" and job is not None:
            for pod in self._pods_of(job):
                self.server.api.remove(PODS, pod["metadata"]["name"], pod["metadata"]["namespace"])

    def _run_pods(self) -> None:
        """Job controller, scheduler and kubelets: one pod a job, on a ready node; it counts steps, and goes on where the last one ended."""
        for job in self._all("jobs"):
            workload = self.server.api.objects.get(("workloads", job["metadata"]["namespace"], f"job-{job['metadata']['name']}"))
            pods = [pod for pod in self._pods_of(job) if pod["status"]["phase"] == "Running"]
            for pod in pods:
                self._live(job, pod)
            is_wanted = workload is not None and _held(workload) and not _has(job, "Complete")
            if is_wanted and not pods:
                self._start_pod(job)

    def _start_pod(self, job: Object) -> None:
        nodes = [node for node in self._all("nodes") if self._takes_pods(node)]
        if not nodes:
            return
        name = f"{job['metadata']['name']}-{len(self.server.api.changes)}"
        template = job["spec"]["template"]
        labels = {**(template["metadata"].get("labels") or {}), "batch.kubernetes.io/job-name": job["metadata"]["name"]}
        owner = {"kind": "Job", "name": job["metadata"]["name"], "uid": job["metadata"]["uid"]}
        self.server.api.put(
            PODS,
            {
                "metadata": {
                    "name": name,
                    "namespace": job["metadata"]["namespace"],
                    "labels": labels,
                    "annotations": {"boot": nodes[0]["status"]["nodeInfo"]["bootID"]},
                    "ownerReferences": [owner],
                },
                "spec": {**template["spec"], "nodeName": nodes[0]["metadata"]["name"]},
                "status": {"phase": "Running", "containerStatuses": [{"name": "host", "state": {"running": {}}}]},
            },
        )
        self.server.api.logs[name] = f"resumed at step {self.steps.get(job['metadata']['name'], 0)}\n".encode()

    def _live(self, job: Object, pod: Object) -> None:
        """One tick of a pod."""
        api, name, namespace = self.server.api, pod["metadata"]["name"], pod["metadata"]["namespace"]
        node = api.objects.get(("nodes", "", pod["spec"]["nodeName"]))
        if node is None or pod["metadata"].get("deletionTimestamp"):
            api.remove(PODS, name, namespace)
            return
        if node["status"]["nodeInfo"]["bootID"] != pod["metadata"]["annotations"]["boot"]:
            self._end(pod, 137)
            return
        if self._ticks % self.ticks_a_step or job["metadata"]["name"].startswith("occupant"):
            return
        done = self.steps[job["metadata"]["name"]] = self.steps.get(job["metadata"]["name"], 0) + 1
        api.logs[name] += f"step {done}\n".encode()
        if done == self.expire_at_step:
            self.server.tokens = {"ya29.second-token-of-the-caller"}
        if done >= STEPS:
            api.logs[name] += b"Training Complete!\n"
            self._end(pod, 0)
            complete = [{"type": "Complete", "status": "True", "reason": "", "message": ""}]
            api.put(JOBS, {**job, "status": {"conditions": complete, "succeeded": 1}})

    def _end(self, pod: Object, code: int) -> None:
        ended = {"terminated": {"exitCode": code, "reason": "Completed" if code == 0 else "Error"}}
        status = {"phase": "Succeeded" if code == 0 else "Failed", "containerStatuses": [{"name": "host", "state": ended}]}
        self.server.api.put(PODS, {**pod, "status": status})

    def _pods_of(self, job: Object) -> list[Object]:
        uid = job["metadata"]["uid"]
        return [pod for pod in self._all("pods") if pod["metadata"]["ownerReferences"][0]["uid"] == uid]

    def _job_of(self, workload: Object) -> Object | None:
        uid = workload["metadata"]["ownerReferences"][0]["uid"]
        return next((job for job in self._all("jobs") if job["metadata"]["uid"] == uid), None)

    def _is_preempting(self, workload: Object) -> bool:
        job = self._job_of(workload)
        return job is not None and "kueue.x-k8s.io/priority-class" in (job["metadata"].get("labels") or {})

    @staticmethod
    def _takes_pods(node: Object) -> bool:
        return node["metadata"]["labels"][POOL_LABEL] == "on-demand-pool" and not node["spec"].get("unschedulable")


def _resource(plural: str) -> object:
    known = (PODS, JOBS, WORKLOADS, LOCAL_QUEUES, RESOURCE_QUOTAS, NAMESPACES, RAY_JOBS, RAY_CLUSTERS, CONFIG_MAPS)
    return next(one for one in known if one.plural == plural)


def _quotas(queue: Object) -> dict[str, int]:
    flavors = queue["spec"]["resourceGroups"][0]["flavors"]
    return {flavor["name"]: whole_number(flavor["resources"][0]["nominalQuota"]) for flavor in flavors}


def _held(workload: Object) -> int:
    assignments = ((workload.get("status") or {}).get("admission") or {}).get("podSetAssignments") or []
    return sum(whole_number(one["resourceUsage"][TPU_RESOURCE]) for one in assignments)


def _chips(job: Object) -> int:
    container = job["spec"]["template"]["spec"]["containers"][0]
    return whole_number(container["resources"]["requests"][TPU_RESOURCE]) * int(job["spec"].get("parallelism", 1))


def _has(thing: Object, kind: str) -> bool:
    return any(one["type"] == kind and one["status"] == "True" for one in (thing.get("status") or {}).get("conditions") or [])
