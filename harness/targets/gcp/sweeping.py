"""Finds what runs have left on a project, and removes what is a known run's: for when the harness that made it cannot do it any more.

A label is a word that anybody may use, and a folder is anybody's. So a thing is removed only when it carries the label of the owners
(``harness-chaos=allowed``) and that of one run, and that run is known: written down here, or named by a person. All else is told, and left.
"""

import contextlib
from collections.abc import Callable, Iterator
from enum import StrEnum

from harness.errors import HarnessError
from harness.targets.gcp.bucket import require_allowed_bucket
from harness.targets.gcp.calling import Caller
from harness.targets.gcp.connection import Clients
from harness.targets.gcp.footprint import Footprint, footprints, read_footprint, remove_footprint
from harness.targets.gcp.leftover_search import Leftover, LeftoverSearch
from harness.targets.gcp.lock_holders import Holder
from harness.targets.gcp.object_removal import remove_objects
from harness.targets.gcp.place import Place
from harness.targets.gcp.project_holding import lock_of
from harness.targets.gcp.run_jobs import remove_run_job
from harness.targets.gcp.run_names import run_label
from harness.targets.gcp.undoing import ProjectRestorer
from harness.undo import DeleteInstance, DeleteNodePool


class Became(StrEnum):
    """What became of a leftover."""

    REMOVED = "removed"
    ALONE = "left alone"
    FAILED = "failed"


class Sweep:
    """Of one place."""

    def __init__(self, clients: Clients, caller: Caller, place: Place) -> None:
        self._clients, self._caller, self._place = clients, caller, place
        self._lock = lock_of(place, clients, caller)
        self._is_held = False

    @contextlib.contextmanager
    def held(self, *, keeps: Callable[[], bool]) -> Iterator[Holder | None]:
        """Have the project while things are removed, by a lock as runs take it; whose lock was there, who cannot free it any more.

        Args:
            keeps: See ``harness.targets.gcp.project_holding.project_held``.

        Raises:
            LockedError: When somebody has it.
            CallError: When the bucket does not answer, or refuses.
        """
        dead = self._lock.written()
        self._lock.take("", over_dead=True)
        self._is_held = True
        try:
            yield dead
        finally:
            self._is_held = False
            if not keeps():
                self._lock.free()

    def _keep(self) -> None:
        if self._is_held:
            self._lock.keep()

    def require_allowed(self) -> None:
        """See that the owner of the bucket allows us anything in it, and that of the bucket for locks.

        Raises:
            NotAllowedError: When he does not.
            CallError: When it cannot be asked for.
        """
        for bucket in dict.fromkeys((self._place.bucket, self._place.locks_in)):
            require_allowed_bucket(self._clients, self._caller, bucket)

    def find(self) -> list[Leftover]:
        """Everything that says it is a run's, jobs first; nothing is changed.

        Raises:
            CallError: When something cannot be listed: then nobody knows what is left.
        """
        return LeftoverSearch(self._clients, self._caller, self._place).find()

    def remove(self, left: Leftover) -> str:
        """Remove one, and say so; harmless twice.

        Raises:
            HarnessError: When it cannot be removed, or carries another run's label by now.
        """
        restorer = ProjectRestorer(self._clients, self._caller, self._place.project)
        match left.kind:
            case "job":
                remove_run_job(self._clients, self._caller, self._place.project, left.name)
            case "objects":
                remove_objects(self._clients, self._caller, self._place.bucket, left.run_id)
            case "node-pool":
                restorer.restore((DeleteNodePool(name=left.name, run_id=left.run_id),))
            case _:
                zone, _, name = left.name.partition("/zones/")[2].partition("/instances/")
                restorer.restore((DeleteInstance(zone=zone, name=name, run_id=left.run_id),))
        return f"removed {left}"

    def sweep(self, *, known: frozenset[str], living: frozenset[str]) -> Iterator[tuple[Leftover, str, Became]]:
        """Remove what known runs have left, but living ones; each thing with what became of it.

        The objects of a run stay for as long as a job of it does: nothing is deleted from under a job that may run.

        Args:
            known: Ids of runs whose things may go.
            living: Ids of runs that go on.

        Raises:
            CallError: When the project cannot be asked what there is.
            LockLostError: When the project is not ours any more.
        """
        ids = {run_label(run_id) for run_id in known}
        alive = {run_label(run_id) for run_id in living}
        stay: set[str] = set()
        for left in self.find():
            label = run_label(left.run_id)
            if label in alive:
                continue
            self._keep()
            said, became = self._settle(left, is_known=label in ids, is_in_use=label in stay)
            if became is not Became.REMOVED:
                stay.add(label)
            elif left.kind == "objects":
                _forget(left.run_id, self._place)
            yield left, said, became

    def _settle(self, left: Leftover, *, is_known: bool, is_in_use: bool) -> tuple[str, Became]:
        alone = left.alone
        if not alone and not is_known:
            alone = f"run {left.run_id} is not known here; if it is yours and over, remove what it has left with --run {left.run_id}"
        if not alone and left.kind == "objects" and is_in_use:
            alone = "something of that run is there still, and may use them"
        if alone:
            return f"{left}: left alone: {alone}", Became.ALONE
        try:
            return self.remove(left), Became.REMOVED
        except HarnessError as error:
            return str(error), Became.FAILED


def known_runs(place: Place, emulator: str) -> frozenset[str]:
    """Ids of the runs that are written down here to have made something at this very place."""
    return frozenset(footprint.run_id for footprint in footprints() if _is_of(footprint, place) and footprint.emulator == emulator)


def _forget(run_id: str, place: Place) -> None:
    """All of it at this place is removed; where there is a cluster, or another place, it stays written down."""
    footprint = read_footprint(run_id)
    if footprint is not None and _is_of(footprint, place) and not footprint.is_of_cluster:
        remove_footprint(run_id)


def _is_of(footprint: Footprint, place: Place) -> bool:
    return (footprint.place.parent, footprint.place.bucket) == (place.parent, place.bucket)
