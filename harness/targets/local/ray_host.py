"""Ray clusters that attempts run: a part is killed, a node is announced to be taken away and then taken away.

The announcement is Ray's own: its command line tells the control store, which tells the node and whoever asks. It takes seconds to start,
so it runs beside the loop. At the deadline the raylet and all that descends from it are killed at once, as a machine goes.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from typing import Literal

import psutil

from harness.capabilities import Launch
from harness.clock import Clock
from harness.cloud_run.attempt import Attempt
from harness.history import LogLine
from harness.process_table import read_table
from harness.protocol.attempt_key import AttemptKey
from harness.protocol.variables import RUN_ID_VARIABLE
from harness.targets.local.ray_nodes import RayNode, find_control_stores, find_nodes
from harness.targets.local.subreaper import subreaper

ANSWER_S_MAX = 60.0
"""For importing Ray and asking: one second on a quiet machine. What takes longer than this has no answer."""

ANSWER_LENGTH_MAX = 500
"""Characters of a refusal that are told: the last ones say why."""

_JOB_PREFIXES = ("HARNESS_", "CLOUD_RUN_")
"""Variables that make a process one of the attempt: what we start is not the job's."""


@dataclass(slots=True, kw_only=True)
class _Drain:
    """A node on its way out.

    Attributes:
        node: Which.
        attempt: Whose.
        deadline_s: How long after Ray's consent it is taken away.
        command: Asks Ray; its output goes to ``answer_path``.
        asked_at_s: When it began to ask.
        due_at_s: When the node is taken away; None before Ray has accepted, and when it is done.
        is_accepted: Whether Ray has accepted.
        refusal: Why Ray has not, or "".
    """

    node: RayNode
    attempt: Attempt
    deadline_s: int
    command: subprocess.Popen[bytes]
    answer_path: Path
    asked_at_s: float
    due_at_s: float | None = None
    is_accepted: bool = False
    refusal: str = ""

    @property
    def is_asking(self) -> bool:
        return not self.is_accepted and not self.refusal


class RayClusters:
    """What the local target does to the clusters of one execution's attempts."""

    def __init__(self, launch: Launch, clock: Clock) -> None:
        self._launch = launch
        self._clock = clock
        self._drains: dict[tuple[AttemptKey, str], _Drain] = {}

    def kill(self, attempt: Attempt, component: Literal["raylet", "head"]) -> tuple[int, ...]:
        """See ``RayHost.kill_ray_processes``. Of several nodes one that is not the head's loses its raylet."""
        members = attempt.processes.find()
        victims = [node.raylet for node in find_nodes(members)[:1]] if component == "raylet" else find_control_stores(members)
        killed = attempt.processes.kill(victims)
        if not killed:
            raise LookupError(_absent(attempt.key, "raylet" if component == "raylet" else "control store (gcs_server)"))
        return killed

    def drain(self, attempt: Attempt, deadline_s: float) -> str:
        """See ``RayHost.drain_ray_node``. Of several nodes it is one that is not the head's."""
        nodes = find_nodes(attempt.processes.find())
        nodes = [node for node in nodes if (attempt.key, node.node_id) not in self._drains]
        if not nodes:
            raise LookupError(_absent(attempt.key, "raylet that is not being drained"))
        node, seconds = nodes[0], max(1, ceil(deadline_s))  # Ray takes whole seconds
        answer_path = self._launch.logs_dir / f"ray-drain-{node.node_id[:8]}.log"
        self._drains[attempt.key, node.node_id] = _Drain(
            node=node,
            attempt=attempt,
            deadline_s=seconds,
            command=self._ask(node, seconds, answer_path),
            answer_path=answer_path,
            asked_at_s=self._clock.monotonic_s(),
        )
        return node.node_id

    def state_of(self, attempt: Attempt, node_id: str) -> Literal["alive", "draining", "dead"]:
        """See ``RayHost.ray_node_state``. An idle node shuts down at once when it is drained, even before Ray's command has returned."""
        drain = self._drains.get((attempt.key, node_id))
        if drain is not None and drain.refusal:
            raise LookupError(drain.refusal)
        is_up = any(node.node_id == node_id for node in find_nodes(attempt.processes.find()))
        if drain is None and not is_up:
            raise LookupError(_absent(attempt.key, f"raylet of node {node_id}"))
        if drain is None or drain.is_asking:
            return "alive"
        return "draining" if is_up else "dead"

    def tick(self) -> list[LogLine]:
        """Hear what Ray has answered and take away the nodes that are due; returns what the platform says of it."""
        lines: list[LogLine] = []
        for drain in self._drains.values():
            if drain.is_asking:
                self._hear(drain)
            if drain.due_at_s is not None and self._clock.monotonic_s() >= drain.due_at_s:
                drain.due_at_s = None
                lines += self._take_away(drain)
        return lines

    def next_due_s(self) -> float:
        """When ``tick`` has something to take away, on the monotonic clock; infinite while it has not."""
        return min((drain.due_at_s for drain in self._drains.values() if drain.due_at_s is not None), default=float("inf"))

    def close(self) -> None:
        """End what still asks."""
        for drain in self._drains.values():
            if drain.is_asking:
                self._give_up(drain, "the run has ended")

    def _ask(self, node: RayNode, deadline_s: int, answer_path: Path) -> subprocess.Popen[bytes]:
        command = [node.python, "-m", "ray.scripts.scripts", "drain-node", "--address", node.address, "--node-id", node.node_id]
        command += ["--reason", "DRAIN_NODE_REASON_PREEMPTION", "--reason-message", "preempted by the platform"]
        command += ["--deadline-remaining-seconds", str(deadline_s)]
        try:
            with answer_path.open("wb") as answer:
                process = subprocess.Popen(
                    command,
                    cwd=self._launch.directory,
                    env=_environment_of(node.raylet, self._launch.run_id),
                    stdin=subprocess.DEVNULL,
                    stdout=answer,
                    stderr=answer,
                    start_new_session=True,
                )
        except (OSError, psutil.Error) as error:
            raise LookupError(f"Ray's command line could not be started with {node.python}: {error}") from error
        subreaper.add_leader(process.pid)
        return process

    def _hear(self, drain: _Drain) -> None:
        code = drain.command.poll()
        if code is None:
            if self._clock.monotonic_s() >= drain.asked_at_s + ANSWER_S_MAX:
                self._give_up(drain, f"Ray did not answer within {ANSWER_S_MAX:g} s")
            return
        subreaper.remove_leader(drain.command.pid)
        if code == 0:
            drain.is_accepted, drain.due_at_s = True, self._clock.monotonic_s() + drain.deadline_s
        else:
            said = drain.answer_path.read_text(errors="replace").strip()[-ANSWER_LENGTH_MAX:]
            drain.refusal = f"Ray refused to drain node {drain.node.node_id} (exit code {code}): {said}"

    def _give_up(self, drain: _Drain, why: str) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(drain.command.pid, signal.SIGKILL)
        drain.command.wait()
        subreaper.remove_leader(drain.command.pid)
        drain.refusal = f"node {drain.node.node_id} was not drained: {why}"

    def _take_away(self, drain: _Drain) -> list[LogLine]:
        """Kill a node with all that descends from it; nothing happens where it is gone, as one that Ray has shut down when it was idle."""
        node, processes = drain.node, drain.attempt.processes
        try:
            members = processes.find()
        except LookupError:
            return []
        if node.raylet not in members:
            return []
        killed = processes.kill([node.raylet, *sorted(read_table().descendants(node.raylet))])
        text = f"Node {node.node_id} was taken away {drain.deadline_s} s after it was announced: {len(killed)} processes killed."
        key, t_s = drain.attempt.key, self._clock.monotonic_s() - self._launch.epoch_s
        return [LogLine(t_s=t_s, task=key.task, attempt=key.attempt, stream="system", text=text, severity="WARNING")]


def _environment_of(pid: int, run_id: str) -> Mapping[str, str]:
    """A raylet's own environment: it says how to speak to its cluster. Of ours only the run id stays, for ``harness clean``."""
    environment = psutil.Process(pid).environ()
    kept = {name: value for name, value in environment.items() if not name.startswith(_JOB_PREFIXES)}
    return kept | {RUN_ID_VARIABLE: run_id}


def _absent(key: AttemptKey, what: str) -> str:
    where = f"the processes of attempt {key.attempt} of task {key.task}"
    return f"no {what} runs among {where}: its Ray cluster is not up, or that part is gone"
