"""Recoveries tried by workers on this machine.

The executor is single-threaded and only waits for sockets: what takes time, copies and digests included, is done by the workers, each of
which is a process of its own. One that is killed takes no state with it.
"""

import os
import selectors
import shutil
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Self

from harness.clock import Clock, SystemClock
from harness.explore.executors.wire import Setup
from harness.explore.executors.worker_process import LOSSES_MAX, WorkerLostError, WorkerProcess, lost_for_good
from harness.explore.recipe import Recipe, StateTask, Tried
from harness.runner.binding import inherited
from harness.targets.local.processes import end_processes
from harness.targets.local.scratch import make_scratch_directory
from harness.targets.local.subreaper import subreaper


class LocalExecutor:
    """See ``recipe.Executor``.

    Args:
        blobs: Directory of the blobs.
        jobs: How many workers.
        run_id: Of the exploration: all processes and directories carry it, so that ``harness clean`` finds them.
        clock: The machine's.
        has_company: Whether other executors try recoveries of the job at the same time.

    Attributes:
        replaced: Why warm processes did not serve another state, or recoveries were tried alone: a sentence for each time.
        lost: Why workers were lost, likewise.
        pids: The workers that there are.
    """

    def __init__(self, blobs: Path, *, jobs: int, run_id: str, clock: Clock | None = None, has_company: bool = False) -> None:
        self.replaced: list[str] = []
        self.lost: list[str] = []
        self._blobs, self._jobs, self._run_id = blobs.resolve(), max(1, jobs), run_id
        self._clock: Clock = clock or SystemClock()
        self._has_company = has_company or jobs > 1
        self._workers: list[WorkerProcess] = []
        self._recipe: Recipe | None = None
        self._made = 0
        self._root = make_scratch_directory(run_id)
        subreaper.acquire(self)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def pids(self) -> tuple[int, ...]:
        """See the class."""
        return tuple(worker.pid for worker in self._workers)

    def try_all(self, tasks: Sequence[StateTask], recipe: Recipe, *, deadline_s: float) -> Iterator[Tried]:
        """See ``Executor``. Whoever stops listening has what is being tried given up.

        Raises:
            OSError: When no worker can be started.
            TimeoutError: When processes of a lost worker withstand SIGKILL.
        """
        if recipe != self._recipe:
            self._end_all()
            self._recipe = recipe
        waiting, losses = deque(tasks), Counter[str]()
        try:
            while True:
                yield from self._assign(waiting, losses, recipe, deadline_s)
                busy = [worker for worker in self._workers if worker.task is not None]
                if not busy:
                    return
                for worker in self._await(busy):
                    yield from self._settle(worker, waiting, losses)
        finally:
            for worker in [worker for worker in self._workers if worker.task is not None]:
                self._end(worker)

    def close(self) -> None:
        """See ``Executor``."""
        try:
            self._end_all()
            end_processes(self._run_id, self._clock)
        finally:
            shutil.rmtree(self._root, ignore_errors=True)
            subreaper.release(self)

    def _assign(self, waiting: deque[StateTask], losses: Counter[str], recipe: Recipe, deadline_s: float) -> Iterator[Tried]:
        """Give each idle worker a task, and start workers as far as there is something to do; what has begun once is always finished."""
        while waiting and (losses[waiting[0].state] or self._clock.monotonic_s() < deadline_s):
            worker = self._idle()
            if worker is None and len(self._workers) >= (1 if recipe.checkpoints else self._jobs):
                return
            task = waiting.popleft()
            try:
                worker = worker or self._start(recipe)
                worker.give(task)
            except WorkerLostError as error:
                if worker is not None:
                    self._end(worker)
                yield from self._count_loss(task, str(error), waiting, losses)

    def _idle(self) -> WorkerProcess | None:
        """A worker that has nothing to do; one that has ended meanwhile had no state to lose."""
        for worker in [worker for worker in self._workers if worker.task is None]:
            if worker.is_there():
                return worker
            self.lost.append("it ended while it had nothing to do")
            self._end(worker)
        return None

    def _start(self, recipe: Recipe) -> WorkerProcess:
        self._made += 1
        setup = Setup(
            recipe=recipe,
            blobs=str(self._blobs),
            place=str(self._root / f"w{self._made}"),
            run_id=self._run_id,
            surroundings=inherited(os.environ),
            has_company=self._has_company,
        )
        worker = WorkerProcess(setup, self._clock)
        self._workers.append(worker)
        return worker

    def _await(self, busy: Sequence[WorkerProcess]) -> list[WorkerProcess]:
        """Those that have something to say, or should have said it long ago."""
        with selectors.DefaultSelector() as selector:
            for worker in busy:
                selector.register(worker, selectors.EVENT_READ, worker)
            wait_s = max(0.0, min(worker.overdue_s for worker in busy) - self._clock.monotonic_s())
            ready = [key.data for key, _ in selector.select(wait_s)]
        return ready or [worker for worker in busy if worker.overdue_s <= self._clock.monotonic_s()]

    def _settle(self, worker: WorkerProcess, waiting: deque[StateTask], losses: Counter[str]) -> Iterator[Tried]:
        task = worker.task
        assert task is not None
        try:
            answer = worker.take()
        except WorkerLostError as error:
            self._end(worker)
            yield from self._count_loss(task, str(error), waiting, losses)
            return
        if answer is not None:
            self.replaced += answer.replaced
            yield answer.tried

    def _count_loss(self, task: StateTask, why: str, waiting: deque[StateTask], losses: Counter[str]) -> Iterator[Tried]:
        self.lost.append(why)
        losses[task.state] += 1
        if losses[task.state] < LOSSES_MAX:
            waiting.appendleft(task)
        else:
            yield lost_for_good(task, why)

    def _end(self, worker: WorkerProcess) -> None:
        self._workers.remove(worker)
        worker.end()

    def _end_all(self) -> None:
        while self._workers:
            self._end(self._workers[-1])
