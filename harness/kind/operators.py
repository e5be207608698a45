"""Kueue, KubeRay and the CRD of ProvisioningRequest in a cluster."""

import json
from pathlib import Path

from harness.clock import Clock
from harness.kind.bundle.manifests import KUBERAY, KUEUE, PROVISIONING
from harness.kind.bundle.overlay import CONTROL_PLANE_LABEL
from harness.kind.cluster import KindCluster, kubectl
from harness.kind.commands import CommandFailedError

APPLY_S = 120.0
"""Kueue's manifest is 1.5 MB of CRDs: 3 to 10 s."""

READY_S = 240.0
"""Kueue makes its certificates first: 20 to 40 s on two cores."""

ASK_S = 20.0
POLL_S = 1.0

OPERATORS = (("kuberay-system", "kuberay-operator"), ("kueue-system", "kueue-controller-manager"))
"""Namespaces and deployments."""

PROBE = {
    "apiVersion": "kueue.x-k8s.io/v1beta1",
    "kind": "ResourceFlavor",
    "metadata": {"name": "chaos-harness-probe"},
}
"""Applied without effect: it passes Kueue's webhooks, conversion too, only when those answer."""


def pin_dns(cluster: KindCluster) -> None:
    """One CoreDNS, on the control plane: a pool that is lost takes no name service with it."""
    patch = {"spec": {"replicas": 1, "template": {"spec": {"nodeSelector": {CONTROL_PLANE_LABEL: ""}}}}}
    kubectl(cluster, "--namespace", "kube-system", "patch", "deployment", "coredns", "--patch", json.dumps(patch), deadline_s=ASK_S)


def install_operators(cluster: KindCluster, manifests: Path) -> None:
    """Apply the manifests. The CRD first, for Kueue looks for it once, when it starts; Kueue last, for its webhooks then judge the rest."""
    for name in (PROVISIONING, KUBERAY, KUEUE):
        server_side = ("apply", "--server-side", "--force-conflicts", "--filename", str(manifests / name))
        kubectl(cluster, *server_side, deadline_s=APPLY_S)


def start_operators(cluster: KindCluster) -> None:
    """Let both have their one pod, whoever took it away.

    Raises:
        CommandFailedError: When one is not there at all.
    """
    for namespace, deployment in OPERATORS:
        kubectl(cluster, "--namespace", namespace, "scale", "deployment", deployment, "--replicas=1", deadline_s=ASK_S)


def wait_for_operators(cluster: KindCluster, clock: Clock) -> None:
    """Wait until both are available and Kueue's webhooks answer.

    Raises:
        CommandFailedError: When they are not in time, with the last answer.
    """
    for namespace, deployment in (("kube-system", "coredns"), *OPERATORS):
        wait = ("--namespace", namespace, "rollout", "status", f"deployment/{deployment}", f"--timeout={READY_S:g}s")
        kubectl(cluster, *wait, deadline_s=READY_S + ASK_S)
    end_s = clock.monotonic_s() + READY_S
    while True:
        try:
            kubectl(cluster, "apply", "--server-side", "--dry-run=server", "--filename", "-", deadline_s=ASK_S, stdin=json.dumps(PROBE))
        except CommandFailedError:
            if clock.monotonic_s() > end_s:
                raise
            clock.sleep(POLL_S)
        else:
            return
