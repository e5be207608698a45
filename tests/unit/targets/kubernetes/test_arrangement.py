"""What a run finds in its place is refused when it is not its own; a place that is not ready is waited for as long as its parts may take."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from harness.errors import BrokenHarnessError, InvalidDocumentError
from harness.kind.nodes import READY_S as NODES_READY_S
from harness.scenario import Cluster
from harness.targets.kubernetes.api import CONFIG_MAPS, NAMESPACES, Object
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
