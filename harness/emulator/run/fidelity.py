"""What the emulator's Cloud Run is, besides what targets that play Cloud Run jobs leave out alike: ``harness.cloud_run.fidelity``."""

from harness.capabilities import Fidelity

_REFERENCE = "https://docs.cloud.google.com/run/docs/reference/rpc/google.cloud.run.v2"

FIDELITY = (
    Fidelity(
        what="container image",
        here="absent",
        note="Images are not looked into. The container's command runs as a process of this machine, with its programs; a job without a "
        "command runs what `Platform.entrypoints` names for its image, or is refused with FAILED_PRECONDITION.",
    ),
    Fidelity(
        what="volume of a bucket",
        here="emulated",
        note="The mount's path is replaced by the bucket's directory in command, arguments and values of variables, `only-dir` and "
        "`sub_path` honoured. A job that has the path in its own code does not find it. `read_only` is not enforced, nor is anything of "
        "gcsfuse but how it makes directories.",
        source="https://docs.cloud.google.com/run/docs/configuring/jobs/cloud-storage-volume-mounts",
    ),
    Fidelity(
        what="memory, CPU and GPU limits, accelerators",
        here="emulated",
        note="Refused where the tables of the pages refuse them; the words are assumed. Nothing of it is enforced when a job runs, and "
        "what is not given beside a GPU is not judged.",
        source="https://docs.cloud.google.com/run/docs/configuring/jobs/cpu",
        verified=False,
    ),
    Fidelity(
        what="labels, locations",
        here="emulated",
        note="By their form: any name of the form of a region is one. The words are assumed.",
        source="https://docs.cloud.google.com/resource-manager/docs/labels-overview",
        verified=False,
    ),
    Fidelity(
        what="volume in memory",
        here="emulated",
        note="A directory that all attempts of an execution share; on the platform it ends with the instance.",
        source="https://docs.cloud.google.com/run/docs/configuring/jobs/in-memory-volumes",
    ),
    Fidelity(
        what="secrets, Cloud SQL and NFS, several containers of a task, execution tokens",
        here="absent",
        note="Refused with UNIMPLEMENTED when the job is created.",
    ),
    Fidelity(
        what="jobs, executions, tasks: fields, counts, conditions, reasons",
        here="emulated",
        note="Texts of a time-out and of a success, and the code of a failed attempt, are assumed.",
        source=_REFERENCE,
        verified=False,
    ),
    Fidelity(
        what="operation of RunJob",
        here="emulated",
        note="Ends with the execution; a failed one with ABORTED (10), where FAILED_PRECONDITION (9) has been seen too, a cancelled one "
        "with CANCELLED, which is assumed.",
        source=_REFERENCE,
        verified=False,
    ),
    Fidelity(
        what="deletion of what runs",
        here="emulated",
        note="Refused with FAILED_PRECONDITION, for a job and for an execution. No page says what the service does: cancel "
        "first, and wait.",
        verified=False,
    ),
    Fidelity(
        what="etags, generations, validate_only, pages",
        here="emulated",
        note="Another version is refused with ABORTED; its words are assumed. Nothing that was deleted is kept, so "
        "`show_deleted` shows none.",
        source=_REFERENCE,
        verified=False,
    ),
    Fidelity(
        what="quotas",
        here="emulated",
        note="Jobs of a region, and GPUs that run at once; those that `ProjectState.quotas` names. The form of the text is that "
        "of other quotas.",
        source="https://docs.cloud.google.com/run/quotas",
        verified=False,
    ),
    Fidelity(
        what="permissions",
        here="emulated",
        note="Of whole projects (`ProjectState.granted`). Policies of jobs are kept and not enforced.",
        source="https://docs.cloud.google.com/run/docs/reference/iam/permissions",
    ),
    Fidelity(
        what="limit of 1 h or 12 h for tasks with a GPU",
        here="absent",
        note="The pages disagree about it, so 168 h are taken for every task.",
        source="https://docs.cloud.google.com/run/docs/configuring/task-timeout",
    ),
    Fidelity(
        what="maintenance of a GPU task",
        here="emulated",
        note="By `POST /_emulator/v1/maintenance`: SIGTERM, the grace, SIGKILL, the guide's line and reason, the next attempt at once.",
        source="https://docs.cloud.google.com/run/docs/configuring/jobs/gpu",
        verified=False,
    ),
    Fidelity(
        what="variables of a job",
        here="emulated",
        note="Those of the platform and of the job; `HARNESS_RUN_ID`, by which its processes are found, `HOME`, `PATH` and "
        "`TMPDIR` besides.",
        source="https://docs.cloud.google.com/run/docs/container-contract#jobs-env-vars",
    ),
)
"""Row by row, as for targets."""
