"""New ProvisioningRequests: for which task each is, and which script it gets."""

from collections import Counter
from dataclasses import dataclass
from typing import Literal

from harness.scenario import Cluster, ProvisioningScript
from harness.targets.kubernetes.api import Object, uid_of
from harness.targets.kubernetes.dws_course import Course
from harness.targets.kubernetes.dws_owners import Owner, Owners
from harness.targets.kubernetes.dws_requests import asked_by, is_queued
from harness.targets.kubernetes.dws_served import Served

ASKED_S = 1.0
"""A request and its workload come by different watches, a moment apart; one whose workload was not seen by then is asked about."""


@dataclass(slots=True)
class _Waiting:
    """A request of which it is not known for whom it is; ``ask_s`` is when that is asked next."""

    thing: Object
    seen_s: float
    ask_s: float


class Intake:
    """Holds requests until it is known for whom they are, however long that takes: another's script would be another run."""

    def __init__(self, cluster: Cluster, owners: Owners, pool: str) -> None:
        self._cluster, self._owners, self._pool = cluster, owners, pool
        self._waiting: dict[str, _Waiting] = {}
        self._known: set[str] = set()
        self._used: Counter[int] = Counter()

    def see(self, thing: Object, now_s: float) -> None:
        """Take note of a request; one of another class, or one that was seen before, is passed over."""
        uid = uid_of(thing)
        if uid in self._waiting:
            self._waiting[uid].thing = thing
        elif is_queued(thing) and uid not in self._known:
            self._known.add(uid)
            self._waiting[uid] = _Waiting(thing, now_s, now_s + ASKED_S)

    def forget(self, uid: str) -> None:
        """A request was deleted."""
        self._waiting.pop(uid, None)

    def ready(self, now_s: float) -> list[Served]:
        """Requests of which it is known by now for whom they are.

        Raises:
            ApiError: When the API server refuses to say.
        """
        found: list[Served] = []
        for uid, waiting in [*self._waiting.items()]:
            owner = self._owner_of(waiting, now_s)
            if owner != "unknown":
                del self._waiting[uid]
                course = Course(asked_by(waiting.thing), self._script_for(owner), self._cluster, self._pool, seen_s=waiting.seen_s)
                found.append(Served(course))
        return found

    def _owner_of(self, waiting: _Waiting, now_s: float) -> Owner:
        task = self._owners.known(waiting.thing)
        if task is not None or now_s < waiting.ask_s:
            return "unknown" if task is None else task
        waiting.ask_s = now_s + ASKED_S
        return self._owners.ask(waiting.thing)

    def _script_for(self, owner: int | Literal["stranger"]) -> ProvisioningScript:
        """The first, second, … of a task; the last holds for those after it. Another job's request is granted."""
        if owner == "stranger":
            return ProvisioningScript()
        scripts = self._cluster.provisioning
        self._used[owner] += 1
        return scripts[min(self._used[owner], len(scripts)) - 1]
