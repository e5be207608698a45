"""Whether the machines of the cluster are all there while a run lasts: the API server does not say so of one that was removed."""

from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor

from harness.kind import UP, CommandFailedError, NodeContainers, NodeState

CALLED_EVERY_S = 15.0
"""Docker lists six containers in a twentieth of a second of one core; a run on a cluster lasts a minute or more."""


class MachineRoll:
    """Calls the machines from time to time, in a thread of its own: Docker takes seconds to answer on a busy machine.

    Machines of pools may be off, and are while a fault lasts. None is ever removed by a run, and the control plane's is never off.
    """

    def __init__(self, machines: NodeContainers) -> None:
        self._machines = machines
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="call the machines")
        self._call: Future[Mapping[str, str]] | None = None
        self._first: Mapping[str, str] | None = None
        self._next_s = 0.0

    def missing(self, now_s: float) -> str:
        """What is gone, in words with what to do; empty as far as is known. Never waits."""
        if self._call is None and now_s >= self._next_s:
            self._call = self._thread.submit(self._answers)
            self._next_s = now_s + CALLED_EVERY_S
        if self._call is None or not self._call.done():
            return ""
        call, self._call = self._call, None
        try:
            states = call.result()
        except CommandFailedError:
            return ""  # it is asked again; a cluster that was made anew is told apart by its uid
        self._first = states if self._first is None else self._first
        lost = [f"the machine of node {name} was removed" for name in self._first if name not in states]
        lost += [f"the machine of node {name}, which holds the control plane, is {state}" for name, state in states.items() if state]
        return f"{', '.join(lost)}: {UP}, which makes the cluster again" if lost else ""

    def close(self) -> None:
        """Call no more."""
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _answers(self) -> Mapping[str, str]:
        """The machines that are there, each with the state that it may not have."""
        return {node.name: "" if node.pool or node.state is NodeState.RUNNING else str(node.state) for node in self._machines.list()}
