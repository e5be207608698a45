"""What a pod on a project's cluster is given, and what of its manifest stays."""

from pathlib import Path

import pytest

from harness.capabilities import Launch
from harness.errors import InvalidDocumentError
from harness.scenario import Cluster
from harness.targets.gke.pod_edits import FUSE_ANNOTATION, FUSE_DRIVER, ProjectPodEdits
from harness.targets.kubernetes.submission import Submission


def launch_of(**fields: object) -> Launch:
    base = {
        "run_id": "ab12cd34ef56",
        "job": "count",
        "command": ("python3", "train.py"),
        "directory": Path("/code"),
        "environment": {"STEPS": "40"},
        "checkpoint_dir": Path("/run/checkpoints"),
        "logs_dir": Path("/run/logs"),
        "cluster": Cluster(chips=4),
        "ranks": 4,
    }
    return Launch(**{**base, **fields})


def edits_of(launch: Launch | None = None, *, image: str = "some/image", bucket: str = "our-bucket") -> ProjectPodEdits:
    return ProjectPodEdits(launch=launch or launch_of(), image=image, bucket=bucket)


def job_of(edits: ProjectPodEdits) -> dict:
    return Submission(edits, ray_version="").build(0)


def test_a_job_is_placed_on_hosts_of_its_slice_and_runs_where_its_image_says():
    pod = job_of(edits_of())["spec"]["template"]["spec"]
    assert pod["nodeSelector"] == {"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice", "cloud.google.com/gke-tpu-topology": "4x4"}
    main = pod["containers"][0]
    assert "workingDir" not in main
    assert main["image"] == "some/image"
    assert main["resources"]["limits"]["google.com/tpu"] == "4"


def test_it_says_whose_it_is():
    job = job_of(edits_of())
    for labels in (job["metadata"]["labels"], job["spec"]["template"]["metadata"]["labels"]):
        assert labels["chaos-harness/run-id"] == "ab12cd34ef56"
        assert labels["chaos-harness/task"] == "0"
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "user-queue"


def test_the_runs_part_of_the_bucket_is_mounted_and_no_directory_of_this_machine():
    template = job_of(edits_of())["spec"]["template"]
    assert template["metadata"]["annotations"] == {FUSE_ANNOTATION: "true"}
    (volume,) = template["spec"]["volumes"]
    assert volume["csi"]["driver"] == FUSE_DRIVER
    assert volume["csi"]["volumeAttributes"]["bucketName"] == "our-bucket"
    assert volume["csi"]["volumeAttributes"]["mountOptions"].endswith("only-dir=harness/ab12cd34ef56/checkpoints")
    names = {one["name"]: one.get("value") for one in template["spec"]["containers"][0]["env"]}
    assert names["CHECKPOINT_DIR"] == "/checkpoints"
    assert not {"HARNESS_EVENTS", "HARNESS_BARRIER", "CLOUD_RUN_TASK_ATTEMPT"} & set(names)


def test_where_buckets_are_not_mounted_nothing_says_that_they_are():
    template = job_of(edits_of(bucket=""))["spec"]["template"]
    assert "volumes" not in template["spec"]
    assert "annotations" not in template["metadata"]
    assert "CHECKPOINT_DIR" not in {one["name"] for one in template["spec"]["containers"][0]["env"]}


def test_a_manifest_keeps_its_image_where_none_is_named_and_its_own_variables():
    template = {"spec": {"containers": [{"name": "main", "image": "its/own", "env": [{"name": "MODE", "value": "fast"}]}]}}
    edits_of(image="").edit(template, 1, "host")
    main = template["spec"]["containers"][0]
    assert main["image"] == "its/own"
    assert {"name": "MODE", "value": "fast"} in main["env"]
    assert {"name": "CLOUD_RUN_TASK_INDEX", "value": "1"} in main["env"]


def test_a_manifest_that_mounts_something_where_checkpoints_are_is_refused():
    template = {"spec": {"containers": [{"name": "main", "volumeMounts": [{"name": "own", "mountPath": "/checkpoints"}]}]}}
    with pytest.raises(InvalidDocumentError, match="mounts a volume at /checkpoints"):
        edits_of().edit(template, 0, "host")
