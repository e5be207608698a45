"""What of a run on Google Cloud is the platform's own, what the agent plays there, and what the emulator adds to that."""

from harness.capabilities import Fidelity
from harness.cloud_run.fidelity import CONTRACT, ENDED_GRACE, GRACE_OF_JOBS, MAX_RETRIES, TIMEOUT

_VOLUMES = "https://docs.cloud.google.com/run/docs/configuring/jobs/cloud-storage-volume-mounts"
_LOGGING = "https://docs.cloud.google.com/logging/docs/reference/v2/rest/v2/LogEntry"
_JOBS = "https://docs.cloud.google.com/run/docs/reference/rest/v2/projects.locations.jobs"

_PLAYED: tuple[Fidelity, ...] = (
    Fidelity(
        what="SIGTERM, grace, SIGKILL of a maintenance",
        here="emulated",
        note="No service lets anybody cause a maintenance of Cloud Run. The agent, which wraps the command in the "
        "container, sends SIGTERM to "
        "the job, SIGKILL when the grace is over, and ends with the job's exit code, so that Cloud Run itself retries. The container lives "
        "on for a moment to say how the job ended; its machine does not go.",
        source=TIMEOUT,
    ),
    Fidelity(
        what="the platform's line about a maintenance, a timeout that is made to expire, an end on a signal",
        here="emulated",
        note="Written by the harness to its own log (projects/P/logs/harness) with the execution's labels and "
        "harness/played. A real line of "
        "the platform is read as such. A job that dies of a signal ends its container with 128 and the signal's number, since a first "
        "process of a container cannot kill itself: the platform says exit(137) where it would say signal 9.",
        source=_LOGGING,
    ),
    ENDED_GRACE,
    Fidelity(
        what="timeout that is made to expire (expire-timeout)",
        here="emulated",
        note="Played by the agent: an execution keeps the timeout that it began with. The timeout that is reached "
        "by itself is the platform's.",
        source=_JOBS,
    ),
    Fidelity(
        what="start of an attempt",
        here="emulated",
        note="The agent holds the job until the end of the attempt before it was told, so that storage can be "
        "changed between two attempts; "
        "after two minutes it starts it alone. What it waits counts towards the attempt's timeout.",
        source=f"{_JOBS}.executions.tasks",
    ),
    Fidelity(
        what="moments: at a step, at a marker",
        here="emulated",
        note="The job waits at the agent's barrier until an order has come through the bucket: exact, and on a project about a second each "
        "time. A grace that the harness gave stands still meanwhile, and that is told; in one of the platform's own nobody is held. It "
        "also waits there after each save, until storage was looked at, but in no grace.",
        source=_VOLUMES,
    ),
    Fidelity(
        what="process ids, signals to one rank",
        here="real",
        note="The container's own ids, told by the agent. No undo on this machine names them: what is stopped "
        "goes on by itself after a minute.",
    ),
    Fidelity(
        what="name of the job",
        here="emulated",
        note="The job that runs is the run's own: deployed for it, or a copy of the adopted one, which is never changed (RunJob overrides "
        "neither command nor volumes). In the container CLOUD_RUN_JOB is the name of the workload.",
        source=_JOBS,
    ),
    Fidelity(
        what="clock",
        here="emulated",
        note="Events have the container's own stamps, log lines Google's, each mapped to the harness's clock by "
        "what every exchange bounds; "
        "how far that can be off is told with each attempt. Within one source the order is its own.",
        source="https://www.rfc-editor.org/rfc/rfc5905",
    ),
    Fidelity(
        what="damage to checkpoints at rest",
        here="real",
        note="Made in a mirror here and written to the bucket over that very generation, before the job goes on "
        "or the next attempt begins. "
        "What the job has written since stays, and the run proves nothing then.",
        source="https://docs.cloud.google.com/storage/docs/request-preconditions",
    ),
    Fidelity(
        what="storage that fails or is slow while running, operations that are stopped at, attempts that overlap",
        here="absent",
        note="Not offered: a mounted bucket cannot be made to fail from outside, and Cloud Run does not start an "
        "attempt beside one that runs.",
        source=_VOLUMES,
    ),
)

FIDELITY: tuple[Fidelity, ...] = (
    Fidelity(what="retries, attempts, task timeout, cancel, exit codes", here="real", note="Cloud Run's own."),
    GRACE_OF_JOBS,
    Fidelity(
        what="checkpoint directory as a Cloud Storage mount",
        here="real",
        note="A bucket mounted by Cloud Run, in a prefix of the run's own.",
    ),
    Fidelity(
        what="log entries",
        here="real",
        note="Cloud Logging's, late and out of order as they come; what has not come in time, and what a job prints beyond what is read "
        "of it, is told.",
    ),
    Fidelity(what="CPU, memory, GPU, image, network, identity", here="real", note="As the job is deployed, or was adopted."),
    *_PLAYED,
)
"""On a project."""

EMULATED_FIDELITY: tuple[Fidelity, ...] = (
    Fidelity(
        what="the services: Cloud Run, Cloud Logging, Cloud Storage",
        here="emulated",
        note="An emulator on loopback, spoken to by Google's own clients over the services' wire protocols.",
        source=_JOBS,
    ),
    Fidelity(
        what="retries, attempts, task timeout, cancel",
        here="emulated",
        note="By the rules of the local target; the next attempt starts at once.",
        source=MAX_RETRIES,
    ),
    Fidelity(
        what="containers",
        here="absent",
        note="Jobs are processes of this machine, as on the local target: no image, no limits, no GPU, no "
        "identity, no network of their own.",
        source=CONTRACT,
    ),
    Fidelity(
        what="checkpoint directory as a Cloud Storage mount",
        here="emulated",
        note="Objects are files of a directory: a rename is atomic and a write is seen at once. gcsfuse shows an "
        "object when it is closed, and "
        "may hold what it has seen for a minute.",
        source=_VOLUMES,
    ),
    Fidelity(
        what="log entries",
        here="emulated",
        note="Shapes of Cloud Logging, without its delay or loss; of what an attempt prints 20,000 lines or 32 MiB, and what is more "
        "is told.",
        source=_LOGGING,
        verified=False,
    ),
    GRACE_OF_JOBS,
    *_PLAYED,
)
"""On an emulator."""
