"""What is submitted, and that nothing of a manifest is changed but what ties it to the run."""

import copy
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.capabilities import Launch
from harness.errors import InvalidDocumentError
from harness.scenario import Cluster
from harness.targets.kubernetes.api import JOBS, RAY_JOBS, Object
from harness.targets.kubernetes.pod_edits import PodEdits
from harness.targets.kubernetes.run_storage import RunStorage
from harness.targets.kubernetes.submission import Submission
from scenarios import CATALOGUE
from tests.detection.cluster_trials import CLUSTER_TRIALS
from tests.unit.clusters import cluster_at

MANIFESTS = Path(__file__).resolve().parents[4] / "scenarios" / "manifests"
SCENARIOS = (*CATALOGUE.values(), *(trial.scenario for trial in CLUSTER_TRIALS))


def submission_of(tmp_path: Path, **fields: Any) -> Submission:
    cluster = cluster_at(tmp_path)
    fields = {"command": ("python", "-m", "job"), "environment": {"STEPS": "3"}, "directory": tmp_path / "code", **fields}
    fields.setdefault("root", tmp_path)
    launch = Launch(run_id="run-1", job="job", checkpoint_dir=tmp_path / "checkpoints", logs_dir=tmp_path, **fields)
    edits = PodEdits(launch=launch, cluster=cluster, storage=RunStorage(cluster.shared_dir, launch))
    edits.check()
    return Submission(edits, ray_version="2.53.0")


def variables(template: Object) -> dict[str, Any]:
    return {one["name"]: one.get("value", one.get("valueFrom")) for one in template["spec"]["containers"][0]["env"]}


def test_a_job_of_one_host_waits_in_the_queue_and_asks_for_its_chips(tmp_path):
    submission = submission_of(tmp_path, max_retries=2, grace_s=7.6, cluster=Cluster(priority="high"))

    job = submission.build(1)

    assert submission.resource == JOBS
    assert submission.companions() == []
    assert job["metadata"]["name"] == "job-1"
    assert job["metadata"]["labels"] == {
        "kueue.x-k8s.io/queue-name": "user-queue",
        "kueue.x-k8s.io/priority-class": "high",
        "chaos-harness/run-id": "run-1",
        "chaos-harness/task": "1",
    }
    spec = job["spec"]
    assert (spec["backoffLimit"], spec["completions"], spec["parallelism"], spec["podReplacementPolicy"]) == (2, 1, 1, "Failed")
    assert "completionMode" not in spec
    pod = spec["template"]["spec"]
    assert (pod["restartPolicy"], pod["terminationGracePeriodSeconds"]) == ("Never", 8)
    assert pod["nodeSelector"] == {"cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice", "cloud.google.com/gke-tpu-topology": "4x4"}
    assert [one["key"] for one in pod["tolerations"]] == ["google.com/tpu", "cloud.google.com/gke-queued"]
    (container,) = pod["containers"]
    assert container["command"] == ["python", "-m", "job"]
    assert container["resources"]["limits"] == {"google.com/tpu": "4"}
    assert spec["template"]["metadata"]["labels"]["chaos-harness/role"] == "host"


def test_a_pod_knows_who_it_is_and_where_it_speaks(tmp_path):
    told = variables(submission_of(tmp_path, armed=("step:after",)).build(0)["spec"]["template"])

    assert list(told)[:2] == ["POD_NAME", "POD_UID"]  # what follows is made of them
    assert told["HARNESS_EVENTS"] == f"{tmp_path}/runs/run-1/events/$(POD_NAME).jsonl"
    assert told["HARNESS_BARRIER"] == f"{tmp_path}/runs/run-1/sockets/0"
    assert (told["HARNESS_ARMED"], told["HARNESS_RUN_ID"]) == ("step:after", "run-1")
    assert (told["CHECKPOINT_DIR"], told["CLOUD_RUN_JOB"], told["CLOUD_RUN_TASK_INDEX"], told["STEPS"]) == ("/checkpoints", "job", "0", "3")
    assert "CLOUD_RUN_TASK_ATTEMPT" not in told


def test_nothing_is_armed_where_no_trigger_needs_it(tmp_path):
    assert not {"HARNESS_BARRIER", "HARNESS_ARMED"} & set(variables(submission_of(tmp_path).build(0)["spec"]["template"]))


def test_every_volume_is_mounted_and_only_the_runs_own_can_be_written(tmp_path):
    spec = submission_of(tmp_path).build(0)["spec"]["template"]["spec"]

    mounted = {one["name"]: one for one in spec["containers"][0]["volumeMounts"]}
    assert set(mounted) == {one["name"] for one in spec["volumes"]}
    assert {name for name, one in mounted.items() if not one.get("readOnly")} == {
        "harness-checkpoints",
        "harness-events",
        "harness-sockets",
    }


def test_several_hosts_find_one_another_by_name(tmp_path):
    submission = submission_of(tmp_path, ranks=2, max_retries=3, tasks=2)

    job, (service, _) = submission.build(0), submission.companions()

    spec, told = job["spec"], variables(job["spec"]["template"])
    assert (spec["completionMode"], spec["completions"], spec["backoffLimit"]) == ("Indexed", 2, 6)
    assert (told["JAX_COORDINATOR_ADDRESS"], told["JAX_PROCESS_COUNT"]) == ("job-0-0.hosts-0:8476", "2")
    assert "job-completion-index" in told["JAX_PROCESS_ID"]["fieldRef"]["fieldPath"]
    assert spec["template"]["spec"]["subdomain"] == service["metadata"]["name"]
    assert service["spec"]["selector"].items() <= spec["template"]["metadata"]["labels"].items()
    assert (service["spec"]["clusterIP"], service["spec"]["publishNotReadyAddresses"]) == ("None", True)


def test_a_ray_job_has_a_head_a_group_of_hosts_and_a_submitter_that_all_can_run(tmp_path):
    submission = submission_of(tmp_path, ranks=4, cluster=Cluster(submits="ray-job"), max_retries=1)

    job = submission.build(0)

    assert submission.resource == RAY_JOBS
    spec = job["spec"]
    assert shlex.split(spec["entrypoint"]) == ["env", "-C", str(tmp_path / "code"), "python", "-m", "job"]
    assert (spec["backoffLimit"], spec["shutdownAfterJobFinishes"]) == (1, True)
    (group,) = spec["rayClusterSpec"]["workerGroupSpecs"]
    assert group["numOfHosts"] == 4
    told = variables(group["template"])
    assert (told["TPU_ACCELERATOR_TYPE"], told["TPU_TOPOLOGY"], told["JAX_PLATFORMS"]) == ("v6e-16", "4x4", "cpu")
    assert told["PYTHONPATH"] == str(tmp_path / "code")
    head, submitter = spec["rayClusterSpec"]["headGroupSpec"]["template"], spec["submitterPodTemplate"]
    roles = [template["metadata"]["labels"]["chaos-harness/role"] for template in (head, group["template"], submitter)]
    assert roles == ["head", "host", "submitter"]
    for template in (head, group["template"], submitter):
        assert template["spec"]["containers"][0]["image"] == "chaos-harness-job:1"
        assert "/opt/environment" in [one["mountPath"] for one in template["spec"]["containers"][0]["volumeMounts"]]


def test_what_the_job_sets_itself_stays(tmp_path):
    submission = submission_of(tmp_path, cluster=Cluster(submits="ray-job"), environment={"TPU_TOPOLOGY": "2x2", "JAX_PLATFORMS": "tpu"})

    (group,) = submission.build(0)["spec"]["rayClusterSpec"]["workerGroupSpecs"]

    names = [one["name"] for one in group["template"]["spec"]["containers"][0]["env"]]
    assert len(names) == len(set(names))
    told = variables(group["template"])
    assert (told["TPU_TOPOLOGY"], told["JAX_PLATFORMS"]) == ("2x2", "tpu")


MANIFEST = """
apiVersion: v1
kind: ConfigMap
metadata: {name: script, namespace: default}
data: {train.py: "print(1)"}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: as-written
  namespace: default
  labels: {kueue.x-k8s.io/queue-name: user-queue}
  annotations: {a: b}
spec:
  backoffLimit: 0
  template:
    metadata: {labels: {app: x}}
    spec:
      restartPolicy: OnFailure
      containers:
      - name: main
        image: somewhere/else:1
        command: [python, /app/train.py]
        env: [{name: OWN, value: "1"}, {name: HARNESS_EVENTS, value: /dev/null}]
        volumeMounts: [{name: script, mountPath: /app}]
      volumes: [{name: script, configMap: {name: script}}]
"""


def test_a_manifest_is_submitted_as_it_is_written_but_for_what_ties_it_to_the_run(tmp_path):
    (tmp_path / "job.yaml").write_text(MANIFEST)
    submission = submission_of(tmp_path, cluster=Cluster(manifest="job.yaml", queue="of-no-manifest"))

    job = submission.build(0)

    (config,) = submission.companions()
    assert config["data"] == {"train.py": "print(1)"}
    written = list(yaml.safe_load_all(MANIFEST))[1]
    assert job["metadata"]["name"] == "job-0"
    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "user-queue"
    assert job["metadata"]["annotations"] == {"a": "b"}
    assert "namespace" not in job["metadata"]
    assert job["spec"]["backoffLimit"] == 0
    template = job["spec"]["template"]
    assert template["metadata"]["labels"]["app"] == "x"
    assert template["spec"]["restartPolicy"] == "OnFailure"
    main, before = template["spec"]["containers"][0], written["spec"]["template"]["spec"]["containers"][0]
    assert (main["command"], main["name"], main["image"]) == (before["command"], "main", "chaos-harness-job:1")
    assert main["volumeMounts"][0] == before["volumeMounts"][0]
    told = variables(template)
    assert told["OWN"] == "1"
    assert told["HARNESS_EVENTS"].endswith("$(POD_NAME).jsonl")


def test_nothing_is_added_that_an_update_by_kuberay_would_drop(tmp_path):
    """Else the first update makes another generation, and Kueue perhaps another workload."""
    written = empty_fields(yaml.safe_load_all((MANIFESTS / "guide_b_rayjob.yaml").read_text()))
    cluster = Cluster(submits="ray-job", manifest=str(MANIFESTS / "guide_b_rayjob.yaml"))

    job = submission_of(tmp_path, cluster=cluster, environment={"STEPS": "3", "EMPTY": ""}).build(0)

    assert {"name": "EMPTY"} in job["spec"]["submitterPodTemplate"]["spec"]["containers"][0]["env"]
    assert empty_fields([job]) - written == set()


def empty_fields(documents: Iterable[Any]) -> set[str]:
    """Where fields are at the zero value of their type, whatever the number of the element of a list."""
    found, left = set[str](), [("", document) for document in documents]
    while left:
        where, value = left.pop()
        if isinstance(value, dict) and value:
            left += [(f"{where}.{name}", one) for name, one in value.items()]
        elif isinstance(value, list) and value:
            left += [(f"{where}[]", one) for one in value]
        elif not value:
            found.add(where)
    return found


def test_what_a_written_host_of_a_slice_says_of_itself_stays(tmp_path):
    (tmp_path / "job.yaml").write_text((MANIFESTS / "rayjob_keeping_its_cluster.yaml").read_text())

    job = submission_of(tmp_path, cluster=Cluster(submits="ray-job", manifest="job.yaml")).build(0)

    assert job["spec"]["ttlSecondsAfterFinished"] == 3600
    (group,) = job["spec"]["rayClusterSpec"]["workerGroupSpecs"]
    told = variables(group["template"])
    assert (told["TPU_WORKER_ID"], told["TPU_NAME"], told["TPU_TOPOLOGY"], told["STEPS"]) == ("0", "hosts-0", "2x2", "3")
    names = [one["name"] for one in group["template"]["spec"]["containers"][0]["env"]]
    assert len(names) == len(set(names))


def test_two_tasks_of_a_manifest_do_not_share_what_was_edited(tmp_path):
    (tmp_path / "job.yaml").write_text(MANIFEST)
    submission = submission_of(tmp_path, tasks=2, cluster=Cluster(manifest="job.yaml"))

    first, second = copy.deepcopy(submission.build(0)), submission.build(1)

    assert second["metadata"]["name"] == "job-1"
    assert len(first["spec"]["template"]["spec"]["volumes"]) == len(second["spec"]["template"]["spec"]["volumes"])


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a: [", "is no YAML"),
        ("- 1", "is no object with a name"),
        ("{kind: Job, apiVersion: batch/v1, metadata: {}}", "is no object with a name"),
        ("{kind: Secret, apiVersion: v1, metadata: {name: a}}", "document 1: v1/Secret a is nothing that a run may bring; leave it out"),
        ("{kind: ConfigMap, apiVersion: v1, metadata: {name: a}}", "holds 0 Jobs and RayJobs"),
        (MANIFEST + "---" + MANIFEST, "holds 2 Jobs and RayJobs"),
        (MANIFEST.replace("batch/v1", "batch/v1beta1"), "apiVersion: is batch/v1beta1; write batch/v1"),
        (MANIFEST + "---\n{kind: Namespace, apiVersion: v1, metadata: {name: kube-system}}", "v1/Namespace kube-system is nothing that"),
    ],
)
def test_a_manifest_that_cannot_be_submitted_is_refused_with_its_place(tmp_path, text, problem):
    (tmp_path / "job.yaml").write_text(text)

    with pytest.raises(InvalidDocumentError, match=problem) as caught:
        submission_of(tmp_path, cluster=Cluster(manifest="job.yaml"))

    assert "job.yaml" in str(caught.value)


CLUSTER_SCOPED = {
    "ClusterQueue": "kueue.x-k8s.io/v1beta1",
    "ResourceFlavor": "kueue.x-k8s.io/v1beta1",
    "AdmissionCheck": "kueue.x-k8s.io/v1beta2",
    "ProvisioningRequestConfig": "kueue.x-k8s.io/v1beta1",
    "Topology": "kueue.x-k8s.io/v1alpha1",
    "WorkloadPriorityClass": "kueue.x-k8s.io/v1beta1",
}


@pytest.mark.parametrize("kind", CLUSTER_SCOPED)
def test_a_job_brings_nothing_that_belongs_to_the_whole_cluster(tmp_path, kind):
    other = yaml.safe_dump({"kind": kind, "apiVersion": CLUSTER_SCOPED[kind], "metadata": {"name": "shared"}})
    (tmp_path / "job.yaml").write_text(f"{MANIFEST}---\n{other}")

    with pytest.raises(InvalidDocumentError) as caught:
        submission_of(tmp_path, cluster=Cluster(manifest="job.yaml"))

    assert str(caught.value).startswith(
        f"cluster.manifest {tmp_path / 'job.yaml'}: document 3: {kind} shared belongs to the whole cluster, and a job brings"
    )
    assert "into the file that `cluster.queues` names" in caught.value.advice


def test_a_manifest_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(InvalidDocumentError) as caught:
        submission_of(tmp_path, cluster=Cluster(manifest="no-such.yaml"))

    path = tmp_path / "no-such.yaml"
    assert str(caught.value) == f"cluster.manifest {path}: No such file or directory; its path is relative to the root of the catalogue"


def written(**pod: Any) -> str:
    """A manifest whose pod says more."""
    config, job = yaml.safe_load_all(MANIFEST)
    job["spec"]["template"]["spec"] |= pod
    return yaml.safe_dump_all([config, job])


def first_container(**fields: Any) -> list[Any]:
    return [{"name": "main", **fields}]


@pytest.mark.parametrize(
    ("pod", "field", "what"),
    [
        ({"serviceAccountName": "trainer"}, "serviceAccountName", "ServiceAccount trainer"),
        (
            {"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "ckpt"}}]},
            "volumes[0].persistentVolumeClaim",
            "PersistentVolumeClaim ckpt",
        ),
        ({"volumes": [{"name": "a", "secret": {"secretName": "key"}}]}, "volumes[0].secret", "Secret key"),
        ({"volumes": [{"name": "a", "configMap": {"name": "other"}}]}, "volumes[0].configMap", "ConfigMap other"),
        (
            {"volumes": [{"name": "a", "projected": {"sources": [{"secret": {"name": "key"}}]}}]},
            "volumes[0].projected.sources[0].secret",
            "Secret key",
        ),
        ({"containers": first_container(envFrom=[{"secretRef": {"name": "key"}}])}, "containers[0].envFrom[0].secretRef", "Secret key"),
        (
            {"containers": first_container(env=[{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "key", "key": "k"}}}])},
            "containers[0].env[0].valueFrom.secretKeyRef",
            "Secret key",
        ),
        (
            {"initContainers": [{"name": "i", "envFrom": [{"configMapRef": {"name": "other"}}]}]},
            "initContainers[0].envFrom[0].configMapRef",
            "ConfigMap other",
        ),
    ],
)
def test_a_pod_that_names_what_its_namespace_will_not_have_is_refused(tmp_path, pod, field, what):
    (tmp_path / "job.yaml").write_text(written(**pod))

    with pytest.raises(InvalidDocumentError) as caught:
        submission_of(tmp_path, cluster=Cluster(manifest="job.yaml"))

    start = f"cluster.manifest {tmp_path / 'job.yaml'}: spec.template.spec.{field}: {what} is not there: a run has a namespace of its own"
    assert str(caught.value).startswith(start)
    assert caught.value.advice


@pytest.mark.parametrize(
    "pod",
    [
        {"serviceAccountName": "default"},
        {"volumes": [{"name": "a", "configMap": {"name": "script"}}, {"name": "b", "secret": {"secretName": "key", "optional": True}}]},
        {"containers": first_container(envFrom=[{"configMapRef": {"name": "script"}}, {"configMapRef": {"name": "x", "optional": True}}])},
        {"volumes": [{"name": "a", "emptyDir": {}}], "initContainers": None},
    ],
)
def test_a_pod_that_names_what_there_will_be_or_may_be_missing_is_submitted(tmp_path, pod):
    (tmp_path / "job.yaml").write_text(written(**pod))

    assert submission_of(tmp_path, cluster=Cluster(manifest="job.yaml")).build(0)["kind"] == "Job"


@pytest.mark.parametrize("scenario", [one for one in SCENARIOS if one.cluster.manifest], ids=lambda scenario: scenario.name)
def test_every_manifest_of_the_catalogue_names_only_what_there_will_be(tmp_path, scenario):
    root, workload = MANIFESTS.parents[1], scenario.workload
    fields = {"root": root, "directory": tmp_path, "ranks": workload.ranks, "cluster": scenario.cluster}

    assert submission_of(tmp_path, **fields).build(0)["metadata"]["name"] == "job-0"


def ray_job(**spec: Any) -> str:
    """The manifest of a RayJob that says something else."""
    job = next(one for one in yaml.safe_load_all((MANIFESTS / "rayjob_keeping_its_cluster.yaml").read_text()) if one["kind"] == "RayJob")
    job["spec"] |= spec
    return yaml.safe_dump(job)


def test_every_pod_of_a_ray_job_is_looked_at(tmp_path):
    template = {"spec": {"serviceAccountName": "trainer", "containers": first_container()}}
    cluster = yaml.safe_load(ray_job())["spec"]["rayClusterSpec"]
    for spec, place in (
        ({"submitterPodTemplate": template}, "spec.submitterPodTemplate"),
        ({"rayClusterSpec": cluster | {"headGroupSpec": {"template": template}}}, "spec.rayClusterSpec.headGroupSpec.template"),
        (
            {"rayClusterSpec": cluster | {"workerGroupSpecs": [*cluster["workerGroupSpecs"], {"groupName": "more", "template": template}]}},
            "spec.rayClusterSpec.workerGroupSpecs[1].template",
        ),
    ):
        (tmp_path / "job.yaml").write_text(ray_job(**spec))
        with pytest.raises(InvalidDocumentError) as caught:
            submission_of(tmp_path, cluster=Cluster(submits="ray-job", manifest="job.yaml"))
        assert f": {place}.spec.serviceAccountName: ServiceAccount trainer is not there" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{kind: Job, apiVersion: batch/v1, metadata: {name: a}}", "spec.template.spec.containers: holds no container"),
        (
            "{kind: Job, apiVersion: batch/v1, metadata: {name: a}, spec: {template: {spec: {containers: []}}}}",
            "spec.template.spec.containers: holds no container",
        ),
        (
            "{kind: Job, apiVersion: batch/v1, metadata: {name: a}, spec: {template: {spec: {containers: [{image: b}]}}}}",
            "containers[0]: has no name",
        ),
        (
            "{kind: RayJob, apiVersion: ray.io/v1, metadata: {name: a}, spec: {entrypoint: b, clusterSelector: {c: d}}}",
            "spec.rayClusterSpec.headGroupSpec.template.spec.containers: holds no container",
        ),
    ],
)
def test_a_job_without_pods_is_refused(tmp_path, text, problem):
    (tmp_path / "job.yaml").write_text(text)

    with pytest.raises(InvalidDocumentError) as caught:
        submission_of(tmp_path, cluster=Cluster(manifest="job.yaml"))

    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("job", "problem"),
    [
        ({"spec": 7}, "document 1.spec: is no mapping but 7"),
        ({"spec": []}, "document 1.spec: is no mapping but []"),
        ({"metadata": {"name": "A b"}}, "document 1.metadata.name: 'A b' is no name; write small letters"),
        ({"metadata": {"name": "a", "labels": ["b"]}}, "document 1.metadata.labels: is no mapping but ['b']"),
        ({"metadata": {"name": "a", "labels": {"b": 1}}}, "document 1.metadata.labels.b: is no text but 1; put it in quotes"),
        ({"metadata": {"name": "a", "labels": {"b": "Über"}}}, "document 1.metadata.labels[b]: 'Über' is no value of a label"),
        ({"metadata": {"name": "a", "annotations": {"b c": "d"}}}, "document 1.metadata.annotations: has the key 'b c'"),
        ({"spec": {"template": {"metadata": {"labels": "b"}}}}, "spec.template.metadata.labels: is no mapping but 'b'"),
    ],
)
def test_a_job_of_another_shape_is_refused_with_its_place(tmp_path, job, problem):
    whole = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "a"}, "spec": {}}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(whole | job, allow_unicode=True), encoding="utf-8")

    with pytest.raises(InvalidDocumentError) as caught:
        submission_of(tmp_path, cluster=Cluster(manifest="job.yaml"))

    assert str(caught.value).startswith(f"cluster.manifest {tmp_path / 'job.yaml'}: {problem}")


def test_what_is_written_and_left_empty_is_as_if_it_was_not_written(tmp_path):
    pod = {"restartPolicy": "Never", "containers": [{"name": "main", "command": None, "env": None}], "volumes": None}
    job = {"kind": "Job", "apiVersion": "batch/v1", "metadata": {"name": "a", "labels": None}}
    (tmp_path / "job.yaml").write_text(yaml.safe_dump(job | {"spec": {"template": {"metadata": None, "spec": pod}}}))

    built = submission_of(tmp_path, cluster=Cluster(manifest="job.yaml")).build(0)

    assert built["spec"]["template"]["spec"]["containers"][0]["command"] == ["python", "-m", "job"]
    cluster = yaml.safe_load(ray_job())["spec"]["rayClusterSpec"] | {"enableInTreeAutoscaling": True, "autoscalerOptions": None}
    (tmp_path / "job.yaml").write_text(ray_job(rayClusterSpec=cluster, submitterPodTemplate=None))
    built = submission_of(tmp_path, cluster=Cluster(submits="ray-job", manifest="job.yaml")).build(0)
    assert built["spec"]["submitterPodTemplate"]["spec"]["containers"][0]["name"] == "ray-job-submitter"


def test_a_manifest_in_a_queue_that_there_will_not_be_is_refused(tmp_path):
    asks = MANIFEST.replace("user-queue", "team-a-queue")
    (tmp_path / "job.yaml").write_text(asks)

    with pytest.raises(InvalidDocumentError) as caught:
        submission_of(tmp_path, cluster=Cluster(manifest="job.yaml"))

    label = "metadata.labels[kueue.x-k8s.io/queue-name]"
    assert f"{label}: LocalQueue team-a-queue is not there; the run has user-queue; name one of these" in str(caught.value)


def test_a_manifest_of_a_priority_that_the_queues_do_not_bring_is_refused(tmp_path):
    asks = MANIFEST.replace("{kueue.x-k8s.io/queue-name: user-queue}", "{kueue.x-k8s.io/priority-class: high}")
    (tmp_path / "job.yaml").write_text(asks)
    with pytest.raises(
        InvalidDocumentError, match=r"priority-class\]: WorkloadPriorityClass high is not there; the run has none"
    ) as caught:
        submission_of(tmp_path, cluster=Cluster(manifest="job.yaml"))
    assert caught.value.advice.endswith("into the file that `cluster.queues` names")

    (tmp_path / "queues.yaml").write_text(
        "{kind: WorkloadPriorityClass, apiVersion: kueue.x-k8s.io/v1beta1, metadata: {name: high}, value: 9}"
    )
    submission_of(tmp_path, cluster=Cluster(manifest="job.yaml", queues="queues.yaml"))


def test_a_queue_that_the_job_or_the_run_brings_is_there(tmp_path):
    queue = "{kind: LocalQueue, apiVersion: kueue.x-k8s.io/v1beta1, metadata: {name: team-a-queue}, spec: {clusterQueue: cluster-queue}}"
    asks = MANIFEST.replace("user-queue", "team-a-queue")
    (tmp_path / "job.yaml").write_text(f"{asks}---\n{queue}")
    submission_of(tmp_path, cluster=Cluster(manifest="job.yaml"))

    (tmp_path / "job.yaml").write_text(asks)
    (tmp_path / "queues.yaml").write_text(queue)
    submission_of(tmp_path, cluster=Cluster(manifest="job.yaml", queues="queues.yaml"))

    (tmp_path / "job.yaml").write_text(MANIFEST.replace("  labels: {kueue.x-k8s.io/queue-name: user-queue}\n", ""))
    submission_of(tmp_path, cluster=Cluster(manifest="job.yaml", queues="queues.yaml"))


def test_the_label_of_no_queue_stays_possible_where_the_scenario_itself_asks_for_it(tmp_path):
    job = submission_of(tmp_path, cluster=Cluster(queue="users-queue")).build(0)

    assert job["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "users-queue"


def test_a_mount_in_the_place_of_the_checkpoints_is_refused(tmp_path):
    (tmp_path / "job.yaml").write_text(MANIFEST.replace("mountPath: /app", "mountPath: /checkpoints"))

    with pytest.raises(InvalidDocumentError, match=r"job: cluster\.manifest: job\.yaml mounts a volume at /checkpoints, where the harness"):
        submission_of(tmp_path, cluster=Cluster(manifest="job.yaml")).build(0)


def test_a_directory_that_is_on_no_node_is_refused(tmp_path):
    with pytest.raises(InvalidDocumentError, match=r"/elsewhere is on no node of the cluster"):
        submission_of(tmp_path, directory=Path("/elsewhere"))


def test_a_slice_that_there_is_none_of_is_refused(tmp_path):
    with pytest.raises(InvalidDocumentError, match=r"3 hosts with 4 each are 12 chips, and a v6e slice has 1, 4, 8, 16"):
        submission_of(tmp_path, ranks=3, cluster=Cluster(submits="ray-job"))

    assert submission_of(tmp_path, ranks=3).build(0)["spec"]["completions"] == 3


@pytest.mark.parametrize(
    ("pod", "problem"),
    [
        ({"containers": first_container(env={"KEY": "value"})}, "spec.template.spec.containers[0].env: is no list"),
        ({"containers": first_container(env=["KEY=value"])}, "spec.template.spec.containers[0].env[0]: is no mapping but 'KEY=value'"),
        ({"volumes": [{"emptyDir": {}}]}, "spec.template.spec.volumes[0]: has no name"),
    ],
)
def test_a_pod_that_is_not_written_as_a_pod_is_refused_with_its_place(tmp_path, pod, problem):
    (tmp_path / "job.yaml").write_text(written(**pod))

    with pytest.raises(InvalidDocumentError) as caught:
        submission_of(tmp_path, cluster=Cluster(manifest="job.yaml"))

    assert problem in str(caught.value)
