"""Recoveries tried on an existing Ray cluster, by the same workers as on this machine: one beside each process of Ray's that gets a task.

Blobs go into the object store once each, and from there to each process that needs them; a state travels as its pieces. A task whose node
or process is lost is done again by Ray, so no verdict is lost with it. Every node has the harness installed, and the job's directory at the
path that the recipe says; the environment is that of the caller.
"""

import functools
import os
import socket
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import ray
from ray._private import worker
from ray.exceptions import RayError, RayTaskError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from harness.clock import Clock, SystemClock
from harness.errors import TargetUnavailableError
from harness.explore.executors.node import Node
from harness.explore.executors.wire import Answer, Setup, decode, encode
from harness.explore.executors.worker_process import LOSSES_MAX, longest_s, lost_for_good
from harness.explore.recipe import Recipe, StateTask, Tried
from harness.runner.binding import inherited
from harness.targets.local.leftovers import remove_left_behind

RETRIES_MAX = 3
"""How often Ray itself does a task again whose process or node it lost: nodes that are taken away one after the other."""

IDLE_S_MAX = 60.0
"""A worker on a node leaves after so long without a task: Ray keeps its processes, and nobody tells them that we are done."""

CONNECT_S_MAX = 10.0
"""For a connection to a cluster that is there, however far away."""

CLEAN_S_MAX = 30.0
"""A process of Ray's starts in some seconds, and removes what is there in less; a node that does not answer is left."""

LOOK_S = 1.0
"""Between two looks whether the cluster has another size, or a task takes too long."""


class RayExecutor:
    """See ``recipe.Executor``.

    Args:
        blobs: Directory of the blobs, here.
        address: Of the cluster: ``host:port``, ``ray://…`` or ``auto``. A connection that this process has already is used.
        run_id: Of the exploration.
        clock: The machine's.

    Attributes:
        replaced: Why warm processes did not serve another state: a sentence for each time.
        lost: Why Ray could not bring a task to an end, which was given to it once more, likewise.

    Raises:
        TargetUnavailableError: When there is no cluster at that address.
    """

    def __init__(self, blobs: Path, *, address: str, run_id: str, clock: Clock | None = None) -> None:
        self.replaced: list[str] = []
        self.lost: list[str] = []
        self._blobs, self._run_id = blobs, run_id
        self._clock: Clock = clock or SystemClock()
        self._put: dict[str, ray.ObjectRef[bytes]] = {}
        self._is_ours, self._is_open = not ray.is_initialized(), True
        if self._is_ours:
            _connect(address)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def try_all(self, tasks: Sequence[StateTask], recipe: Recipe, *, deadline_s: float) -> Iterator[Tried]:
        """See ``Executor``. Whoever stops listening has what is being tried cancelled."""
        surroundings = inherited(os.environ)
        setup = Setup(recipe=recipe, blobs="", place="", run_id=self._run_id, surroundings=surroundings, idle_s_max=IDLE_S_MAX)
        shared = ray.put(encode(setup))
        waiting, flying = deque(tasks), dict[ray.ObjectRef[bytes], _Flight]()
        try:
            while True:
                while waiting and len(flying) < _places() and self._clock.monotonic_s() < deadline_s:
                    yield from self._launch(_Flight(waiting.popleft(), shared), flying)
                if not flying:
                    return
                landed, _ = ray.wait(list(flying), num_returns=1, timeout=LOOK_S)
                for reference in landed:
                    yield from self._land(reference, flying)
                yield from self._give_up(recipe, flying)
        finally:
            for reference in flying:
                ray.cancel(reference, force=True)

    def close(self) -> None:
        """See ``Executor``: cleans the nodes, and leaves the cluster where it was this executor that joined it."""
        if not self._is_open:
            return
        self._is_open = False
        self._put.clear()
        try:
            self._clean_nodes()
        finally:
            if self._is_ours:
                ray.shutdown()

    def _clean_nodes(self) -> None:
        """Ray kills what its processes have started, so that the workers cannot remove their directories; a node that is gone has none."""
        nodes: Sequence[Mapping[str, object]] = ray.nodes()  # type: ignore[no-untyped-call]
        alive = [str(node["NodeID"]) for node in nodes if node["Alive"]]
        strategies = [NodeAffinitySchedulingStrategy(node_id, soft=False) for node_id in alive]
        cleaning = [_clean_node.options(scheduling_strategy=strategy).remote(self._run_id) for strategy in strategies]
        ray.wait(cleaning, num_returns=len(cleaning), timeout=CLEAN_S_MAX)

    def _launch(self, flight: "_Flight", flying: "_Flying") -> Iterator[Tried]:
        """Give a task to Ray; one whose blobs are not to be had is answered at once."""
        task = flight.task
        try:
            blobs = {piece.content: self._blob(piece.content) for piece in task.pieces if piece.kind == "file"}
        except (OSError, RayError) as error:
            yield Tried(state=task.state, lost=f"its files could not be sent: {_first_line(error)}")
            return
        flight.began_s = self._clock.monotonic_s()
        flying[_try_on_node.remote(flight.shared, encode(task), blobs)] = flight

    def _blob(self, content: str) -> "ray.ObjectRef[bytes]":
        if content not in self._put:
            self._put[content] = ray.put((self._blobs / content).read_bytes())
        return self._put[content]

    def _land(self, reference: "ray.ObjectRef[bytes]", flying: "_Flying") -> Iterator[Tried]:
        """What came of a task; one that Ray could not bring to an end is given to it once more."""
        flight = flying.pop(reference)
        try:
            answer = decode(ray.get(reference), Answer)
        except RayTaskError as error:
            yield Tried(state=flight.task.state, lost=f"it could not be tried on its node: {_last_line(error)}")
            return
        except RayError as error:
            self.lost.append(_first_line(error))
            flight.losses += 1
            if flight.losses < LOSSES_MAX:
                yield from self._launch(flight, flying)
            else:
                yield lost_for_good(flight.task, _first_line(error))
            return
        self.replaced += answer.replaced
        yield answer.tried

    def _give_up(self, recipe: Recipe, flying: "_Flying") -> Iterator[Tried]:
        """Tasks that no node takes, or that never end."""
        now_s = self._clock.monotonic_s()
        for reference, flight in list(flying.items()):
            limit_s = (RETRIES_MAX + 1) * LOSSES_MAX * longest_s(recipe, flight.task)
            if now_s - flight.began_s > limit_s:
                del flying[reference]
                ray.cancel(reference, force=True)
                yield Tried(state=flight.task.state, lost=f"the cluster did not answer within {limit_s:.0f} s")


@dataclass(slots=True)
class _Flight:
    """A task that Ray has: with the setup in the object store, since when, and how often it was lost."""

    task: StateTask
    shared: "ray.ObjectRef[bytes]"
    began_s: float = 0.0
    losses: int = 0


_Flying = dict["ray.ObjectRef[bytes]", _Flight]


def _connect(address: str) -> None:
    _keep_off_stdout()
    try:
        _knock(address)
        ray.init(address=address, log_to_driver=False, configure_logging=False)
    except (ConnectionError, RuntimeError, ValueError, OSError) as error:
        reason = f"no cluster answers at {address}: {_first_line(error)}"
        raise TargetUnavailableError(target="ray", reason=reason, advice="start one, or correct --ray-address") from error


def _knock(address: str) -> None:
    """See that somebody listens: Ray itself tries for minutes.

    Raises:
        OSError: When nobody does.
    """
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT_S_MAX).close()


def _keep_off_stdout() -> None:
    """Have what Ray tells of lost nodes written to the standard error: it goes to the output otherwise, where our answer is expected.

    Source: ray 2.60.0, ray/_private/worker.py (listen_error_messages, print_to_stdstream); no option of ``ray.init`` changes it.
    """
    told = getattr(worker, "print_to_stdstream", None)
    if told is not None and not isinstance(told, functools.partial):
        worker.print_to_stdstream = functools.partial(_tell_on_stderr, told)


def _tell_on_stderr(tell: Callable[..., None], data: Mapping[str, object], **options: object) -> None:
    tell({**data, "is_err": True}, **options)


def _places() -> int:
    """How many tasks the cluster can do at once, now."""
    resources: Mapping[str, float] = ray.cluster_resources()  # type: ignore[no-untyped-call]
    return max(1, int(resources.get("CPU", 1)))


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _last_line(error: BaseException) -> str:
    """Of the traceback on the node: what went wrong."""
    return (str(error).strip().splitlines() or [type(error).__name__])[-1]


_node = Node(SystemClock())


@ray.remote(num_cpus=1, max_retries=RETRIES_MAX)
def _try_on_node(template: bytes, task: bytes, references: "dict[str, ray.ObjectRef[bytes]]") -> bytes:
    """Runs in a process of Ray's, on any node."""

    def fetch(contents: Sequence[str]) -> Sequence[bytes]:
        return ray.get([references[content] for content in contents])

    return encode(_node.try_state(template, decode(task, StateTask), fetch))


@ray.remote(num_cpus=0, max_retries=0)
def _clean_node(run_id: str) -> None:
    """Runs on each node at the end."""
    remove_left_behind(run_id, SystemClock())
