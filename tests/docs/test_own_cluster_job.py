"""What docs/own-cluster-job.md shows is listed, collected, and built as it would be submitted: only a cluster is missing."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from harness.clock import SystemClock
from harness.config import read_config
from harness.errors import InvalidDocumentError
from harness.kind import cache
from harness.kind.cache import checkout_dir
from harness.kind.cluster import problem_with_record
from harness.kind.versions import versions
from harness.runner import belongs_to
from harness.runner.binding import launch_of, refuse_missing_capabilities
from harness.runner.golden import golden_key
from harness.scenario import Scenario, convert
from harness.store import RunDirectory
from harness.targets import create
from harness.targets.kubernetes.api import JOBS, Object
from harness.targets.kubernetes.manifest_files import JOB_KINDS, QUEUE_KINDS, guide_queues, read_manifest
from harness.targets.kubernetes.pod_edits import PodEdits
from harness.targets.kubernetes.run_storage import RunStorage
from harness.targets.kubernetes.submission import Submission
from tests.docs.pages import DOCS, files_of, matches, run, run_page
from tests.unit.clusters import cluster_at

PAGE = "own-cluster-job.md"
TEXT = (DOCS / PAGE).read_text(encoding="utf-8")
BEFORE = [files_of("own-job.md"), files_of("scenarios.md"), files_of("pytest.md")]
"""The page goes on with the job, its description and the test of these."""

MADE = "my-train-evicted-by-the-queue-goes-on-uncharged"
WRITTEN = "my-train-by-its-own-manifest-loses-a-pod-uncharged"


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A directory with the files of the page, below a checkout."""
    directory = tmp_path / "checkout" / "my-train"
    directory.mkdir(parents=True)
    for name, text in [pair for group in (*BEFORE, files_of(PAGE)) for pair in group.items()]:
        (directory / name).write_text(text, encoding="utf-8")
    return directory


@pytest.fixture
def catalogue(repository: Path) -> dict[str, Scenario]:
    return catalogue_in(repository, "cluster_chaos")


def catalogue_in(repository: Path, module: str) -> dict[str, Scenario]:
    listed = msgspec.json.decode(run(f"harness list --json --catalogue {module}:CATALOGUE", repository))
    return {one["name"]: convert(one, Scenario, document=module) for one in listed}


def submission_of(scenario: Scenario, repository: Path, home: Path) -> Submission:
    """What is submitted where the checkout, the storage and all else of the cluster are in ``home``."""
    target = create("kind", SystemClock())
    refuse_missing_capabilities(scenario, target)
    run_directory = RunDirectory(home / "run")
    launch = launch_of(scenario, run_directory, target=target, run_id="run-1", root=repository, seed=0, epoch_s=0.0)
    cluster = msgspec.structs.replace(cluster_at(home), checkout_dir=home / "checkout", shared_dir=home / "storage")
    edits = PodEdits(launch=launch, cluster=cluster, storage=RunStorage(cluster.shared_dir, launch))
    edits.check()
    return Submission(edits, ray_version="2.53.0")


def main_container(job: Object) -> Object:
    return job["spec"]["template"]["spec"]["containers"][0]


def value_of(container: Object, name: str) -> Any:
    (value,) = [one["value"] for one in container["env"] if one["name"] == name]
    return value


# ---- examples ----


def test_the_page_runs(tmp_path):
    for line, expected, printed in run_page(PAGE, tmp_path, files=BEFORE):
        assert matches(expected, printed), f"$ {line}\n{printed}"


def test_its_scenarios_belong_to_the_cluster_and_those_it_goes_on_from_do_not(repository, catalogue):
    target = create("kind", SystemClock())

    assert {name: belongs_to(scenario, target) for name, scenario in catalogue.items()} == {MADE: True, WRITTEN: True}
    assert not any(belongs_to(scenario, target) for scenario in catalogue_in(repository, "chaos").values())


def test_a_job_is_made_for_the_scenario_without_a_manifest(tmp_path, repository, catalogue):
    submission = submission_of(catalogue[MADE], repository, tmp_path)

    container = main_container(submission.build(0))
    assert submission.resource == JOBS
    assert container["command"] == ["/opt/environment/bin/python", "train.py", "--out", "/checkpoints"]
    assert container["workingDir"] == str(repository)
    assert container["resources"]["limits"]["google.com/tpu"] == "8"


def test_the_manifest_is_submitted_and_only_what_the_page_says_is_replaced(tmp_path, repository, catalogue):
    submission = submission_of(catalogue[WRITTEN], repository, tmp_path)
    (queue,), job = submission.companions(), submission.build(0)

    metadata, spec, container = job["metadata"], job["spec"], main_container(job)
    assert submission.resource == JOBS
    assert (metadata["name"], "namespace" in metadata) == ("my-train-0", False)
    assert metadata["labels"] == {
        "kueue.x-k8s.io/queue-name": "team-a-queue",
        "chaos-harness/run-id": "run-1",
        "chaos-harness/task": "0",
    }
    assert spec["template"]["metadata"]["labels"] == {
        "chaos-harness/run-id": "run-1",
        "chaos-harness/task": "0",
        "chaos-harness/role": "host",
    }
    assert (container["image"], container["imagePullPolicy"]) == ("chaos-harness-job:1", "IfNotPresent")
    assert container["command"] == ["python", "train.py", "--out", "$(CHECKPOINT_DIR)"]
    assert container["workingDir"] == str(repository)
    assert (spec["backoffLimit"], spec["template"]["spec"]["terminationGracePeriodSeconds"]) == (3, 10)
    assert value_of(container, "PYTHONUNBUFFERED") == "1"
    assert (queue["kind"], queue["metadata"]["name"]) == ("LocalQueue", catalogue[WRITTEN].cluster.queue)
    assert queue["spec"]["clusterQueue"] in {one["metadata"]["name"] for one in guide_queues() if one["kind"] == "ClusterQueue"}


def test_the_checkpoint_directory_arrives_by_a_variable_that_kubernetes_fills_in(tmp_path, repository, catalogue):
    container = main_container(submission_of(catalogue[WRITTEN], repository, tmp_path).build(0))

    (variable,) = re.findall(r"\$\((\w+)\)", " ".join(container["command"]))
    assert value_of(container, variable) == "/checkpoints"
    assert ["readOnly" in one for one in container["volumeMounts"] if one["mountPath"] == "/checkpoints"] == [False]


def test_without_a_command_of_its_own_it_gets_the_workloads(tmp_path, repository, catalogue):
    path = repository / "job.yaml"
    path.write_text(re.sub(r" *command: .*\n", "", path.read_text(encoding="utf-8")), encoding="utf-8")

    container = main_container(submission_of(catalogue[WRITTEN], repository, tmp_path).build(0))

    assert container["command"] == ["/opt/environment/bin/python", "train.py", "--out", "/checkpoints"]


# ---- sentences ----


MOUNT = {"name": "own", "mountPath": "/data"}
"""Of a volume."""


@pytest.mark.parametrize(
    ("named", "of_pod", "of_container"),
    [
        ("serviceAccountName", {"serviceAccountName": "trainer"}, {}),
        (
            "persistentVolumeClaim",
            {"volumes": [{"name": "own", "persistentVolumeClaim": {"claimName": "data"}}]},
            {"volumeMounts": [MOUNT]},
        ),
        ("secret", {"volumes": [{"name": "own", "secret": {"secretName": "token"}}]}, {"volumeMounts": [MOUNT]}),
        ("secretRef", {}, {"envFrom": [{"secretRef": {"name": "token"}}]}),
        ("configMapRef", {}, {"envFrom": [{"configMapRef": {"name": "settings"}}]}),
        (
            "mounts a volume at /checkpoints",
            {"volumes": [{"name": "own", "emptyDir": {}}]},
            {"volumeMounts": [{**MOUNT, "mountPath": "/checkpoints"}]},
        ),
    ],
)
def test_what_is_not_there_is_refused_by_its_field(tmp_path, repository, catalogue, named, of_pod, of_container):
    path = repository / "job.yaml"
    queue, job = read_manifest(path)
    job["spec"]["template"]["spec"] |= of_pod
    main_container(job).update(of_container)
    path.write_text(yaml.safe_dump_all([queue, job]), encoding="utf-8")

    with pytest.raises(InvalidDocumentError, match=named):
        submission_of(catalogue[WRITTEN], repository, tmp_path).build(0)


def test_a_queue_that_neither_the_file_nor_the_run_has_is_refused(tmp_path, repository, catalogue):
    path = repository / "job.yaml"
    _, job = path.read_text(encoding="utf-8").split("---\n")
    path.write_text(job, encoding="utf-8")

    with pytest.raises(InvalidDocumentError, match="LocalQueue team-a-queue is not there"):
        submission_of(catalogue[WRITTEN], repository, tmp_path).build(0)


def test_a_job_lies_below_the_checkout_or_the_storage_and_nowhere_else(tmp_path, catalogue):
    submission_of(catalogue[MADE], tmp_path / "checkout" / "clone", tmp_path)
    container = main_container(submission_of(catalogue[MADE], tmp_path / "storage" / "clone", tmp_path).build(0))

    assert str(tmp_path / "storage" / "clone") in [one["mountPath"] for one in container["volumeMounts"]]
    with pytest.raises(InvalidDocumentError, match="is on no node of the cluster"):
        submission_of(catalogue[MADE], tmp_path / "elsewhere", tmp_path)
    (tmp_path / "checkout" / "link").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InvalidDocumentError, match="is on no node of the cluster"):
        submission_of(catalogue[MADE], tmp_path / "checkout" / "link", tmp_path)


def test_a_copy_of_the_harness_says_that_another_directory_is_mounted(tmp_path, monkeypatch):
    checkout = checkout_dir()
    cluster = msgspec.structs.replace(cluster_at(tmp_path), checkout_dir=checkout, versions=versions(is_pulled=False))
    assert f"has {checkout} mounted" not in problem_with_record(cluster)

    monkeypatch.setattr(cache, "__file__", str(tmp_path / "site-packages" / "harness" / "kind" / "cache.py"))
    monkeypatch.chdir(tmp_path)

    assert f"has {checkout} mounted, and this is {tmp_path}" in problem_with_record(cluster)


def test_the_page_names_every_kind_that_may_be_brought_and_no_other():
    section = TEXT[TEXT.index("### What may stand beside it") : TEXT.index("### What is not there")]
    beside, queues = section.split("Everything else is refused", 1)

    assert {*re.findall(r"`([A-Z]\w+)`", beside)} | {"Job", "RayJob"} == {*JOB_KINDS}
    assert {*re.findall(r"`([A-Z][A-Za-z]+)`", queues)} == {*QUEUE_KINDS}


def test_a_harness_toml_runs_on_a_cluster_as_a_job_with_the_defaults(tmp_path, repository):
    run("harness init", repository)
    path = repository / "harness.toml"
    image = '\n[target.docker]\nimage = "my-train:1"\n' if "\n[target.docker]" not in path.read_text(encoding="utf-8") else ""
    evicted = """
[[scenarios]]
name = "my-train-evicted"
why = "an eviction is no failure"
injections = [{ fault = { type = "evict-workload" }, at = { type = "at-step", step = 80 } }]
expects = [{ type = "completes" }, { type = "charges-retries" }]
"""
    path.write_text(path.read_text(encoding="utf-8") + image + evicted, encoding="utf-8")

    found = read_config(path)

    assert len(found) == 5
    for scenario in found.values():
        job = submission_of(scenario, repository, tmp_path).build(0)
        assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "user-queue"
        assert main_container(job)["image"] == "my-train:1"
        assert main_container(job)["resources"]["limits"]["google.com/tpu"] == "4"


@pytest.mark.parametrize("table", ["[cluster]", "[target.kind]"])
def test_a_harness_toml_has_no_table_for_a_cluster(repository, table):
    run("harness init", repository)
    path = repository / "harness.toml"
    path.write_text(path.read_text(encoding="utf-8") + f"\n{table}\nmanifest = 'job.yaml'\n", encoding="utf-8")

    with pytest.raises(InvalidDocumentError, match=r"cluster|kind"):
        read_config(path)


@pytest.mark.parametrize(
    ("scenario", "edited", "is_made_anew"),
    [
        (MADE, "cluster_chaos.py", False),
        (MADE, "chaos.py", False),
        (MADE, "train.py", True),
        (WRITTEN, "cluster_chaos.py", False),
        (WRITTEN, "job.yaml", True),
    ],
)
def test_uninterrupted_runs_are_made_anew_when_the_job_changes_and_not_when_a_scenario_does(
    repository, catalogue, scenario, edited, is_made_anew
):
    before = golden_key(catalogue[scenario], root=repository, seed=0, target="kind")
    with (repository / edited).open("a", encoding="utf-8") as file:
        file.write("\n# edited\n")

    after = golden_key(catalogue[scenario], root=repository, seed=0, target="kind")

    assert (after != before) is is_made_anew
