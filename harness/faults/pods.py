"""Pods that are deleted or evicted."""

from collections.abc import Callable, Iterable, Sequence

from harness.capabilities import PodHost, PodName
from harness.faults.active import OneWay, Scene
from harness.history import Event
from harness.history.cluster import PodSeen
from harness.scenario.cluster_faults import DeletePods, EvictPods, Part


class PodsAwaited:
    """Pods by their uid, until each was seen to have ended or to be gone: its successor of the same name is another pod."""

    def __init__(self, pods: Iterable[PodName]) -> None:
        self._names = {pod.uid: pod.name for pod in pods}
        self._ends: dict[str, str] = {}

    def see(self, events: Iterable[Event]) -> None:
        """Take in what is new."""
        for event in events:
            if isinstance(event, PodSeen) and event.uid in self._names and event.uid not in self._ends:
                if event.phase == "Deleted":
                    self._ends[event.uid] = "is gone"
                elif event.phase in ("Succeeded", "Failed"):
                    self._ends[event.uid] = f"ended ({event.reason or event.phase})"

    @property
    def count(self) -> int:
        """How many they are."""
        return len(self._names)

    @property
    def have_ended(self) -> bool:
        """Whether none is left."""
        return len(self._ends) == len(self._names)

    def told(self) -> str:
        """What became of each."""
        return "; ".join(f"pod {self._names[uid]} ({uid}) {end}" for uid, end in self._ends.items())

    def left(self) -> str:
        """Those that have not ended."""
        return "; ".join(f"pod {name} ({uid}) has not ended" for uid, name in self._names.items() if uid not in self._ends)


class ActivePodRemoval(OneWay):
    """Each pod of the victim is removed by ``remove``; seen when the last of them has ended or is gone, by their uids."""

    lasting = "nothing to heal: a pod that is gone stays gone, its controller decides what comes next"

    def __init__(self, scene: Scene, part: Part, remove: Callable[[PodHost, PodName], None], verb: str) -> None:
        assert isinstance(scene.target, PodHost)
        self._scene, self._target, self._part, self._remove, self._verb = scene, scene.target, part, remove, verb
        self._awaited: PodsAwaited | None = None

    def inject(self) -> str:
        """See ``ActiveFault``."""
        with self._scene.injecting():
            pods = self._target.pods_of(self._scene.victim, self._part)
            for pod in pods:
                self._remove(self._target, pod)
        self._awaited = PodsAwaited(pods)
        return f"{self._verb} {', '.join(f'{pod.name} ({pod.uid})' for pod in pods)}"

    def observe(self, events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        if self._awaited is None:
            return ""
        self._awaited.see(events)
        return self._awaited.told() if self._awaited.have_ended else ""


def deletion(scene: Scene, fault: DeletePods) -> ActivePodRemoval:
    """Deletes through the API, with the grace of the fault or the pod's own."""
    grace = "its own grace" if fault.grace_s is None else f"{fault.grace_s} s of grace"
    return ActivePodRemoval(scene, fault.part, lambda target, pod: target.delete_pod(pod, fault.grace_s), f"deleted, with {grace}:")


def eviction(scene: Scene, fault: EvictPods) -> ActivePodRemoval:
    """Evicts through the Eviction API."""
    return ActivePodRemoval(scene, fault.part, lambda target, pod: target.evict_pod(pod), "evicted:")
