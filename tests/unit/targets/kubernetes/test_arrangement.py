"""What a run finds in its place is refused when it is not its own; a place that is not ready is waited for as long as its parts may take."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from harness.errors import BrokenHarnessError, InvalidDocumentError
from harness.kind.nodes import READY_S as NODES_READY_S
from harness.scenario import Cluster
from harness.targets.kubernetes import patience
from harness.targets.kubernetes.api import CLUSTER_QUEUES, CONFIG_MAPS, NAMESPACES, ApiError, Object
from harness.targets.kubernetes.arrangement import READY_S, Arrangement
from harness.targets.kubernetes.manifest_files import guide_queues
from tests.unit.targets.kubernetes.fake_host import NAMESPACE, RUN, Host


class SlowPools:
    """Pools that never come to rest."""

    def read(self) -> None:
        """Which is at once."""

    def scale(self, *_: object) -> None:
        """Which is begun."""

    def is_busy(self) -> bool:
        return True


def arrangement_of(host: Host, directory: Path) -> Arrangement:
    storage = SimpleNamespace(directory=directory, moved_from="", prepare=lambda: None)
    return Arrangement(host.grounds, storage, SlowPools())  # type: ignore[arg-type]  what is asked of them


def make(arrangement: Arrangement, *companions: Object) -> None:
    arrangement.make(SimpleNamespace(companions=lambda: list(companions)))  # type: ignore[arg-type]  what is asked of it


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    return Host(tmp_path)


def with_queues(host: Host, directory: Path, text: str) -> None:
    """The run's queues are those of a file."""
    (directory / "queues.yaml").write_text(text, encoding="utf-8")
    launch = replace(host.grounds.launch, root=directory, cluster=Cluster(queues="queues.yaml"))
    host._grounds = replace(host.grounds, launch=launch)


@pytest.mark.parametrize(
    ("other", "what"),
    [
        ("{kind: Namespace, apiVersion: v1, metadata: {name: kube-system}}", "v1/Namespace kube-system is nothing that a run may bring"),
        ("{kind: ConfigMap, apiVersion: v1, metadata: {name: mine}}", "ConfigMap mine is none of the queues"),
        ("{kind: Job, apiVersion: batch/v1, metadata: {name: mine}}", "Job mine is none of the queues"),
    ],
)
def test_a_file_of_queues_brings_only_what_is_put_back(host: Host, tmp_path: Path, other: str, what: str) -> None:
    queues = yaml.safe_dump_all(guide_queues())
    with_queues(host, tmp_path, f"{queues}---\n{other}")

    with pytest.raises(InvalidDocumentError) as caught:
        arrangement_of(host, tmp_path)

    number = len(guide_queues()) + 1
    assert str(caught.value).startswith(f"cluster.queues {tmp_path / 'queues.yaml'}: document {number}: {what}")
    assert "ClusterQueue, LocalQueue, ResourceFlavor" in caught.value.advice
    with_queues(host, tmp_path, queues)
    arrangement_of(host, tmp_path)


QUEUE = {"kind": "ClusterQueue", "apiVersion": "kueue.x-k8s.io/v1beta1", "metadata": {"name": "q"}}
CHIPS = {"name": "google.com/tpu", "nominalQuota": 16}


def group_of(*resources: object) -> dict[str, object]:
    return {"resourceGroups": [{"coveredResources": ["google.com/tpu"], "flavors": [{"name": "on-demand", "resources": list(resources)}]}]}


@pytest.mark.parametrize(
    ("queue", "problem"),
    [
        ({"spec": {"resourceGroups": 7}}, "spec.resourceGroups: is no list but 7"),
        ({"spec": {"resourceGroups": [{"flavors": [{"resources": []}]}]}}, "spec.resourceGroups[0].flavors[0]: has no name"),
        ({"spec": {"resourceGroups": [{"coveredResources": "cpu"}]}}, "spec.resourceGroups[0].coveredResources: is no list but 'cpu'"),
        ({"spec": group_of(CHIPS | {"nominalQuota": "many"})}, "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: is 'many'"),
        ({"spec": group_of({"name": "cpu"})}, "spec.resourceGroups[0].flavors[0].resources[0].nominalQuota: is None"),
        ({"kind": "LocalQueue", "spec": {}}, "spec.clusterQueue: is no name but None"),
    ],
)
def test_a_queue_of_another_shape_is_refused_with_its_place(host: Host, tmp_path: Path, queue: Object, problem: str) -> None:
    with_queues(host, tmp_path, yaml.safe_dump(QUEUE | {"spec": group_of(CHIPS)}))
    arrangement_of(host, tmp_path)
    with_queues(host, tmp_path, yaml.safe_dump(QUEUE | queue))

    with pytest.raises(InvalidDocumentError) as caught:
        arrangement_of(host, tmp_path)

    assert str(caught.value).startswith(f"cluster.queues {tmp_path / 'queues.yaml'}: document 1.{problem}")


def test_what_a_job_brings_lies_in_the_runs_namespace_wherever_it_was_written_for(host: Host, tmp_path: Path) -> None:
    make(
        arrangement_of(host, tmp_path), {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "mine", "namespace": "kube-system"}}
    )

    assert host.get(CONFIG_MAPS, "mine", NAMESPACE) is not None
    assert host.get(CONFIG_MAPS, "mine", "kube-system") is None


def test_what_belongs_to_the_whole_cluster_is_not_made_for_a_job_whoever_brings_it(host: Host, tmp_path: Path) -> None:
    queue = {"kind": "ClusterQueue", "apiVersion": "kueue.x-k8s.io/v1beta1", "metadata": {"name": "mine"}}

    with pytest.raises(AssertionError, match="so that it goes with the namespace"):
        make(arrangement_of(host, tmp_path), queue)


@pytest.mark.parametrize(
    "labels", [{}, {"chaos-harness-allow": "true"}, {"chaos-harness-allow": "true", "chaos-harness/run-id": "another"}]
)
def test_a_namespace_of_that_name_which_is_not_the_runs_is_left_alone(host: Host, tmp_path: Path, labels: dict[str, str]) -> None:
    host.api.put(NAMESPACES, {"metadata": {"name": NAMESPACE, "labels": labels}})
    arrangement = arrangement_of(host, tmp_path)

    with pytest.raises(BrokenHarnessError, match=f"does not say chaos-harness-allow: true and chaos-harness/run-id: {RUN}; it is not ours"):
        make(arrangement)

    assert (arrangement.record, host.get(NAMESPACES, NAMESPACE)["metadata"]["labels"]) == (None, labels)


def test_pools_that_are_slow_get_the_time_of_two_batches_and_keep_their_cluster(host: Host, tmp_path: Path) -> None:
    arrangement = arrangement_of(host, tmp_path)
    make(arrangement)
    began_s = host.grounds.clock.monotonic_s()

    assert not arrangement.is_ready(began_s + 2 * NODES_READY_S)
    with pytest.raises(BrokenHarnessError, match="did not come to their first sizes within 360 s; see `docker ps --all`") as slow:
        arrangement.is_ready(began_s + READY_S + 1)
    assert "harness down" not in str(slow.value)


REFUSED_CONNECTION = ApiError(
    attempted="apply",
    what="resourceflavors/default-cpu",
    status=500,
    reason="InternalError",
    message='failed calling webhook "mresourceflavor.kb.io": dial tcp 10.96.0.1:443: connect: connection refused',
)


def recovers(host: Host, verb: str, plural: str, error: ApiError, *, after_s: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The call fails, and does so no more when we have waited for so long."""
    clock, key = host.grounds.clock, (verb, plural)
    end_s, sleep = clock.monotonic_s() + after_s, clock.sleep
    host.api.failures[key] = error

    def sleep_and_recover(seconds: float) -> None:
        sleep(seconds)
        if clock.monotonic_s() >= end_s:
            host.api.failures.pop(key, None)

    monkeypatch.setattr(clock, "sleep", sleep_and_recover)


@pytest.mark.parametrize(
    ("verb", "plural", "error"),
    [
        ("list", "workloads", ApiError(attempted="list", what="workloads", status=500, reason="conversion webhook failed")),
        ("get", "namespaces", ApiError(attempted="get", what="namespaces/x", status=0, reason="Read timed out.")),
        ("get", "clusterqueues", ApiError(attempted="get", what="clusterqueues/x", status=0, reason="Read timed out.")),
        ("apply", "namespaces", ApiError(attempted="apply", what="namespaces/x", status=503, reason="ServiceUnavailable")),
        ("apply", "resourceflavors", REFUSED_CONNECTION),
        ("apply", "configmaps", ApiError(attempted="apply", what="configmaps/x", status=429, reason="TooManyRequests")),
    ],
)
def test_what_does_not_answer_at_the_beginning_is_waited_for(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, plural: str, error: ApiError
) -> None:
    recovers(host, verb, plural, error, after_s=40.0, monkeypatch=monkeypatch)

    make(arrangement_of(host, tmp_path), {"kind": "ConfigMap", "apiVersion": "v1", "metadata": {"name": "mine"}})

    assert host.get(CONFIG_MAPS, "mine", NAMESPACE) is not None
    assert host.get(CLUSTER_QUEUES, "cluster-queue") is not None


@pytest.mark.parametrize(
    ("missing", "advice"),
    [
        ("the deployment kueue-controller-manager in kueue-system is not ready; run `harness up kind`", "; run `harness up kind`"),
        ("", "run `harness down kind`, then `harness up kind`"),
    ],
)
def test_patience_ends_and_says_what_is_missing(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str, advice: str
) -> None:
    monkeypatch.setattr(patience, "problem_with_operators", lambda _: missing)
    began_s = host.grounds.clock.monotonic_s()
    host.api.failures["apply", "resourceflavors"] = REFUSED_CONNECTION

    with pytest.raises(BrokenHarnessError, match="nothing could be begun within 90 s: cannot apply resourceflavors/default-cpu") as caught:
        make(arrangement_of(host, tmp_path))

    assert missing in str(caught.value)
    assert str(caught.value).endswith(advice)
    assert patience.PATIENCE_S <= host.grounds.clock.monotonic_s() - began_s < patience.PATIENCE_S + 10


WRONG = [
    ApiError(attempted="apply", what="x", status=422, reason="Invalid", message="spec.b: Invalid value"),
    ApiError(attempted="apply", what="x", status=400, reason="BadRequest", message="spec.b: unknown"),
    ApiError(attempted="apply", what="x", status=500, reason="", message=".spec.b: expected list, got &{7}"),
    ApiError(attempted="apply", what="x", status=403, reason="Forbidden", message='admission webhook "v.kb.io" denied the request: spec.b'),
    ApiError(attempted="apply", what="x", status=404, reason="Not Found"),
]


@pytest.mark.parametrize("error", WRONG, ids=lambda error: str(error.status))
def test_what_the_api_server_takes_for_written_wrong_is_the_mistake_of_its_document(host: Host, tmp_path: Path, error: ApiError) -> None:
    with_queues(host, tmp_path, yaml.safe_dump_all(guide_queues()))
    began_s = host.grounds.clock.monotonic_s()
    host.api.failures["apply", "clusterqueues"] = error

    with pytest.raises(InvalidDocumentError) as caught:
        make(arrangement_of(host, tmp_path))

    document = f"cluster.queues {tmp_path / 'queues.yaml'}"
    assert str(caught.value).startswith(
        f"{document}: ClusterQueue cluster-queue: the API server does not take it: {(error.message or error.reason)[:6]}"
    )
    assert host.grounds.clock.monotonic_s() == began_s


def test_what_is_refused_otherwise_or_is_of_our_own_writing_stays_ours(host: Host, tmp_path: Path) -> None:
    host.api.failures["apply", "clusterqueues"] = WRONG[0]
    with pytest.raises(ApiError, match="422"):
        make(arrangement_of(host, tmp_path))

    with_queues(host, tmp_path, yaml.safe_dump_all(guide_queues()))
    host.api.failures["apply", "clusterqueues"] = ApiError(attempted="apply", what="x", status=403, reason="Forbidden", message="no right")
    with pytest.raises(ApiError, match="no right"):
        make(arrangement_of(host, tmp_path))
    gone = ApiError(attempted="apply", what="x", status=404, reason="NotFound", message='namespaces "harness-r" not found')
    host.api.failures["apply", "clusterqueues"] = gone
    with pytest.raises(ApiError, match="namespaces"):
        make(arrangement_of(host, tmp_path))
