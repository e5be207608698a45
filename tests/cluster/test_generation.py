"""A RayJob that waits in a queue is as it was submitted: KubeRay's first update of it changes nothing by which Kueue would name it anew."""

from pathlib import Path

import pytest

from harness.capabilities import Launch
from harness.kind import KindCluster
from harness.scenario import Cluster
from harness.targets.kubernetes.api import RAY_JOBS, WORKLOADS, Object
from harness.targets.kubernetes.pod_edits import PodEdits
from harness.targets.kubernetes.run_storage import RunStorage
from harness.targets.kubernetes.submission import Submission
from tests.cluster.kueue_trials import NAME, TEST_S_MAX, KueueTrials

pytestmark = pytest.mark.timeout(TEST_S_MAX)

DEADLINE_S = 60.0
MANIFEST = "scenarios/manifests/guide_b_rayjob.yaml"


def test_the_guides_ray_job_keeps_its_generation_until_it_is_admitted(cluster: KindCluster, tmp_path: Path):
    launch = Launch(
        run_id=NAME,
        job="generation",
        command=("python", "/app/train.py"),
        environment={"EMPTY": ""},
        directory=cluster.checkout_dir,
        root=cluster.checkout_dir,
        checkpoint_dir=tmp_path / "checkpoints",
        logs_dir=tmp_path,
        cluster=Cluster(submits="ray-job", manifest=MANIFEST),
    )
    job = Submission(PodEdits(launch=launch, cluster=cluster, storage=RunStorage(cluster.shared_dir, launch)), ray_version="").build(0)
    name = job["metadata"]["name"]
    with KueueTrials(cluster, {}) as trials:  # without a queue of its name: it waits
        trials.api.create(RAY_JOBS, job, NAME)
        seen: Object = {}

        def is_suspended() -> bool:
            seen.update(trials.api.get(RAY_JOBS, name, NAME) or {})
            return bool((seen.get("status") or {}).get("jobDeploymentStatus") == "Suspended" and trials.api.list(WORKLOADS, NAME))

        trials.wait(is_suspended, DEADLINE_S, "KubeRay and Kueue have not both seen it")

        assert seen["metadata"]["finalizers"] == ["ray.io/rayjob-finalizer"]  # KubeRay has updated it
        assert seen["metadata"]["generation"] == 1
        assert len(trials.api.list(WORKLOADS, NAME)) == 1
