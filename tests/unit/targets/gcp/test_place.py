"""Where a run on Google Cloud happens: named in full, and never guessed."""

from pathlib import Path

import pytest

from harness.config import GcpTable, read_gcp
from harness.errors import InvalidDocumentError, UsageError
from harness.targets.gcp.place import Place, resolve_place

OPTIONS = {"project": "our-project", "region": "europe-west4", "bucket": "our-bucket", "job": "train"}


def test_what_is_named_is_the_place():
    place = resolve_place(OPTIONS, {})
    assert place == Place(project="our-project", region="europe-west4", bucket="our-bucket", job="train")
    assert place.job_name == "projects/our-project/locations/europe-west4/jobs/train"


def test_options_come_before_the_environment_and_that_before_the_file():
    table = GcpTable(project="file-project", region="us-central1", bucket="file-bucket", job="file-job")
    environment = {"HARNESS_GCP_PROJECT": "env-project", "HARNESS_GCP_REGION": "europe-west1"}
    place = resolve_place({"project": "option-project"}, environment, table)
    assert (place.project, place.region, place.bucket) == ("option-project", "europe-west1", "file-bucket")


def test_no_project_is_ever_assumed(monkeypatch, tmp_path: Path):
    gcloud = tmp_path / "gcloud"
    (gcloud / "configurations").mkdir(parents=True)
    (gcloud / "active_config").write_text("default")
    (gcloud / "configurations" / "config_default").write_text("[core]\nproject = gcloud-project\n[compute]\nregion = us-central1\n")
    (gcloud / "properties").write_text("[core]\nproject = gcloud-project\n")
    others = {
        "GOOGLE_CLOUD_PROJECT": "wrong-project",
        "GCLOUD_PROJECT": "wrong-project",
        "CLOUDSDK_CORE_PROJECT": "wrong-project",
        "CLOUDSDK_CONFIG": str(gcloud),
        "GOOGLE_CLOUD_QUOTA_PROJECT": "wrong-project",
        "CLOUDSDK_RUN_REGION": "us-central1",
    }
    for name, value in others.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match="no project is named; give --project, or HARNESS_GCP_PROJECT") as caught:
        resolve_place({name: value for name, value in OPTIONS.items() if name != "project"}, others)
    assert "wrong-project" not in str(caught.value)
    assert "gcloud-project" not in str(caught.value)


@pytest.mark.parametrize("missing", ["project", "region", "bucket", "job"])
def test_nothing_else_is_assumed_either(missing):
    with pytest.raises(UsageError, match=f"no {missing} is named"):
        resolve_place({name: value for name, value in OPTIONS.items() if name != missing}, {})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("project", "our-*"),
        ("project", "123456789012"),
        ("project", "Our Project"),
        ("bucket", "gs://our-bucket"),
        ("bucket", "our-bucket/prefix"),
        ("job", "train-*"),
        ("job", "*"),
        ("job", ""),
        ("region", "europe"),
        ("job", "train\n"),
    ],
)
def test_patterns_and_other_forms_are_refused(field, value):
    with pytest.raises(UsageError):
        resolve_place({**OPTIONS, field: value}, {})


def test_the_variables_say_the_same():
    place = resolve_place({**OPTIONS, "gpus": "1", "gpu_type": "nvidia-l4", "cluster": "c", "zone": "us-east5-b"}, {})
    assert resolve_place({}, place.environment()) == place


def test_a_cluster_needs_its_zone():
    with pytest.raises(UsageError, match="needs its zone"):
        resolve_place({**OPTIONS, "cluster": "tpu"}, {})


JOB = '[workload]\nname = "my-train"\ncommand = ["python", "train.py"]\n'


def test_the_table_of_a_file_is_read(tmp_path: Path):
    path = tmp_path / "harness.toml"
    path.write_text(JOB + '[gcp]\nproject = "our-project"\nlimits = { gpu_hours = 2.5 }\n')
    table = read_gcp(path)
    assert (table.project, table.limits.gpu_hours, table.limits.blast_radius) == ("our-project", 2.5, 1)


@pytest.mark.parametrize(
    "line", ["limits = { blast_radius = 0 }", "limits = { duration_s = -1.0 }", "gpus = -1", 'projet = "p"', "limits = { gpu_hours = nan }"]
)
def test_a_table_that_is_wrong_is_refused(tmp_path: Path, line):
    path = tmp_path / "harness.toml"
    path.write_text(JOB + f"[gcp]\n{line}\n")
    with pytest.raises(InvalidDocumentError, match="gcp"):
        read_gcp(path)
