"""After `kill -9` of the harness in the middle of its faults, `harness clean` lets the cluster be as it was before."""

import signal
import subprocess
import sys

import pytest

from harness.cli.cleaning import What, clean
from harness.clock import SystemClock
from harness.kind.lock import Turn
from harness.targets.kubernetes.api import CLUSTER_QUEUES, NAMESPACES, NODES, name_of
from tests.cluster.fault_trials import CHECKOUT
from tests.cluster.kueue_trials import TEST_S_MAX

pytestmark = pytest.mark.timeout(TEST_S_MAX)

KILLED = """
import os, signal, sys
from pathlib import Path
from harness.history import FaultObserved
from harness.scenario import Injection
from harness.scenario.cluster_faults import BreakNode, CordonNode, ForgetImage, LoseNode, LowerQuota, LimitNamespace
from harness.scenario.triggers import AfterSeconds, AtSubmission
from tests.cluster.fault_trials import Trial

FAULTS = {
    "lost": [(LowerQuota(to=4, duration_s=500.0), AtSubmission()), (LimitNamespace(chips=8, duration_s=500.0), AtSubmission()),
             (CordonNode(duration_s=500.0), AfterSeconds(seconds=0.2)), (LoseNode(duration_s=500.0), AfterSeconds(seconds=1.0))],
    "cut-off": [(ForgetImage(duration_s=500.0), AfterSeconds(seconds=0.2)),
                (BreakNode(how="partition", duration_s=500.0), AfterSeconds(seconds=1.0))],
}
faults = FAULTS[sys.argv[2]]
trial = Trial(Path(sys.argv[1]), *(Injection(fault=fault, at=at, name=f"hit-{n}") for n, (fault, at) in enumerate(faults)))
with trial.running():
    trial.until(lambda: len(trial.journal.owed()) == len(trial.of(FaultObserved)) == len(faults), "hit")
    os.kill(os.getpid(), signal.SIGKILL)
"""

KILLED_S_MAX = 600.0
"""It may wait for other runs on the cluster."""


@pytest.mark.parametrize("how", ["lost", "cut-off"])
def test_after_kill_9_in_the_middle_clean_lets_the_cluster_be_as_before(tmp_path, api, machines, cluster, how) -> None:
    def shape() -> dict[str, object]:
        """Of the cluster, while no run has it."""
        with Turn(cluster.name).held(SystemClock()):
            queue = api.get(CLUSTER_QUEUES, "cluster-queue")
            return {
                "machines": [(node.name, node.state) for node in machines.list()],
                "nodes": sorted(
                    (
                        node["metadata"]["name"],
                        bool(node["spec"].get("unschedulable")),
                        sorted(t["key"] for t in node["spec"].get("taints", [])),
                    )
                    for node in api.list(NODES)
                ),
                "queue": queue and queue["spec"],
                "namespaces": sorted(name_of(namespace) for namespace in api.list(NAMESPACES)),
            }

    before = shape()
    program = [sys.executable, "-c", KILLED, str(tmp_path), how]
    ended = subprocess.run(program, cwd=CHECKOUT, capture_output=True, text=True, timeout=KILLED_S_MAX)
    assert ended.returncode == -signal.SIGKILL, ended.stderr[-3000:]

    told = list(clean(tmp_path / "runs", SystemClock()))

    assert any("ready: chaos-harness-worker" in line.text for line in told), told
    assert not [line for line in told if line.what is What.FAILED]
    assert shape() == before
    for node in machines.list("on-demand-pool"):
        assert cluster.job_image in machines.exec(node.name, ["ctr", "--namespace", "k8s.io", "images", "list", "--quiet"])
    assert list(clean(tmp_path / "runs", SystemClock())) == []
