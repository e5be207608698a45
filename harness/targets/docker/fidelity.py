"""What the docker target plays, what it leaves out, and what therefore cannot be concluded from a run here."""

from harness.capabilities import Fidelity
from harness.cloud_run.fidelity import CONTRACT, ENDED_GRACE, GRACE_OF_JOBS, OVERLAP, RETRIES, TIMEOUT

_NAMESPACES = "https://man7.org/linux/man-pages/man7/pid_namespaces.7.html"

FIDELITY: tuple[Fidelity, ...] = (
    Fidelity(
        what="PID 1: signals that it has no handler for, orphans, a shell as entry point",
        here="real",
        note="The job is the first process of a namespace of its own: the kernel drops SIGTERM where it has no handler, and a shell that "
        "is not replaced by the job hides SIGTERM from it.",
    ),
    Fidelity(
        what="end of a container: all its processes die",
        here="real",
        note="By the kernel, with PID 1. How many outlived it is not counted.",
    ),
    Fidelity(
        what="exit codes and signals",
        here="real",
        note="The wait status is the kernel's from Linux 6.15 on. Before, it is the engine's exit code, which writes signals as 128 and "
        "more: SIGKILL is then told from an exit 137 by who sent one, and an exit 139 passes for a SIGSEGV. "
        "So too for a container that ends within the tenth of a second before its first process is known here.",
    ),
    Fidelity(
        what="memory limit, out-of-memory kill",
        here="real",
        note="By the kernel's control group, swap included; told from our own SIGKILL by the engine's word and the group's count. The "
        "platform's limit also counts what is written to its file system in memory, which here is on disk.",
    ),
    Fidelity(
        what="log line of an out-of-memory kill",
        here="emulated",
        note="Text as the platform's troubleshooting guide shows it; the shape of the entry is assumed.",
        source="https://docs.cloud.google.com/run/docs/troubleshooting",
        verified=False,
    ),
    RETRIES,
    Fidelity(
        what="SIGTERM, grace, SIGKILL",
        here="emulated",
        note="SIGTERM goes to PID 1, SIGKILL ends all. Ten seconds are documented for instances and, for maintenance of GPU jobs, as about "
        "ten; the exact moment of SIGKILL is the platform's. While a container is started, moves of other tasks "
        "wait, up to half a second.",
        source=f"{CONTRACT}#instance-shutdown",
    ),
    Fidelity(
        what="stop signal of the image",
        here="emulated",
        note="SIGTERM is sent whatever an image's STOPSIGNAL says: the platform's documents name no other. A job that listens for that one "
        "alone is killed when the grace is over.",
        source=f"{CONTRACT}#instance-shutdown",
        verified=False,
    ),
    GRACE_OF_JOBS,
    ENDED_GRACE,
    Fidelity(
        what="timeout per attempt",
        here="emulated",
        note="Counted from the start of the container. Any length is accepted. Exit 0 within the grace counts as success here.",
        source=TIMEOUT,
        verified=False,
    ),
    Fidelity(
        what="signals to one rank",
        here="emulated",
        note="Sent to the process by its id on this machine, found by the id in the container that the rank has said; nothing is run in "
        "the container for it. Process ids in the history are those of this machine.",
        source=_NAMESPACES,
    ),
    Fidelity(
        what="maintenance of CPU tasks: SIGTSTP, live migration, SIGCONT",
        here="emulated",
        note="The signals are real, the migration is absent: no pause of the machine, no broken connection.",
        source=f"{TIMEOUT}#maintenance-events",
    ),
    OVERLAP,
    Fidelity(
        what="root file system: goes with the attempt",
        here="emulated",
        note="A layer on disk, not in memory. The job's directory is mounted into it, read-only; without an image of one's own it has "
        "Debian, Python and the packages of requirements/all.txt, mounted where they have been built.",
        source=CONTRACT,
    ),
    Fidelity(
        what="sandbox (gVisor, second generation environment)",
        here="absent",
        note="System calls and limits are those of this machine's kernel and of the engine's own filter.",
        source="https://docs.cloud.google.com/run/docs/about-execution-environments",
    ),
    Fidelity(
        what="checkpoint directory as a Cloud Storage mount",
        here="absent",
        note="It is a local directory, mounted at /checkpoints: rename is atomic, fsync is durable, writers see one another at once. With "
        "gcsfuse an object appears at close, a directory rename copies without a hierarchical namespace, caches may be stale. Operations "
        "cannot be made to fail while the job runs.",
        source="https://docs.cloud.google.com/storage/docs/cloud-storage-fuse/overview",
    ),
    Fidelity(
        what="CPU limits, GPU",
        here="absent",
        note="A job may use the processors of this machine, and sees none of its GPUs.",
        source="https://docs.cloud.google.com/run/docs/configuring/jobs/gpu",
    ),
    Fidelity(
        what="image pull, cold start, scheduling delay, stockout",
        here="absent",
        note="The image is there; a container starts within half a second. Goodput lost to starting is not measured.",
        source="https://docs.cloud.google.com/run/docs/create-jobs",
    ),
    Fidelity(
        what="network, service account, metadata server",
        here="absent",
        note="The job has the engine's default network and no identity.",
        source=f"{CONTRACT}#metadata-server",
    ),
    Fidelity(
        what="clock",
        here="emulated",
        note="All containers share this machine's monotonic clock, so their events can be ordered exactly. Tasks on the platform run on "
        "machines whose clocks differ.",
        source="https://man7.org/linux/man-pages/man2/clock_gettime.2.html",
    ),
    Fidelity(
        what="log entries; entries of a maintenance event, of a success and of a cancel",
        here="emulated",
        note="Shapes of Cloud Logging as in public exports, without its delay, sampling or loss; those of maintenance, success and cancel "
        "are assumed and labelled so.",
        source="https://docs.cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry",
        verified=False,
    ),
)
