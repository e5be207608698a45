"""The attempts of all tasks: a state machine over what is seen. It does nothing to the cluster and waits for nothing."""

from collections.abc import Iterable

from harness.capabilities import Launch
from harness.history import AttemptExited, Cause, Event, ExecutionFinished, TaskFinished
from harness.protocol.attempt_key import AttemptKey
from harness.targets.kubernetes.api import JOBS, RAY_CLUSTERS, RAY_JOBS, Object, Resource, name_of, uid_of
from harness.targets.kubernetes.ends import SIGKILL, End, end_of
from harness.targets.kubernetes.task import Attempt, Kind, Pod, Task


class Attempts:
    """Tell it what is seen; ask what has started, what is over, what is concluded.

    Args:
        launch: What runs.
        hurt: Uids of pods that injections take away; it grows.
        is_ray: Whether RayJobs are submitted.
    """

    def __init__(self, launch: Launch, hurt: set[str], *, is_ray: bool) -> None:
        kind: Kind = "ray-cluster" if is_ray else "admission" if launch.ranks > 1 else "pod"
        self._tasks = [Task(index, kind) for index in range(launch.tasks)]
        self._hurt = hurt
        self._signalled: dict[str, Cause] = {}
        self._places: dict[str, tuple[Task, Attempt, Pod]] = {}
        self.is_finished = False

    @property
    def have_succeeded(self) -> bool:
        """Whether every task has come to a good end."""
        return all(task.outcome == "succeeded" for task in self._tasks)

    def key_of(self, task: int) -> AttemptKey:
        """The attempt of a task that runs, or has run last; the first one before that."""
        return AttemptKey(task, max(0, self._tasks[task].started - 1))

    def key_of_pod(self, uid: str) -> AttemptKey | None:
        """The attempt that a pod is of, or would be if it ran; None when no such pod was seen."""
        if uid not in self._places:
            return None
        task, attempt, _ = self._places[uid]
        return AttemptKey(task.index, task.started if attempt.number < 0 else attempt.number)

    def note_signal(self, uids: Iterable[str], cause: Cause) -> None:
        """Pods were sent a signal that may end them; the first to do so is behind their end, but for the end of a notice."""
        for uid in uids:
            if cause == "grace" or uid not in self._signalled:
                self._signalled[uid] = cause

    # ---- what is seen ------------------------------------------------------------------------------------------------

    def see_pod(self, pod: Object, task_index: int, now_s: float, *, is_deleted: bool) -> None:
        """A pod came, changed or went."""
        uid, task = uid_of(pod), self._tasks[task_index]
        attempt = self._places[uid][1] if uid in self._places else task.attempt_for(pod)
        known = task.take_pod(attempt, pod, now_s)
        self._places[uid] = (task, attempt, known)
        known.is_hurt = uid in self._hurt
        if known.end is None:
            known.end = end_of(pod, now_s, is_deleted=is_deleted, signalled_by=self._signalled.get(uid), is_hurt=known.is_hurt)

    def begin(self, uid: str, now_s: float) -> None:
        """A pod runs, as what it says shows."""
        if uid in self._places:
            task, attempt, pod = self._places[uid]
            task.begin(attempt, pod, now_s)

    def see_object(self, thing: Object, resource: Resource, task_index: int, *, is_deleted: bool) -> None:
        """The submitted object of a task, or its RayCluster, came, changed or went."""
        task = self._tasks[task_index]
        if resource == RAY_CLUSTERS:
            if is_deleted:
                task.close(name_of(thing))
        elif is_deleted:
            task.conclude("failed", f"{resource.plural} {name_of(thing)} was deleted")
        elif resource == RAY_JOBS:
            task.take_ray_job(thing)
        elif resource == JOBS:
            task.take_job(thing)

    def silent(self) -> list[Pod]:
        """Pods that are not known to run, nor to have ended."""
        return [pod for _, _, pod in self._places.values() if pod.started_s is None and pod.end is None and pod.role != "submitter"]

    def ended_pods(self) -> set[str]:
        """Pods that have run and are known to have ended, by uid."""
        return {uid for uid, (_, _, pod) in self._places.items() if pod.started_s is not None and pod.end is not None}

    # ---- what follows ------------------------------------------------------------------------------------------------

    def take_started(self) -> list[tuple[AttemptKey, float]]:
        """Attempts that have begun since, each with when."""
        found: list[tuple[AttemptKey, float]] = []
        for task in self._tasks:
            for attempt in task.attempts:
                if attempt.number >= 0 and not attempt.is_told:
                    attempt.is_told = True
                    found.append((AttemptKey(task.index, attempt.number), attempt.began_s))
        return found

    def running(self) -> list[AttemptKey]:
        """Attempts that were told to have started and not to have ended."""
        return [AttemptKey(task.index, attempt.number) for task in self._tasks for attempt in task.running]

    def pods_of(self, key: AttemptKey) -> list[Pod]:
        """All pods of a running attempt, those that have ended too."""
        attempt = self._running(key)
        return [] if attempt is None else list(attempt.pods.values())

    def are_over(self, key: AttemptKey, now_s: float) -> bool:
        """Whether a running attempt has ended."""
        attempt = self._running(key)
        return attempt is not None and self._tasks[key.task].is_over(attempt, now_s)

    def finish(self, key: AttemptKey, t_s: float, *, is_stopped: bool = False) -> AttemptExited:
        """Tell the end of a running attempt.

        Raises:
            LookupError: When it does not run.
        """
        task, attempt = self._tasks[key.task], self._running(key)
        if attempt is None:
            raise LookupError(f"attempt {key.attempt} of task {key.task} does not run")
        attempt.is_finished = True
        end = End(t_s=t_s, exit_code=None, signal=SIGKILL, cause="stop") if is_stopped else task.end_of(attempt, t_s)
        return AttemptExited(
            t_s=t_s,
            task=key.task,
            attempt=key.attempt,
            exit_code=end.exit_code,
            signal=end.signal,
            cause=end.cause,
            retried=not is_stopped and task.is_retried(attempt, end),
        )

    def conclude(self, t_s: float) -> list[Event]:
        """Tasks that are over with all their attempts, and the execution when all are; each is told once."""
        events: list[Event] = []
        for task in self._tasks:
            if task.outcome and not task.is_told and not task.running:
                task.is_told = True
                succeeded = task.outcome == "succeeded"
                events.append(TaskFinished(t_s=t_s, task=task.index, succeeded=succeeded, attempts=task.started, detail=task.detail))
        if not self.is_finished and all(task.is_told for task in self._tasks):
            self.is_finished = True
            succeeded_count = sum(task.outcome == "succeeded" for task in self._tasks)
            failed_count, retried_count = len(self._tasks) - succeeded_count, sum(max(0, task.started - 1) for task in self._tasks)
            events.append(ExecutionFinished(t_s=t_s, succeeded=succeeded_count, failed=failed_count, cancelled=0, retried=retried_count))
        return events

    def _running(self, key: AttemptKey) -> Attempt | None:
        return next((attempt for attempt in self._tasks[key.task].running if attempt.number == key.attempt), None)
