"""Manifests of the catalogue are there, readable, and differ from the guide's where they say so; ``python -m tests.unit.test_manifests`` writes the
script into the guide's ConfigMap anew."""

from pathlib import Path

import pytest

from harness.targets.kubernetes.manifest_files import guide_queues, read_manifest
from scenarios import CATALOGUE
from tests.detection.cluster_trials import CLUSTER_TRIALS

ROOT = Path(__file__).resolve().parents[2]
MANIFESTS = ROOT / "scenarios" / "manifests"
GUIDE_RAYJOB = MANIFESTS / "guide_b_rayjob.yaml"
SCRIPT = ROOT / "workloads" / "guide_b" / "train.py"
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: jax-train-script\ndata:\n  train.py: |\n"

SCENARIOS = (*CATALOGUE.values(), *(trial.scenario for trial in CLUSTER_TRIALS))
NAMED = sorted({path for scenario in SCENARIOS for path in (scenario.cluster.manifest, scenario.cluster.queues) if path})


def with_script() -> str:
    """The guide's manifest with the script as it is now."""
    head, _, _ = GUIDE_RAYJOB.read_text(encoding="utf-8").partition(CONFIG_MAP)
    lines = SCRIPT.read_text(encoding="utf-8").splitlines(keepends=True)
    return head + CONFIG_MAP + "".join(f"    {line}" if line.strip() else line for line in lines)


def test_every_manifest_is_named_by_a_scenario_and_is_there() -> None:
    assert sorted(str(path.relative_to(ROOT)) for path in MANIFESTS.iterdir()) == NAMED


@pytest.mark.parametrize("path", NAMED)
def test_every_manifest_holds_objects_that_a_cluster_takes(path: str) -> None:
    assert read_manifest(ROOT / path)


def test_the_guides_config_map_holds_its_script() -> None:
    assert GUIDE_RAYJOB.read_text(encoding="utf-8") == with_script()
    script = next(one for one in read_manifest(GUIDE_RAYJOB) if one["kind"] == "ConfigMap")["data"]["train.py"]
    assert script == SCRIPT.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [path for path in NAMED if "queues_" in path])
def test_a_queue_differs_from_the_guides_in_what_it_marks(path: str) -> None:
    guide = {(one["kind"], one["metadata"]["name"]): one for one in guide_queues()}
    own = {(one["kind"], one["metadata"]["name"]): one for one in read_manifest(ROOT / path)}

    assert [name for name in guide if own.get(name) != guide[name]] or own.keys() - guide.keys()
    assert "# differs" in (ROOT / path).read_text(encoding="utf-8")


def test_the_guides_rayjob_is_the_guides() -> None:
    job = next(one for one in read_manifest(GUIDE_RAYJOB) if one["kind"] == "RayJob")
    (group,) = job["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    pod = group["template"]["spec"]

    assert job["metadata"]["labels"] == {"kueue.x-k8s.io/queue-name": "user-queue"}
    assert job["metadata"]["annotations"] == {"kueue.x-k8s.io/elastic-job": "true"}
    assert job["spec"]["shutdownAfterJobFinishes"]
    assert job["spec"]["rayClusterSpec"]["enableInTreeAutoscaling"]
    assert (group["replicas"], group["minReplicas"], group["maxReplicas"], group["numOfHosts"]) == (1, 1, 2, 4)
    assert {one["key"] for one in pod["tolerations"]} == {"google.com/tpu", "cloud.google.com/gke-queued"}
    assert pod["containers"][0]["resources"]["limits"]["google.com/tpu"] == "4"
    assert pod["nodeSelector"] == {
        "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice",
        "cloud.google.com/gke-tpu-topology": "4x4",
    }


if __name__ == "__main__":
    GUIDE_RAYJOB.write_text(with_script(), encoding="utf-8")
