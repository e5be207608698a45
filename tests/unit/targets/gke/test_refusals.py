"""What a cluster of a project does not take is refused before anything is asked, with the field."""

from pathlib import Path

import pytest
import yaml

from harness.errors import InvalidDocumentError, UsageError
from harness.scenario import Cluster
from harness.targets import create
from harness.targets.gcp.place import Place, resolve_place
from harness.targets.gcp.presence import is_of_cluster
from harness.targets.gke.refusals import check_launch, image_of, local_queues
from tests.unit.targets.gke.test_pod_edits import launch_of

PLACE = Place(project="our-project", region="us-east5", bucket="our-bucket", job="", image="some/image", cluster="tpu", zone="us-east5-b")
NO_IMAGE = Place(project="our-project", region="us-east5", bucket="our-bucket", job="", cluster="tpu", zone="us-east5-b")
LOCAL = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "LocalQueue", "metadata": {"name": "mine"}, "spec": {"clusterQueue": "theirs"}}


def test_a_moment_that_would_have_to_be_held_is_refused():
    with pytest.raises(InvalidDocumentError, match=r"injections.*held at step:after.*nothing in the pods"):
        check_launch(launch_of(armed=("step:after",)), PLACE)


@pytest.mark.parametrize("fields", [{"environment": {"HF_TOKEN": "planted"}}, {"command": ("train", "--api-key=planted0123")}])
def test_a_credential_in_the_definition_of_a_job_is_refused(fields):
    with pytest.raises(InvalidDocumentError, match="like a credential") as caught:
        check_launch(launch_of(**fields), PLACE)
    assert "planted" not in str(caught.value)


def test_a_ray_job_must_be_written():
    with pytest.raises(InvalidDocumentError, match=r"cluster\.submits"):
        check_launch(launch_of(cluster=Cluster(submits="ray-job")), PLACE)


def test_an_image_must_be_named_somewhere(tmp_path: Path):
    with pytest.raises(InvalidDocumentError, match="is named nowhere"):
        check_launch(launch_of(), NO_IMAGE)
    check_launch(launch_of(image="its/own"), NO_IMAGE)
    container = {"name": "main", "image": "written/there"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "train"},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job))
    written = launch_of(cluster=Cluster(manifest="job.yaml"), root=tmp_path)
    check_launch(written, NO_IMAGE)
    assert image_of(written, NO_IMAGE) == "written/there"
    assert image_of(written, PLACE) == "some/image"


def test_queues_of_the_whole_cluster_are_adopted_and_not_brought(tmp_path: Path):
    foreign = {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": "ResourceFlavor", "metadata": {"name": "mine"}, "spec": {}}
    (tmp_path / "queues.yaml").write_text(yaml.safe_dump_all([LOCAL, foreign]))
    launch = launch_of(cluster=Cluster(queues="queues.yaml", queue="mine"), root=tmp_path)
    with pytest.raises(InvalidDocumentError, match=r"cluster\.queues.*ResourceFlavor"):
        check_launch(launch, PLACE)
    (tmp_path / "queues.yaml").write_text(yaml.safe_dump_all([LOCAL]))
    check_launch(launch, PLACE)
    assert [one["metadata"]["name"] for one in local_queues(launch)] == ["mine"]


def test_of_the_guides_queues_the_local_one_alone_is_made():
    assert [(one["kind"], one["spec"]["clusterQueue"]) for one in local_queues(launch_of())] == [("LocalQueue", "cluster-queue")]


PLACES = {"HARNESS_GCP_PROJECT": "our-project", "HARNESS_GCP_REGION": "us-east5", "HARNESS_GCP_BUCKET": "our-bucket"}


def test_a_place_with_a_cluster_and_no_job_is_of_the_cluster(monkeypatch):
    from harness.clock import ManualClock
    from harness.targets.gcp.target import GcpTarget
    from harness.targets.gke.target import ProjectClusterTarget

    of_cluster = {**PLACES, "HARNESS_GCP_CLUSTER": "tpu", "HARNESS_GCP_ZONE": "us-east5-b"}
    assert is_of_cluster(of_cluster)
    assert resolve_place({}, of_cluster).is_of_cluster
    assert not is_of_cluster({**of_cluster, "HARNESS_GCP_JOB": "train"})
    with pytest.raises(UsageError, match="no job is named"):
        resolve_place({}, PLACES)
    for name, value in of_cluster.items():
        monkeypatch.setenv(name, value)
    assert type(create("gcp", ManualClock())) is ProjectClusterTarget
    monkeypatch.setenv("HARNESS_GCP_JOB", "train")
    assert type(create("gcp", ManualClock())) is GcpTarget
