"""What of a run on a project's cluster is the platform's own, and what cannot be had there. On a real project nobody has seen it yet."""

from harness.capabilities import Fidelity

_DISRUPTION = "https://docs.cloud.google.com/kubernetes-engine/docs/concepts/handle-disruption-gpu-tpu"
_SIMULATING = "https://docs.cloud.google.com/compute/docs/instances/simulating-host-maintenance"
_GROUPS = "https://docs.cloud.google.com/compute/docs/instance-groups/about-repair-in-migs"
_MOUNT = "https://docs.cloud.google.com/kubernetes-engine/docs/how-to/cloud-storage-fuse-csi-driver-ephemeral"
_API = "https://docs.cloud.google.com/kubernetes-engine/docs/reference/rest/v1/projects.locations.clusters.nodePools"

FIDELITY: tuple[Fidelity, ...] = (
    Fidelity(
        what="API server, scheduler, kubelets, autoscaler, Kueue, KubeRay, DWS",
        here="real",
        note="The cluster's own, adopted with its queues and node pools. A run makes its namespace, and LocalQueues in it.",
        source=_API,
        verified=False,
    ),
    Fidelity(
        what="host error (lose-node, interrupt-node gke-host-error)",
        here="emulated",
        note="The machine is deleted through Compute Engine; its managed instance group makes another one at once, and not only after "
        "duration_s.",
        source=_GROUPS,
        verified=False,
    ),
    Fidelity(
        what="loss of power (break-node power-off)",
        here="emulated",
        note="The machine is reset: it is up again as fast as it boots, and not only after duration_s. Its node object stays.",
        source="https://docs.cloud.google.com/compute/docs/instances/stop-start-instance",
        verified=False,
    ),
    Fidelity(
        what="maintenance, Spot preemption (interrupt-node)",
        here="real",
        note="Made to happen by simulateMaintenanceEvent; how long it is announced before, and what GKE does with pods then, is the "
        "platform's own: notice_s of the scenario does not reach there. Machines of one slice are asked for one by one.",
        source=_SIMULATING,
        verified=False,
    ),
    Fidelity(
        what="loss of a pool (lose-pool)",
        here="emulated",
        note="The pool's autoscaling is switched off and its size set to zero: its nodes are drained by GKE, with notice, and go in "
        "minutes. Its size and autoscaling are given back. A pool with queued provisioning cannot be resized, and is refused.",
        source=_DISRUPTION,
        verified=False,
    ),
    Fidelity(
        what="what jobs say",
        here="emulated",
        note="Pods are read from outside, by their logs as the API server gives them, stdout and stderr together. The protocol is not "
        "spoken: no moment of a job can be held, no process be signalled.",
        source="https://docs.cloud.google.com/kubernetes-engine/docs/concepts/about-logs",
    ),
    Fidelity(
        what="checkpoint directory as a Cloud Storage mount",
        here="real",
        note="The run's own part of the bucket, mounted by GKE where its add-on is on; the service account `default` of the run's "
        "namespace must be allowed to use the bucket.",
        source=_MOUNT,
        verified=False,
    ),
    Fidelity(
        what="killed kubelets, cut networks, restarted control planes, forgotten images, capacity that is revoked on demand",
        here="absent",
        note="Refused when a scenario is bound: nobody but Google can cause them.",
        source=_DISRUPTION,
    ),
)
