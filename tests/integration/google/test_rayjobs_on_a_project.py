"""RayJobs on a GKE cluster of a project: the guide's manifest, as on the local cluster: submitted, followed, hurt, and gone afterwards."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.errors import InvalidDocumentError
from harness.history import AttemptExited, AttemptStarted, ClusterLeft
from harness.scenario import Fault, Injection, Platform, Scenario
from harness.scenario.cluster import Cluster
from harness.scenario.cluster_faults import DeletePods, LoseNode
from harness.scenario.expectations import Completes
from harness.scenario.triggers import AtStep
from harness.targets.kubernetes.api import Object
from tests.integration.google.gke_runs import WORKLOAD, run_on
from tests.integration.google.gke_world import BUCKET
from tests.integration.google.ray_world import RayWorld

ROOT = Path(__file__).resolve().parents[3]
MANIFEST = "scenarios/manifests/guide_b_rayjob.yaml"


@pytest.fixture
def world(tmp_path: Path, own_state: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[RayWorld]:
    (tmp_path / MANIFEST).parent.mkdir(parents=True)
    shutil.copy(ROOT / MANIFEST, tmp_path / MANIFEST)
    running = RayWorld(tmp_path)
    running.install(monkeypatch)
    yield running
    running.close()


def scenario_of(*faults: Fault, cluster: Cluster | None = None) -> Scenario:
    return Scenario(
        name="a-rayjob-on-a-project",
        why="a test",
        tags=("cluster",),
        workload=replace(WORKLOAD, ranks=4),
        platform=Platform(max_retries=5),
        cluster=cluster or Cluster(chips=4, manifest=MANIFEST),
        injections=tuple(Injection(fault=fault, at=AtStep(step=10)) for fault in faults),
        expects=(Completes(),),
    )


def test_the_guides_manifest_runs_to_its_end_and_leaves_nothing(world: RayWorld, tmp_path: Path):
    run = run_on(tmp_path, scenario_of())

    assert run.verdict.is_valid, run.explain()
    assert [event.attempt for event in run.history.events if isinstance(event, AttemptStarted)] == [0]
    assert [event.what for event in run.history.events if isinstance(event, ClusterLeft)] == ["none"]
    assert not [name for name in world.namespaces() if name.startswith("harness-")]


@pytest.mark.parametrize("fault", [DeletePods(part="head"), LoseNode()], ids=["head", "node"])
def test_one_that_loses_its_head_or_a_host_goes_on_in_another_cluster(world: RayWorld, tmp_path: Path, fault: Fault):
    run = run_on(tmp_path, scenario_of(fault))

    assert run.verdict.is_valid, run.explain()
    assert [(event.attempt, event.retried) for event in run.history.events if isinstance(event, AttemptExited)] == [(0, True), (1, False)]


def submitted(world: RayWorld) -> Object:
    with world.server.lock:
        return next(change.object for change in world.server.api.changes if change.object.get("kind") == "RayJob")


def test_its_pods_have_the_image_and_mount_the_runs_part_of_the_bucket(world: RayWorld, tmp_path: Path):
    run_on(tmp_path, scenario_of())

    spec = submitted(world)["spec"]
    templates = [spec["rayClusterSpec"]["headGroupSpec"]["template"], spec["rayClusterSpec"]["workerGroupSpecs"][0]["template"]]
    for template in [*templates, spec["submitterPodTemplate"]]:
        assert template["spec"]["containers"][0]["image"] == "some/image"
        (volume,) = [one for one in template["spec"]["volumes"] if "csi" in one]
        assert volume["csi"]["volumeAttributes"]["bucketName"] == BUCKET


def test_where_no_image_is_named_the_submitter_that_is_added_has_the_manifests(
    world: RayWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.delenv("HARNESS_GCP_IMAGE")

    run = run_on(tmp_path, scenario_of())

    assert run.verdict.is_valid, run.explain()
    spec = submitted(world)["spec"]
    written = spec["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"][0]["image"]
    assert written.startswith("rayproject/ray:")
    assert spec["submitterPodTemplate"]["spec"]["containers"][0]["image"] == written


def test_one_that_would_be_made_is_refused(world: RayWorld, tmp_path: Path):
    with pytest.raises(InvalidDocumentError, match=r"cluster\.submits.*sized for the local cluster"):
        run_on(tmp_path, scenario_of(cluster=Cluster(chips=4, submits="ray-job")))

    assert not world.server.writes()
