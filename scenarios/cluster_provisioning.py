"""What becomes of a request for capacity, as Google's autoscaler answers it, and what Kueue makes of each answer.

In all of them on-demand is taken, so that the job goes to dws.
"""

from harness.scenario import Cluster, Injection, Phase
from harness.scenario.cluster_faults import RestartComponent, RevokeCapacity
from harness.scenario.expectations import (
    AdmittedTo,
    ChargesRetries,
    ConsumesProvisioning,
    IntactCheckpoints,
    SubmittedOnce,
    WorkloadEnds,
)
from harness.scenario.triggers import AtStep, OnCondition
from scenarios.cluster_jobs import DWS, LONG_POD, TAKEN, goes_on, on_cluster, runs_through, script

GRANTED = Phase(state="granted")
SHORT_BACKOFF = "scenarios/manifests/queues_short_backoff.yaml"

WATCHED_S = 45.0
"""So long after its execution has begun a run is ended in which nothing more will happen."""

QUIET_S = 20.0
"""For so long of it nothing must have happened: longer than any of the waits here after which something does."""

CONSUMES = (*runs_through(DWS), ConsumesProvisioning())


def failed(reason: str) -> Phase:
    """A request that fails for good."""
    return Phase(state="failed", reason=reason)


GRANTED_IN_THE_END = (
    on_cluster(
        "a-request-that-waits-out-a-stockout-is-granted-without-being-made-again",
        "GKE: a stockout is no failure: accepted, not provisioned, ResourcePoolExhausted, for as long as the queue lasts",
        TAKEN,
        expects=CONSUMES,
        cluster=Cluster(provisioning=(script(Phase(state="stockout"), Phase(state="granted", after_s=8.0)),)),
    ),
    on_cluster(
        "a-request-that-waits-for-project-quota-is-granted-when-there-is-some",
        "GKE: QuotaExceeded is told while the request waits, and wins over a stockout",
        TAKEN,
        expects=CONSUMES,
        cluster=Cluster(provisioning=(script(Phase(state="quota-exceeded"), Phase(state="granted", after_s=8.0)),)),
    ),
    on_cluster(
        "a-request-that-fails-is-made-again-and-the-job-starts-on-the-next",
        "case 49: a pool at its maximum size failed the request, which nobody made again",
        TAKEN,
        expects=CONSUMES,
        cluster=Cluster(queues=SHORT_BACKOFF, provisioning=(script(failed("NodepoolSizeReached")), script(GRANTED))),
        tags=("case-49",),
    ),
    on_cluster(
        "a-request-that-fails-twice-is-made-a-third-time",
        "case 50: after the second failure no request was made",
        TAKEN,
        expects=CONSUMES,
        cluster=Cluster(
            queues=SHORT_BACKOFF,
            provisioning=(script(failed("QueuingInfeasibleNoCapacity")), script(failed("WaitTimeExceeded")), script(GRANTED)),
        ),
        tags=("case-50",),
    ),
    on_cluster(
        "a-restart-of-kueue-while-a-request-waits-loses-neither-request-nor-place",
        "Kueue finds the request by its name, and makes no second one",
        TAKEN,
        Injection(fault=RestartComponent(component="kueue"), at=OnCondition(of="provisioning-request", condition="Accepted")),
        expects=CONSUMES,
        cluster=Cluster(provisioning=(script(Phase(state="stockout"), Phase(state="granted", after_s=10.0)),)),
    ),
    on_cluster(
        "a-booking-that-expires-takes-nothing-from-a-job-that-carries-its-annotations",
        "case 61: nodes are reclaimed when the booking is over and no pod is tied to its request; Kueue ignores it once admitted",
        TAKEN,
        expects=CONSUMES,
        workload=LONG_POD,
        cluster=Cluster(booking_s=5.0),
        tags=("case-61",),
    ),
    on_cluster(
        "a-booking-that-expires-before-the-job-is-admitted-is-made-again",
        "Kueue: BookingExpired of a workload that is not admitted is a failure like others; so finds it who was away while it was booked",
        TAKEN,
        expects=CONSUMES,
        cluster=Cluster(queues=SHORT_BACKOFF, provisioning=(script(GRANTED, Phase(state="booking-expired", after_s=0.0)), script(GRANTED))),
    ),
)

NEVER_GRANTED = (
    on_cluster(
        "a-request-that-fails-to-the-last-deactivates-the-workload-for-good",
        "case 53: when the retries of the check are used up Kueue rejects the workload, and nothing queues it again by itself",
        TAKEN,
        expects=(AdmittedTo(flavors=((),)), WorkloadEnds(state="deactivated"), SubmittedOnce(), ChargesRetries()),
        cluster=Cluster(queues=SHORT_BACKOFF, provisioning=(script(failed("InternalErrorResizeRequestFailed")),)),
        within_budget=False,
        deadline_s=WATCHED_S,
        tags=("case-53",),
    ),
    on_cluster(
        "a-stockout-of-dws-leaves-the-job-pending-and-says-why",
        "finding 8: flex-start that is dry has nothing to fall back to: whoever waits must watch how long",
        TAKEN,
        expects=(
            AdmittedTo(flavors=((),), watched_s=QUIET_S),
            WorkloadEnds(state="pending", message="Waiting for resources", watched_s=QUIET_S),
            SubmittedOnce(),
        ),
        cluster=Cluster(provisioning=(script(Phase(state="stockout")),)),
        within_budget=False,
        deadline_s=WATCHED_S,
    ),
    on_cluster(
        "a-request-that-is-never-answered-leaves-the-job-pending",
        "GKE: an accepted request may wait for seven days",
        TAKEN,
        expects=(AdmittedTo(flavors=((),), watched_s=QUIET_S), WorkloadEnds(state="pending", watched_s=QUIET_S), SubmittedOnce()),
        cluster=Cluster(provisioning=(script(Phase(state="never")),)),
        within_budget=False,
        deadline_s=WATCHED_S,
    ),
)

REVOKED = (
    on_cluster(
        "capacity-that-is-revoked-stops-the-job-for-good-with-its-checkpoint-intact",
        "finding 9: Kueue takes CapacityRevoked for a rejection even of an admitted workload, and deactivates it",
        TAKEN,
        Injection(fault=RevokeCapacity(), at=AtStep(step=23)),
        expects=(
            IntactCheckpoints(),
            AdmittedTo(flavors=((DWS,),)),
            ConsumesProvisioning(),
            WorkloadEnds(state="deactivated"),
            SubmittedOnce(),
            ChargesRetries(),
        ),
        workload=LONG_POD,
        within_budget=False,
        deadline_s=90.0,
    ),
    on_cluster(
        "a-job-whose-capacity-was-revoked-resumes-on-new-capacity-when-somebody-activates-it",
        "finding 9: the end of a flex-start run is a permanent stop, which takes a person or a controller to undo",
        TAKEN,
        Injection(fault=RevokeCapacity(reactivate_s=5.0), at=AtStep(step=23)),
        expects=(*goes_on(DWS, DWS, attempts_max=2), ConsumesProvisioning()),
        workload=LONG_POD,
    ),
    on_cluster(
        "a-run-longer-than-the-maximum-run-time-is-stopped-for-good",
        "GKE: flex-start nodes live for seven days at most; finding 9: and then the workload is deactivated",
        TAKEN,
        expects=(IntactCheckpoints(), AdmittedTo(flavors=((DWS,),)), WorkloadEnds(state="deactivated"), SubmittedOnce(), ChargesRetries()),
        workload=LONG_POD,
        cluster=Cluster(booking_s=4.0, max_run_s=10.0),
        within_budget=False,
        deadline_s=90.0,
    ),
)

SCENARIOS = (*GRANTED_IN_THE_END, *NEVER_GRANTED, *REVOKED)
