"""Notice as pods get it: when the API shows them terminating, the kubelet of a living node sends SIGTERM, and SIGKILL after the grace.

What the API shows is the request; that the signal arrived only the job can say. A node that is not ready delivers nothing.
Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from harness.history import NodeSeen, PodSeen
from harness.lineage.lives import Notice

Place = tuple[int, int]
"""Task and attempt."""


def notices_of_pods(seen: Iterable[PodSeen | NodeSeen]) -> Mapping[Place, Notice]:
    """By task and attempt, the notice that all its hosts got; none where one of its ranks got none.

    Of the pods that a rank has had in an attempt only the last one counts: the others were replaced.
    """
    is_ready: dict[str, bool] = {}
    last: dict[Place, dict[int, str]] = defaultdict(dict)
    known: set[str] = set()
    told: dict[str, Notice] = {}
    for event in sorted(seen, key=lambda event: event.t_s):
        if isinstance(event, NodeSeen):
            is_ready[event.name] = event.state == "True"
        elif event.role == "host" and event.phase in ("Pending", "Running"):
            if event.uid not in known:
                known.add(event.uid)
                last[event.task, event.attempt][event.rank] = event.uid
            if event.is_terminating and event.phase == "Running" and event.uid not in told and is_ready.get(event.node, True):
                told[event.uid] = Notice(t_s=event.t_s, cause="platform", grace_s=event.grace_s)
    found = {place: [told.get(uid) for uid in ranks.values()] for place, ranks in last.items()}
    whole = {place: [notice for notice in notices if notice is not None and notice.grace_s != 0] for place, notices in found.items()}
    return {place: _first(notices) for place, notices in whole.items() if notices and len(notices) == len(found[place])}


def _first(notices: list[Notice]) -> Notice:
    granted = [notice.grace_s for notice in notices if notice.grace_s is not None]
    return Notice(t_s=min(notice.t_s for notice in notices), cause="platform", grace_s=min(granted, default=None))
