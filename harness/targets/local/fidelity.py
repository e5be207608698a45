"""What the local target plays, what it leaves out, and what therefore cannot be concluded from a run here."""

from harness.capabilities import Fidelity
from harness.cloud_run.fidelity import CONTRACT, ENDED_GRACE, GRACE_OF_JOBS, OVERLAP, RETRIES, TIMEOUT

_GCSFUSE = "https://docs.cloud.google.com/storage/docs/cloud-storage-fuse/overview"

FIDELITY: tuple[Fidelity, ...] = (
    Fidelity(
        what="exit codes, wait statuses, signals",
        here="real",
        note="The job is a process of this kernel: what its handlers, threads and children do on a signal carries over.",
    ),
    RETRIES,
    Fidelity(
        what="SIGTERM, grace, SIGKILL",
        here="emulated",
        note="SIGTERM goes to the first process of the attempt as to PID 1 of a container, SIGKILL to all. Ten seconds are documented for "
        "instances and, for maintenance of GPU jobs, as about ten; the exact moment of SIGKILL is the platform's.",
        source=f"{CONTRACT}#instance-shutdown",
    ),
    GRACE_OF_JOBS,
    ENDED_GRACE,
    Fidelity(
        what="a moment in storage at which a job is held (at-operation)",
        here="emulated",
        note="The operation is the job's own, and so is what it leaves: a supervisor does it on the job's behalf, one after the other, and "
        "holds the thread that asked for it. The job's other threads and processes go on meanwhile, with more time for it than they would "
        "have had; operations of several threads are never done at once.",
        source="https://man7.org/linux/man-pages/man2/seccomp_unotify.2.html",
    ),
    Fidelity(
        what="timeout per attempt",
        here="emulated",
        note="Counted from the start of the process, not of the container. Any length is accepted: the platform's limit is 168 hours, and "
        "12 hours (preview; older pages say 1 hour) for tasks with GPUs. Exit 0 within the grace counts as success here.",
        source=TIMEOUT,
        verified=False,
    ),
    Fidelity(
        what="PID 1",
        here="absent",
        note="In a container the kernel discards signals that PID 1 has no handler for, and PID 1 inherits orphans. Here the default "
        "action applies and orphans go to the harness: a job that only survives, or only hangs, as PID 1 is not found out. A shell as "
        "entry point hides SIGTERM here as there.",
        source="https://man7.org/linux/man-pages/man7/pid_namespaces.7.html",
    ),
    Fidelity(
        what="maintenance of CPU tasks: SIGTSTP, live migration, SIGCONT",
        here="emulated",
        note="The signals are real, the migration is absent: no pause of the machine, no broken connection. Without a handler SIGTSTP does "
        "nothing, as for PID 1.",
        source=f"{TIMEOUT}#maintenance-events",
    ),
    OVERLAP,
    Fidelity(
        what="end of a container: all its processes die",
        here="emulated",
        note="Killed are those that carry the attempt's environment, share its session or descend from it. One that empties its "
        "environment, leaves the session and outlives its parents escapes.",
        source=CONTRACT,
    ),
    Fidelity(
        what="nodes of a Ray cluster: one is drained and taken away, or loses its raylet",
        here="emulated",
        note="The announcement is Ray's own, by its command line, and so is what follows from it. A node is a raylet with its workers: it "
        "has no disk, memory or network of its own to lose, and its workers may live for a second without it. It is taken away by SIGKILL "
        "to all of them, and nothing replaces it.",
        source="https://docs.ray.io/en/latest/ray-core/fault_tolerance/nodes.html",
    ),
    Fidelity(
        what="sandbox (gVisor, second generation environment), root file system in memory",
        here="absent",
        note="System calls, files and limits are those of this machine. What is written elsewhere than in the checkpoint directory and in "
        "TMPDIR stays.",
        source="https://docs.cloud.google.com/run/docs/about-execution-environments",
    ),
    Fidelity(
        what="checkpoint directory as a Cloud Storage mount",
        here="absent",
        note="It is a local directory: rename is atomic, fsync is durable, writers see one another at once. With gcsfuse an object appears "
        "at close, a directory rename copies without a hierarchical namespace, caches may be stale.",
        source=_GCSFUSE,
    ),
    Fidelity(
        what="memory and CPU limits, out-of-memory kill",
        here="absent",
        note="A job may use what this machine has. The kill fault shows the SIGKILL of an out-of-memory end, not the pressure before it.",
        source="https://docs.cloud.google.com/run/docs/configuring/services/memory-limits",
    ),
    Fidelity(
        what="GPU",
        here="absent",
        note="A job sees the GPUs of this machine, if any; driver errors, their loss and the choice of zone do not happen.",
        source="https://docs.cloud.google.com/run/docs/configuring/jobs/gpu",
    ),
    Fidelity(
        what="image pull, cold start, scheduling delay, stockout",
        here="absent",
        note="An attempt starts at the loop's next turn. Goodput lost to starting is not measured.",
        source="https://docs.cloud.google.com/run/docs/create-jobs",
    ),
    Fidelity(
        what="network, service account, metadata server",
        here="absent",
        note="The job has this machine's network and identity.",
        source=f"{CONTRACT}#metadata-server",
    ),
    Fidelity(
        what="clock",
        here="emulated",
        note="All processes share one monotonic clock, so their events can be ordered exactly. Tasks on the platform run on machines whose "
        "clocks differ.",
        source="https://man7.org/linux/man-pages/man2/clock_gettime.2.html",
    ),
    Fidelity(
        what="log entries",
        here="emulated",
        note="Shapes of Cloud Logging as in public exports, without its delay, sampling or loss.",
        source="https://docs.cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry",
    ),
    Fidelity(
        what="log entry of a maintenance event; entries of a success and of a cancel",
        here="emulated",
        note="Text and reason INSTANCE_PREEMPTED are those of the guide; the shape of the entry is assumed and labelled so. It is "
        "logged when the attempt has ended, after the job's own lines, as the guide shows it.",
        source="https://docs.cloud.google.com/run/docs/tutorials",
        verified=False,
    ),
)
