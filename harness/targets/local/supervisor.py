"""The supervisor of a job's file-changing system calls: one loop over calls, rules and signals, in which nothing waits for another."""

import heapq
import json
import math
import os
import socket
from collections.abc import Mapping

from harness.clock import SystemClock
from harness.supervision import seccomp
from harness.supervision.loop import Supervision
from harness.supervision.syscalls import ERROR_NUMBERS, EVERYTHING, REFUSED, Architecture
from harness.supervision.tracee import change_under

HITS_SUFFIX, LEFT_SUFFIX = ".hits", ".request"
"""Beside the socket: which rule was last in force and how much it has hit, and a request that came before the socket was open."""

HITS_DIGITS = 20
"""Of each number; fixed width, so that a reader never sees half of one."""

SLEEP_MS_MAX = 3_600_000
"""Longer sleeps do not fit the system call; an hour's end costs one look."""

LINE_SIZE_MAX = 4096
"""A request is some hundred bytes; a client that sends more without a line end is not one of ours."""


class Rule:
    """How calls under the root fare.

    ``left`` counts down the operations it may still hit, below 0 without end; ``generation`` tells its hits from those of another rule.
    """

    __slots__ = ("delay_s", "error", "generation", "kinds", "left")

    def __init__(self, *, error: str = "", operations: int = 0, delay_s: float = 0.0, generation: int = 0) -> None:
        if error and error not in REFUSED:
            raise ValueError(f"error is {error!r}: one of {', '.join(REFUSED)}, or empty")
        if operations < 0 or not 0 <= delay_s < math.inf:
            raise ValueError(f"operations {operations!r} and delay_s {delay_s!r}: numbers >= 0")
        self.error, self.delay_s = ERROR_NUMBERS[error] if error else 0, delay_s
        self.kinds = REFUSED[error] if error else EVERYTHING
        self.left = int(operations) or -1
        self.generation = int(generation)


class Calls:
    """Answers the calls of the job by the rule in force; without one, at once and without looking."""

    def __init__(self, listener: int, *, root: bytes, architecture: Architecture, hits_file: int) -> None:
        self._listener, self._root, self._architecture, self._hits_file = listener, root, architecture, hits_file
        self._rule: Rule | None = None
        self._held: list[tuple[float, int, int]] = []  # (due, notification, error)
        self._clock = SystemClock()
        self._generation = 0
        self.hits = 0

    def set(self, rule: Rule | None) -> None:
        """Put a rule in force, or take it back; calls that are held go on."""
        for _, notification_id, _ in self._held:
            seccomp.let_go(self._listener, notification_id)
        self._held.clear()
        self._rule = rule
        if rule is not None:
            self._generation = rule.generation
            self._count(0)

    def answer_next(self) -> None:
        """Answer one call, or hold it."""
        notification = seccomp.receive(self._listener)
        if notification is None:
            return
        rule = self._rule
        if rule is None or change_under(self._root, notification, self._architecture) not in rule.kinds:
            seccomp.let_go(self._listener, notification.id)
            return
        self._count(self.hits + 1)
        rule.left -= 1
        if rule.left == 0:
            self._rule = None
        if rule.delay_s:
            heapq.heappush(self._held, (self._clock.monotonic_s() + rule.delay_s, notification.id, rule.error))
        else:
            self._finish(notification.id, rule.error)

    def answer_due(self) -> None:
        """Answer the held calls whose time has come."""
        while self._held and self._held[0][0] <= self._clock.monotonic_s():
            _, notification_id, error = heapq.heappop(self._held)
            self._finish(notification_id, error)

    def timeout_ms(self) -> int | None:
        """How long until a held call is due; None when none is held."""
        if not self._held:
            return None
        return max(0, min(SLEEP_MS_MAX, math.ceil((self._held[0][0] - self._clock.monotonic_s()) * 1000)))

    def _finish(self, notification_id: int, error: int) -> None:
        if error:
            seccomp.refuse(self._listener, notification_id, error)
        else:
            seccomp.let_go(self._listener, notification_id)

    def _count(self, hits: int) -> None:
        self.hits = hits
        os.pwrite(self._hits_file, b"%0*d %0*d" % (HITS_DIGITS, self._generation, HITS_DIGITS, hits), 0)


class Supervisor(Supervision):
    """Also hears the control socket, over which rules come."""

    def __init__(self, job: int, listener: int, *, calls: Calls, door: socket.socket, signals: int) -> None:
        super().__init__(job, listener, answer_next=calls.answer_next, signals=signals)
        self._calls, self._door = calls, door
        self.watch(door.fileno(), self._admit)

    def run(self) -> int:
        """Supervise until the job's first process ends; returns its wait status."""
        while self.status is None:
            self.turn(self._calls.timeout_ms())
            self._calls.answer_due()
        return self.status

    def _admit(self) -> None:
        client, _ = self._door.accept()
        client.settimeout(0)
        pending = bytearray()
        self.watch(client.fileno(), lambda: self._serve(client, pending))

    def _serve(self, client: socket.socket, pending: bytearray) -> None:
        try:
            data = client.recv(LINE_SIZE_MAX)
            pending += data
            while b"\n" in pending:
                line, _, rest = bytes(pending).partition(b"\n")
                pending[:] = rest
                client.sendall(json.dumps(self._reply(line)).encode() + b"\n")
            is_over = not data or len(pending) > LINE_SIZE_MAX
        except BlockingIOError:
            return  # the descriptor was that of a client that has just left
        except OSError:
            is_over = True
        if is_over:
            self.forget(client.fileno())
            client.close()

    def _reply(self, line: bytes) -> dict[str, object]:
        try:
            self._calls.set(rule_asked_for(line))
        except (ValueError, TypeError, KeyError) as error:
            return {"problem": f"{type(error).__name__}: {error}"}
        return {"hits": self._calls.hits}


def rule_asked_for(line: bytes) -> Rule | None:
    """The rule that a request puts in force; None when it takes it back.

    Raises:
        ValueError, TypeError, KeyError: When it is no request of ours.
    """
    request: Mapping[str, object] = json.loads(line)
    if request["op"] == "clear":
        return None
    rule, generation = request["rule"], request.get("generation", 0)
    if request["op"] != "set" or not isinstance(rule, dict) or not isinstance(generation, int):
        raise ValueError(f"op is {request['op']!r} with rule {rule!r}, generation {generation!r}: set with both, or clear")
    return Rule(**rule, generation=generation)
