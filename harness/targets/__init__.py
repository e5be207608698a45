"""The targets by name. Each is imported only when it is asked for, so that none needs the others' dependencies."""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.capabilities import LongEnding, Target
from harness.clock import Clock, SystemClock
from harness.errors import UnknownNameError
from harness.store import ENDING_S_MAX
from harness.undo import RestoreCluster, RestoreProject, Undo
from harness.undo import perform as perform_here


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """Whether a target can be used on this machine; if not, why, and what to do."""

    is_available: bool
    reason: str = ""
    advice: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftElsewhere:
    """A run of which a target has something written down, wherever its directory is; ``directory``: where it was, when that is known."""

    target: str
    run_id: str
    directory: Path | None


Say = Callable[[str], None]
"""Told of each phase of what takes a while, in a line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    create: Callable[[Clock], Target]
    availability: Callable[[], Availability]
    left_behind: Callable[[str], list[str]]
    remove_left_behind: Callable[[str, Clock], list[str]]
    bring_up: Callable[[Clock, Say], None] | None = None
    take_down: Callable[[Say], None] | None = None


def create(name: str, clock: Clock) -> Target:
    """A target for one run.

    Raises:
        UnknownNameError: When no target is named so.
    """
    return _entry(name).create(clock)


def availability(name: str) -> Availability:
    """Whether a target can be used here; starts nothing.

    Raises:
        UnknownNameError: When no target is named so.
    """
    return _entry(name).availability()


@contextlib.contextmanager
def brought_up(name: str, clock: Clock, say: Say) -> Iterator[None]:
    """Have a target here for a while: what was not here before is gone afterwards. A Docker engine, once started, stays.

    Raises:
        UnknownNameError: When no target is named so.
        HarnessError: When it cannot be brought up.
    """
    entry = _entry(name)
    if entry.bring_up is None or entry.availability().is_available:
        yield
        return
    entry.bring_up(clock, say)
    try:
        yield
    finally:
        if entry.take_down is not None:
            entry.take_down(say)


def left_behind(run_id: str) -> list[str]:
    """What a run has left on any target, one line each; empty when the run is over and clean."""
    from harness.protocol.barrier import find_socket_directories

    found = [line for entry in _TARGETS.values() for line in entry.left_behind(run_id)]
    return found + [f"socket directory {path}" for path in find_socket_directories(run_id)]


def is_left_on(name: str, run_id: str) -> bool:
    """Whether a run has left anything on that target."""
    return bool(_entry(name).left_behind(run_id))


def left_elsewhere() -> list[LeftElsewhere]:
    """The runs that targets have written down, whichever runs directory they are of: living ones, too."""
    from harness.targets.kubernetes.leftovers import recorded_directories

    recorded = recorded_directories()
    return [LeftElsewhere(target="kind", run_id=run_id, directory=directory) for run_id, directory in recorded.items()]


def ending_s_max(name: str, clock: Clock) -> float:
    """How long the end of a run may take on a target, with all that is to be undone: as long as it says."""
    target = create(name, clock)
    return target.ending_s_max() if isinstance(target, LongEnding) else ENDING_S_MAX


def is_in_use(name: str) -> bool:
    """Whether a run has a target for itself just now; never, where runs do not take turns."""
    from harness.kind.cluster import CLUSTER_NAME
    from harness.kind.lock import Turn

    return name == "kind" and Turn(CLUSTER_NAME).is_taken()


def remove_left_behind(run_id: str, clock: Clock | None = None, *, only: str = "") -> list[str]:
    """End and remove it all, or what is on the target ``only``; one line for each thing done."""
    from harness.protocol.barrier import remove_socket_directories

    entries = [_entry(only)] if only else _TARGETS.values()
    removed = [line for entry in entries for line in entry.remove_left_behind(run_id, clock or SystemClock())]
    return removed + [f"removed socket directory {path}" for path in remove_socket_directories(run_id)]


def perform(undo: Undo, clock: Clock, *, is_ours: bool = False) -> str:
    """Do an undo, here, in the cluster or in the project, and say what was done and how that was seen; doing it twice is harmless.

    Args:
        undo: What is owed.
        clock: For waiting until it is seen.
        is_ours: Whether it is of the run that this process is making, which has the cluster to itself; else we wait until nobody has.

    Raises:
        BrokenHarnessError: When it could not be done, or was not seen in time.
    """
    if isinstance(undo, RestoreCluster):
        from harness.targets.kubernetes.undoing import restore

        return restore(undo, clock, is_ours=is_ours)
    if isinstance(undo, RestoreProject):
        from harness.targets.gcp.undoing import restore as restore_project

        return restore_project(undo, clock)
    return perform_here(undo)


def missing_here() -> list[tuple[str, str]]:
    """Capabilities of the targets by name, each with why it is missing on this machine; empty: it is here."""
    from harness.targets.docker.presence import image_problem
    from harness.targets.local.stops import stops_available
    from harness.targets.local.storage_rules import interposer_available

    return [
        ("storage faults while running", interposer_available()),
        ("stops at operations", stops_available()),
        ("image of jobs in docker", image_problem()),
    ]


def _create_local(clock: Clock) -> Target:
    from harness.targets.local import LocalTarget

    return LocalTarget(clock)


def _local_availability() -> Availability:
    if os.name == "posix":
        return Availability(is_available=True)
    return Availability(
        is_available=False, reason=f"it needs POSIX processes and signals, not {os.name!r}", advice="use Linux, macOS or WSL"
    )


def _find_local_leftovers(run_id: str) -> list[str]:
    from harness.targets.local import leftovers

    return leftovers.left_behind(run_id)


def _remove_local_leftovers(run_id: str, clock: Clock) -> list[str]:
    from harness.targets.local import leftovers

    return leftovers.remove_left_behind(run_id, clock)


def _create_docker(clock: Clock) -> Target:
    from harness.targets.docker.target import DockerTarget

    return DockerTarget(clock)


def _docker_availability() -> Availability:
    from harness.targets.docker.presence import problem_and_advice

    problem, advice = problem_and_advice()
    return Availability(is_available=not problem, reason=problem, advice=advice)


def _find_docker_leftovers(run_id: str) -> list[str]:
    from harness.targets.docker import leftovers

    return leftovers.left_behind(run_id)


def _remove_docker_leftovers(run_id: str, clock: Clock) -> list[str]:
    from harness.targets.docker import leftovers

    del clock
    return leftovers.remove_left_behind(run_id)


def _create_kind(clock: Clock) -> Target:
    from harness.targets.kubernetes.target import KubernetesTarget

    return KubernetesTarget(clock)


def _bring_docker_up(clock: Clock, say: Say) -> None:
    from harness.kind.engine import start_engine

    start_engine(clock, say)


def _bring_kind_up(clock: Clock, say: Say) -> None:
    from harness.kind.creation import Wish, bring_up
    from harness.kind.materials import ImageSource

    bring_up(Wish(topology=None, source=ImageSource.AUTO), clock, say)


def _take_kind_down(say: Say) -> None:
    from harness.clock import SystemClock
    from harness.kind.removal import take_down

    take_down(SystemClock(), say)


def _kind_availability() -> Availability:
    from harness.targets.kubernetes.presence import problem_and_advice

    problem, advice = problem_and_advice()
    return Availability(is_available=not problem, reason=problem, advice=advice)


def _find_kind_leftovers(run_id: str) -> list[str]:
    from harness.targets.kubernetes import leftovers

    return leftovers.left_behind(run_id)


def _remove_kind_leftovers(run_id: str, clock: Clock) -> list[str]:
    from harness.targets.kubernetes import leftovers

    return leftovers.remove_left_behind(run_id, clock)


def _create_gcp(clock: Clock) -> Target:
    from harness.targets.gcp.presence import is_of_cluster

    if is_of_cluster():
        from harness.targets.gke.target import ProjectClusterTarget

        return ProjectClusterTarget(clock)
    from harness.targets.gcp.target import GcpTarget

    return GcpTarget(clock)


def _gcp_availability() -> Availability:
    from harness.targets.gcp.presence import problem_and_advice

    problem, advice = problem_and_advice()
    return Availability(is_available=not problem, reason=problem, advice=advice)


def _find_gcp_leftovers(run_id: str) -> list[str]:
    from harness.targets.gcp import leftovers
    from harness.targets.gke import leftovers as of_cluster

    return [*of_cluster.left_behind(run_id), *leftovers.left_behind(run_id)]


def _remove_gcp_leftovers(run_id: str, clock: Clock) -> list[str]:
    from harness.targets.gcp import leftovers
    from harness.targets.gke import leftovers as of_cluster

    return [*of_cluster.remove_left_behind(run_id, clock), *leftovers.remove_left_behind(run_id, clock)]


_TARGETS: Mapping[str, _Entry] = {
    "local": _Entry(
        create=_create_local,
        availability=_local_availability,
        left_behind=_find_local_leftovers,
        remove_left_behind=_remove_local_leftovers,
    ),
    "docker": _Entry(
        create=_create_docker,
        availability=_docker_availability,
        left_behind=_find_docker_leftovers,
        remove_left_behind=_remove_docker_leftovers,
        bring_up=_bring_docker_up,
    ),
    "kind": _Entry(
        create=_create_kind,
        availability=_kind_availability,
        left_behind=_find_kind_leftovers,
        remove_left_behind=_remove_kind_leftovers,
        bring_up=_bring_kind_up,
        take_down=_take_kind_down,
    ),
    "gcp": _Entry(
        create=_create_gcp,
        availability=_gcp_availability,
        left_behind=_find_gcp_leftovers,
        remove_left_behind=_remove_gcp_leftovers,
    ),
}

NAMES: tuple[str, ...] = tuple(_TARGETS)
"""All targets, in the order in which ``harness doctor`` shows them."""


def _entry(name: str) -> _Entry:
    if name not in _TARGETS:
        raise UnknownNameError(kind="target", name=name, known=NAMES)
    return _TARGETS[name]
