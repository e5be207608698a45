"""Hosts on provisioned capacity are tied to their request: without both annotations GKE reclaims their nodes when the booking is over."""

from collections.abc import Sequence

from harness.checkers.cluster import admissions_of, looked_s, unseen
from harness.checkers.evidence import Evidence, Ruling
from harness.history import NodeSeen, PodSeen, ProvisioningSeen
from harness.history.cluster import CLASS_ANNOTATION, CONSUME_ANNOTATION
from harness.scenario.expectations import ConsumesProvisioning
from harness.verdict import Finding

CHECKER = "consumes-provisioning"

QUEUED_TAINT = "cloud.google.com/gke-queued:"
"""On nodes of pools with queued provisioning. Source: the guide for DWS flex-start on GKE (plan B nodes)."""

QUEUED_CLASS = "queued-provisioning.gke.io"
"""Requests of other classes book nothing: GKE takes their pods for strangers. Source: GKE's autoscaler, package queuedwrapper."""


def check(_expectation: ConsumesProvisioning, evidence: Evidence) -> Finding:
    """Judge every host that was bound to a node of a queued pool, or that belongs to an admission whose capacity was provisioned."""
    ruling = Ruling()
    ruling.doubt_lost(evidence.lost("cluster"))
    pods = _provisioned(evidence)
    for pod in pods:
        _judge(pod, {event.name for event in evidence.of_type(ProvisioningSeen) if event.task == pod.task}, ruling)
    ruling.measures = {"hosts_judged": float(len(pods))}
    nothing = ""
    if not pods:
        nothing = "no host ran on provisioned capacity" if evidence.of_type(PodSeen) else unseen("no pod")
    return ruling.conclude(CHECKER, f"{len(pods)} hosts on provisioned capacity carry both annotations", nothing=nothing)


def _provisioned(evidence: Evidence) -> Sequence[PodSeen]:
    """Each host as it was last seen bound, once."""
    queued = {node.name for node in evidence.of_type(NodeSeen) if any(taint.startswith(QUEUED_TAINT) for taint in node.taints)}
    end_s = looked_s(evidence)
    bound = {pod.uid: pod for pod in evidence.of_type(PodSeen) if pod.role == "host" and pod.node and pod.t_s <= end_s}
    return [pod for pod in bound.values() if pod.node in queued or _is_of_provisioned_admission(pod, evidence)]


def _is_of_provisioned_admission(pod: PodSeen, evidence: Evidence) -> bool:
    first_s = next(event.t_s for event in evidence.of_type(PodSeen) if event.uid == pod.uid)
    ended_s = float("inf")
    return any(
        admission.is_provisioned and admission.admitted_s <= first_s <= (admission.ended_s or ended_s)
        for admission in admissions_of(pod.task, evidence)
    )


def _judge(pod: PodSeen, requests: set[str], ruling: Ruling) -> None:
    who = f"task {pod.task} attempt {pod.attempt}: host {pod.rank} (pod {pod.name}, on {pod.node} of {pod.pool or 'no pool'})"
    carried = {CONSUME_ANNOTATION: pod.provisioning_request, CLASS_ANNOTATION: pod.provisioning_class}
    missing = [name for name, value in carried.items() if not value]
    if missing:
        ruling.broken.append(f"{who} ran on provisioned capacity without {' and '.join(missing)}")
    elif pod.provisioning_class != QUEUED_CLASS:
        ruling.broken.append(f"{who} names class {pod.provisioning_class}, and {QUEUED_CLASS} is the one that keeps its node")
    elif not requests:
        ruling.doubts.append(f"{who} names {pod.provisioning_request}, and no request of task {pod.task} was seen at all")
    elif pod.provisioning_request not in requests:
        ruling.broken.append(f"{who} names {pod.provisioning_request}, and no such request was seen: {', '.join(sorted(requests))}")
    else:
        ruling.facts.append(f"{who} consumes {pod.provisioning_request} of class {pod.provisioning_class}")
