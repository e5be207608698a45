"""Pods and the storage that they share: what can be done to them from outside."""

from abc import abstractmethod
from pathlib import Path

from harness.capabilities import PodName, Processes
from harness.cloud_run.environment import CHECKPOINTS_AT
from harness.scenario.cluster_faults import Part
from harness.targets.kubernetes.api import CONFLICT, NOT_FOUND, PODS, TOO_MANY_REQUESTS, ApiError
from harness.targets.kubernetes.execution import ClusterExecution
from harness.targets.kubernetes.grounds import ClusterHosting, Hosting
from harness.targets.kubernetes.inventory import names_of
from harness.targets.kubernetes.pod_edits import INTERPRETER

_REFUSALS = {NOT_FOUND: "is gone", CONFLICT: "is gone", TOO_MANY_REQUESTS: "is protected by a disruption budget"}


class PodRemoving(ClusterHosting):
    """The part of a target that is a ``PodHost``."""

    def pods_of(self, victim: Processes, part: Part) -> tuple[PodName, ...]:
        """See ``PodHost``."""
        return names_of(self.grounds.inventory.living(victim, part))

    def delete_pod(self, pod: PodName, grace_s: int | None) -> None:
        """See ``PodHost``."""
        grounds = self.grounds
        try:
            is_there = grounds.api.delete(PODS, pod.name, grounds.namespace, grace_s=grace_s, uid=pod.uid)
        except ApiError as error:
            raise LookupError(str(error)) from error
        if not is_there:
            raise LookupError(f"pod {pod.name} ({pod.uid}) is gone")
        grounds.hurt.add(pod.uid)

    def evict_pod(self, pod: PodName) -> None:
        """See ``PodHost``."""
        grounds = self.grounds
        try:
            grounds.api.evict(pod.name, grounds.namespace, uid=pod.uid)
        except ApiError as error:
            raise LookupError(f"pod {pod.name} ({pod.uid}) {_REFUSALS.get(error.status, f'was not evicted: {error}')}") from error
        grounds.hurt.add(pod.uid)


class PodHosting(PodRemoving, Hosting):
    """The part of the target ``kind`` that is a ``PodHost``, an ``ImageHost`` and a ``CheckpointStorage``."""

    @property
    @abstractmethod
    def execution(self) -> ClusterExecution:
        """The one that runs.

        Raises:
            LookupError: When none does.
        """

    def checkpoint_path(self, task: int) -> Path:
        """See ``CheckpointStorage``. All tasks share the mounted directory, as they share the bucket."""
        launch, mounted = self.execution.grounds.launch, self.execution.storage.checkpoints
        if not 0 <= task < launch.tasks:
            raise LookupError(f"the execution has no task {task}, but {launch.tasks}")
        path = mounted / launch.checkpoints
        if mounted.is_symlink() or not path.resolve().is_relative_to(mounted.resolve()):  # a link that the job has put there
            raise LookupError(f"{path} leads out of the mounted directory, to {path.resolve()}, where nothing is ours to change")
        return path

    def interpreter(self) -> str:
        """See ``ImageHost``."""
        return INTERPRETER

    def mounted_at(self, checkpoint_dir: Path) -> str:
        """See ``ImageHost``."""
        del checkpoint_dir
        return CHECKPOINTS_AT
