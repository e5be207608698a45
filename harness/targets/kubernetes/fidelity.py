"""What the cluster target plays, what it leaves out, and what therefore cannot be concluded from a run here."""

from harness.capabilities import Fidelity

_DWS = "module k8s.io/gke-autoscaling/cluster-autoscaler (provreqstate, reconciler, queuedwrapper)"
_DISRUPTION = "https://docs.cloud.google.com/kubernetes-engine/docs/concepts/handle-disruption-gpu-tpu"
_PROVISIONING = "https://docs.cloud.google.com/kubernetes-engine/docs/how-to/provisioningrequest"

FIDELITY: tuple[Fidelity, ...] = (
    Fidelity(
        what="API server, scheduler, controllers, kubelets, containerd",
        here="real",
        note="Kubernetes of the version that the guide runs on, with a pod network of routes and no cloud provider.",
    ),
    Fidelity(
        what="Kueue, KubeRay: admission, quota, eviction, requeue, RayJobs",
        here="real",
        note="Their released versions; the queue objects of the guide, but for sizes.",
    ),
    Fidelity(
        what="containers: PID 1, signals, exit codes, memory limits",
        here="real",
        note="What a job does on a signal carries over. A memory limit is what the manifest says. An exit code of 137, 134 or 139 is read "
        "as the signal that it stands for.",
    ),
    Fidelity(
        what="retries of a Job: backoffLimit, a new pod after a back-off of 10 s, doubled each time",
        here="real",
        note="max_retries is the backoffLimit, times the number of hosts. No timeout per attempt is applied: Jobs have none.",
    ),
    Fidelity(
        what="number of an attempt (CLOUD_RUN_TASK_ATTEMPT)",
        here="absent",
        note="Nobody numbers the pods of a Job: the variable is not set. A job that fences its writers needs a number of its own.",
    ),
    Fidelity(
        what="nodes and node pools",
        here="emulated",
        note="Nodes are containers of one machine with one kernel and one clock; pools scale by starting and stopping them. A power "
        "loss is the end of a container: what was written to storage that outlives nodes is never lost. Maintenance, Spot preemption "
        "and host errors are played with GKE's labels, taints and graces. The label of the time announces a maintenance; the taint "
        "impending-node-termination comes when pods are being stopped, as documented. That the label of its state is PENDING before, and "
        "that a Spot machine has the taint, is assumed; the taint of a maintenance window is not played.",
        source=_DISRUPTION,
    ),
    Fidelity(
        what="TPU chips and slices",
        here="emulated",
        note="google.com/tpu is a number that nodes offer; JAX computes on processors, collectives go over gloo. A node stands for two "
        "hosts, and nothing holds the hosts of a slice together: one host can be lost without the others.",
        source="https://docs.cloud.google.com/kubernetes-engine/docs/concepts/tpus",
    ),
    Fidelity(
        what="DWS flex-start: ProvisioningRequests of class queued-provisioning.gke.io",
        here="emulated",
        note="Conditions, reasons and messages in GKE's legal orders, by the scenario's script; the pool's nodes come and go with them. "
        "Times are the scenario's: how long a real queue lasts cannot be concluded.",
        source=_DWS,
    ),
    Fidelity(
        what="autoscaling of the on-demand pool",
        here="emulated",
        note="Nodes come for pods that wait for them, or Google's errors for stockout and quota. Nothing is scaled down while a run lasts.",
        source=_PROVISIONING,
    ),
    Fidelity(
        what="checkpoint directory as a Cloud Storage mount",
        here="absent",
        note="It is a directory of the machine, mounted into every node: rename is atomic, fsync is durable, writers see one another at "
        "once.",
        source="https://docs.cloud.google.com/storage/docs/cloud-storage-fuse/overview",
    ),
    Fidelity(
        what="images",
        here="emulated",
        note="One thin image on every node, Python's packages mounted beside it; nothing is pulled. Start times are lower bounds.",
        source="https://docs.cloud.google.com/kubernetes-engine/docs/how-to/image-streaming",
    ),
    Fidelity(
        what="logs",
        here="emulated",
        note="As the API server gives them, stdout and stderr together; of a pod whose node is gone the last lines may be missing, as they "
        "are in Cloud Logging.",
        source="https://docs.cloud.google.com/kubernetes-engine/docs/concepts/about-logs",
    ),
    Fidelity(
        what="order of an attempt's end and the start of the next",
        here="emulated",
        note="The cluster waits for nobody: the next pod may be there before a fault that follows on the end of the one before has acted.",
        source="https://kubernetes.io/docs/concepts/workloads/controllers/job/",
    ),
)
