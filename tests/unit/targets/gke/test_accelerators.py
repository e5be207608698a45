"""GPUs and TPU chips of what is submitted to a cluster: counted from what pods ask for, and never 0 where that cannot be read."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.scenario import Cluster, Platform, Scenario, Workload
from harness.scenario.expectations import Completes
from harness.targets.gke.accelerators import accelerators_of

ROOT = Path(__file__).resolve().parents[4]

TPU, GPU = "google.com/tpu", "nvidia.com/gpu"


def container(name: str = "main", **resources: dict[str, Any]) -> dict[str, Any]:
    return {"name": name, "image": "i", "resources": resources}


def template(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": list(containers) or [container()], **spec}}


CHIPS = template(container(limits={TPU: "4"}, requests={TPU: 4, "cpu": "100m"}))


def group(**fields: Any) -> dict[str, Any]:
    return {"groupName": "hosts", "template": CHIPS, **fields}


def ray_job(*groups: dict[str, Any], head: dict[str, Any] | None = None, **cluster: Any) -> dict[str, Any]:
    written = {"headGroupSpec": {"template": head or template()}, "workerGroupSpecs": list(groups), **cluster}
    return {"apiVersion": "ray.io/v1", "kind": "RayJob", "metadata": {"name": "train"}, "spec": {"rayClusterSpec": written}}


def job(pods: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "train"}, "spec": {"template": pods, **spec}}


def scenario_of(cluster: Cluster, ranks: int = 1) -> Scenario:
    workload = Workload(name="train", command=("python", "train.py"), ranks=ranks)
    return Scenario(name="a-job-trains", why="w", workload=workload, platform=Platform(tasks=2), cluster=cluster, expects=(Completes(),))


WRITTEN = {
    "a RayJob that is scaled may have all its replicas": (
        ray_job(group(replicas=1, maxReplicas=2, numOfHosts=4), enableInTreeAutoscaling=True),
        (0, 32),
    ),
    "one that is not scaled has what is written": (ray_job(group(replicas=3)), (0, 12)),
    "each group counts, and the head": (
        ray_job(group(replicas=1), group(replicas=1, numOfHosts=2), head=template(container(limits={GPU: "1"}))),
        (1, 12),
    ),
    "a Job has as many pods as run at once": (job(template(container(limits={GPU: 8})), parallelism=2, completions=6), (16, 0)),
    "a Job has one pod where nothing is said": (job(template(container(limits={GPU: 8}))), (8, 0)),
    "containers add up, and what runs before them takes their place": (
        job(template(container(requests={GPU: 2}), container("b", limits={GPU: 1}), initContainers=[container("c", limits={GPU: 2})])),
        (3, 0),
    ),
    "what runs before them may need more": (
        job(template(container(limits={GPU: 2}), initContainers=[container("c", limits={GPU: 4})])),
        (4, 0),
    ),
    "what runs beside them adds to them": (
        job(template(container(limits={GPU: 2}), initContainers=[{**container("c", limits={GPU: 1}), "restartPolicy": "Always"}])),
        (3, 0),
    ),
    "what needs none has none": (job(template(container(limits={"cpu": "2", "networking.gke.io.networks/a": "1"}))), (0, 0)),
}


@pytest.mark.parametrize("case", WRITTEN)
def test_pods_are_counted_by_what_they_ask_for(case: str, tmp_path: Path):
    written, (gpus, chips) = WRITTEN[case]
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(written))
    found = accelerators_of(scenario_of(Cluster(manifest="job.yaml")), tmp_path)
    assert (found.problem, found.gpus, found.chips) == ("", gpus, chips)


UNREADABLE = {
    "the autoscaler has no bound": (ray_job(group(replicas=1), enableInTreeAutoscaling=True), "maxReplicas: is not written"),
    "of another cluster nothing is known": (
        {
            "apiVersion": "ray.io/v1",
            "kind": "RayJob",
            "metadata": {"name": "train"},
            "spec": {"clusterSelector": {"ray.io/cluster": "theirs"}},
        },
        "what another Ray cluster holds is not known",
    ),
    "a share of a GPU": (job(template(container(limits={"nvidia.com/mig-1g.5gb": 1}))), "is a device that is not counted"),
    "a TPU by its old name": (job(template(container(limits={"cloud-tpus.google.com/v2": 8}))), "is a device that is not counted"),
    "a claim of the pod": (job(template(resourceClaims=[{"name": "gpu"}])), "resourceClaims: ask for devices"),
    "a claim of the container": (job(template(container(claims=[{"name": "gpu"}]))), "claims: ask for devices"),
    "no number": (job(template(container(limits={GPU: "many"}))), "is 'many'"),
    "a negative one": (job(template(container(limits={GPU: 1})), parallelism=-1), "parallelism: is -1"),
}


@pytest.mark.parametrize("case", UNREADABLE)
def test_what_cannot_be_read_is_said_and_is_not_nothing(case: str, tmp_path: Path):
    written, told = UNREADABLE[case]
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(written))
    assert told in accelerators_of(scenario_of(Cluster(manifest="job.yaml")), tmp_path).problem


def test_a_manifest_that_is_not_there_is_a_problem(tmp_path: Path):
    assert "job.yaml" in accelerators_of(scenario_of(Cluster(manifest="job.yaml")), tmp_path).problem


def test_a_job_that_is_made_has_the_chips_of_its_hosts(tmp_path: Path):
    assert accelerators_of(scenario_of(Cluster(chips=4), ranks=4), tmp_path).chips == 16


def test_the_guides_own_rayjob_is_counted():
    found = accelerators_of(scenario_of(Cluster(manifest="scenarios/manifests/guide_b_rayjob.yaml")), ROOT)
    assert (found.problem, found.gpus, found.chips) == ("", 0, 2 * 4 * 4)
