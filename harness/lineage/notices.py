"""Notice as pods get it: when the API shows them terminating, the kubelet of a living node sends SIGTERM, and SIGKILL after the grace.

What the API shows is the request; that the signal arrived only the job can say. A node that is not ready delivers nothing.
Source: https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from harness.history import NodeSeen, PodSeen
from harness.lineage.lives import Notice

Place = tuple[int, int]
"""Task and attempt."""


def notices_of_pods(seen: Iterable[PodSeen | NodeSeen]) -> Mapping[Place, Notice]:
    """By task and attempt, the notice that all its hosts got; none where one of its ranks got none.

    Of the pods that a rank has had in an attempt only the last one counts: the others were replaced.
    """
    told = _Told()
    for event in sorted(seen, key=lambda event: event.t_s):
        if isinstance(event, NodeSeen):
            told.see_node(event)
        elif event.role == "host":
            told.see_host(event)
    found = {place: [told.notices.get(uid) for uid in ranks.values()] for place, ranks in told.last.items()}
    whole = {place: [notice for notice in notices if notice is not None and notice.grace_s != 0] for place, notices in found.items()}
    return {place: _first(notices) for place, notices in whole.items() if notices and len(notices) == len(found[place])}


@dataclass(slots=True)
class _Told:
    """Who was told to go, as far as the history has been read.

    Attributes:
        notices: By the uid of the pod.
        last: The newest pod of each rank, by place and rank.
    """

    notices: dict[str, Notice] = field(default_factory=dict)
    last: dict[Place, dict[int, str]] = field(default_factory=lambda: defaultdict(dict))
    _known: set[str] = field(default_factory=set)
    _is_ready: dict[str, bool] = field(default_factory=dict)
    _leaving: dict[str, str] = field(default_factory=dict)

    def see_node(self, event: NodeSeen) -> None:
        """A node that goes takes the rest of their grace from the pods that are leaving it: what they had was none."""
        self._is_ready[event.name] = event.state == "True"
        if event.state != "True":
            for uid in [uid for uid, node in self._leaving.items() if node == event.name]:
                del self.notices[uid], self._leaving[uid]

    def see_host(self, event: PodSeen) -> None:
        """A pod that runs and is told to go has notice, until it has gone."""
        if event.phase not in ("Pending", "Running") or event.exit_code is not None:
            self._leaving.pop(event.uid, None)
            return
        if event.uid not in self._known:
            self._known.add(event.uid)
            self.last[event.task, event.attempt][event.rank] = event.uid
        is_told = event.is_terminating and event.phase == "Running" and event.uid not in self.notices
        if is_told and self._is_ready.get(event.node, True):
            self.notices[event.uid] = Notice(t_s=event.t_s, cause="platform", grace_s=event.grace_s)
            self._leaving[event.uid] = event.node


def _first(notices: list[Notice]) -> Notice:
    granted = [notice.grace_s for notice in notices if notice.grace_s is not None]
    return Notice(t_s=min(notice.t_s for notice in notices), cause="platform", grace_s=min(granted, default=None))
