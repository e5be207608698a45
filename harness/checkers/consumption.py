"""Hosts on provisioned capacity are tied to their request: without both annotations GKE reclaims their nodes when the booking is over."""

from collections.abc import Mapping, Sequence

from harness.checkers.cluster import admissions_of, unseen
from harness.checkers.evidence import Evidence, Ruling
from harness.history import NodeSeen, PodSeen, ProvisioningSeen
from harness.history.cluster import CLASS_ANNOTATION, CONSUME_ANNOTATION
from harness.scenario.expectations import ConsumesProvisioning
from harness.verdict import Finding, counted

CHECKER = "consumes-provisioning"

QUEUED_TAINT = "cloud.google.com/gke-queued:"
"""On nodes of pools with queued provisioning. Source: the guide for DWS flex-start on GKE (plan B nodes)."""

QUEUED_CLASS = "queued-provisioning.gke.io"
"""Requests of other classes book nothing: GKE takes their pods for strangers. Source: GKE's autoscaler, package queuedwrapper."""


def check(_expectation: ConsumesProvisioning, evidence: Evidence) -> Finding:
    """Judge every host that was bound to a node of a queued pool, or that belongs to an admission whose capacity was provisioned.

    A host that was never bound is judged too: Kueue writes the annotations before the pod is made, and without them no node comes for it.
    It proves nothing by itself, for it ran nowhere.
    """
    ruling = Ruling()
    ruling.doubt_lost(evidence.lost("cluster"))
    ran, waited = _on_provisioned(evidence), _waiting_for_provisioned(evidence)
    for pod in (*ran, *waited):
        _judge(pod, {event.name for event in evidence.of_type(ProvisioningSeen) if event.task == pod.task}, ruling)
    ruling.measures = {"hosts_judged": float(len(ran) + len(waited))}
    nothing = ""
    if not ran:
        nothing = "no host ran on provisioned capacity" if evidence.of_type(PodSeen) else unseen("no pod", evidence)
    return ruling.conclude(CHECKER, f"both annotations are on {counted(len(ran), 'host')} of provisioned capacity", nothing=nothing)


def _hosts(evidence: Evidence) -> Mapping[str, Sequence[PodSeen]]:
    """Each host by its uid, as it was seen before anything was healed or cleaned."""
    end_s = evidence.looked_s
    hosts: dict[str, list[PodSeen]] = {}
    for pod in evidence.of_type(PodSeen):
        if pod.role == "host" and pod.t_s <= end_s:
            hosts.setdefault(pod.uid, []).append(pod)
    return hosts


def _on_provisioned(evidence: Evidence) -> Sequence[PodSeen]:
    """Each host as it was last seen bound, once."""
    queued = {node.name for node in evidence.of_type(NodeSeen) if any(taint.startswith(QUEUED_TAINT) for taint in node.taints)}
    found: list[PodSeen] = []
    for seen in _hosts(evidence).values():
        bound = [pod for pod in seen if pod.node]
        if bound and (bound[-1].node in queued or _is_provisioned(bound[-1], (seen[0].t_s, seen[0].t_s), evidence)):
            found.append(bound[-1])
    return found


def _waiting_for_provisioned(evidence: Evidence) -> Sequence[PodSeen]:
    """Each host that was never bound and was there, if only for a while, in an admission whose capacity was provisioned."""
    found: list[PodSeen] = []
    for seen in _hosts(evidence).values():
        gone_s = next((pod.t_s for pod in seen if pod.is_terminating or pod.phase not in ("Pending", "Running")), float("inf"))
        if not any(pod.node for pod in seen) and _is_provisioned(seen[-1], (seen[0].t_s, gone_s), evidence):
            found.append(seen[-1])
    return found


def _is_provisioned(pod: PodSeen, between_s: tuple[float, float], evidence: Evidence) -> bool:
    """Whether an admission with provisioned capacity was seen at any time between two moments, both included."""
    first_s, last_s = between_s
    return any(
        admission.is_provisioned and admission.admitted_s <= last_s and (admission.ended_s is None or first_s <= admission.ended_s)
        for admission in admissions_of(pod.task, evidence)
    )


def _judge(pod: PodSeen, requests: set[str], ruling: Ruling) -> None:
    where = f"on {pod.node} of {pod.pool or 'no pool'}" if pod.node else "bound to no node"
    who = f"task {pod.task} attempt {pod.attempt}: host {pod.rank} (pod {pod.name}, {where})"
    carried = {CONSUME_ANNOTATION: pod.provisioning_request, CLASS_ANNOTATION: pod.provisioning_class}
    missing = [name for name, value in carried.items() if not value]
    if missing:
        what = "ran on" if pod.node else "waited for"
        ruling.broken.append(f"{who} {what} provisioned capacity without {' and '.join(missing)}")
    elif pod.provisioning_class != QUEUED_CLASS:
        ruling.broken.append(f"{who} names class {pod.provisioning_class}, and {QUEUED_CLASS} is the one that keeps its node")
    elif not requests:
        ruling.doubts.append(f"{who} names {pod.provisioning_request}, and no request of task {pod.task} was seen at all")
    elif pod.provisioning_request not in requests:
        ruling.broken.append(f"{who} names {pod.provisioning_request}, and no such request was seen: {', '.join(sorted(requests))}")
    else:
        ruling.facts.append(f"{who} consumes {pod.provisioning_request} of class {pod.provisioning_class}")
