"""What every target that plays Cloud Run jobs leaves out alike, and the pages that say how the platform does it."""

from harness.capabilities import Fidelity

CONTRACT = "https://docs.cloud.google.com/run/docs/container-contract"
TIMEOUT = "https://docs.cloud.google.com/run/docs/configuring/task-timeout"
MAX_RETRIES = "https://docs.cloud.google.com/run/docs/configuring/max-retries"

RETRIES = Fidelity(
    what="retries: attempt + 1 after a non-zero exit or a signal, up to max_retries, at once",
    here="emulated",
    note="The order is kept; the platform may take seconds to minutes to place the next attempt, so recovery times are lower bounds.",
    source=MAX_RETRIES,
)

GRACE_OF_JOBS = Fidelity(
    what="grace of jobs at timeout and at cancel",
    here="emulated",
    note="Taken from the text about instances; no document says it for jobs.",
    source=f"{CONTRACT}#instance-shutdown",
    verified=False,
)

ENDED_GRACE = Fidelity(
    what="grace that a fault makes to be over (end-grace)",
    here="emulated",
    note="The platform ends it by its clock alone. It shows what a death at that moment leaves, and not how far the job would have come "
    "in the seconds that it is granted.",
    source=f"{CONTRACT}#instance-shutdown",
    verified=False,
)

OVERLAP = Fidelity(
    what="overlap of two attempts of a task",
    here="emulated",
    note="The platform promises no mutual exclusion of attempts; how long an abandoned one lives is the scenario's choice.",
    source="https://docs.cloud.google.com/run/docs/create-jobs",
    verified=False,
)
