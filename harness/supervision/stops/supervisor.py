"""Answers the calls of a job, and holds those that stops name until their holder lets them go."""

import json
import socket
from collections.abc import Callable

from harness.supervision import seccomp
from harness.supervision.recorder.recorder import Recorder
from harness.supervision.recorder.speech import Speech
from harness.supervision.recorder.thread_status import ThreadStatus
from harness.supervision.seccomp import Notification
from harness.supervision.stops.counting import Stop
from harness.supervision.stops.held import HeldError, HeldRecord
from harness.supervision.syscalls import Call

LINE_SIZE_MAX = 4096
"""A line is the number of a stop."""


class Hold:
    """A call that is held: by which stops, and what lets it go on."""

    __slots__ = ("go_on", "waits_for")

    def __init__(self, waits_for: set[int], go_on: Callable[[], object]) -> None:
        self.waits_for, self.go_on = waits_for, go_on


class StopSupervisor(Recorder):
    """A recorder without a log that holds callers, and tells whoever listens at ``door`` of it.

    Only the caller's thread stands still: the job's other threads and processes go on.
    """

    def __init__(
        self,
        job: int,
        listener: int,
        *,
        record: HeldRecord,
        speech: Speech,
        calls: dict[int, Call],
        signals: int,
        door: socket.socket,
    ) -> None:
        super().__init__(job, listener, record=record, speech=speech, calls=calls, signals=signals)
        self._log, self._stops, self._door = record.log, record.stops, door
        self._holds: list[Hold] = []
        self._heard = bytearray()
        door.settimeout(None)
        self._loop.watch(door.fileno(), self._take_word)

    def run(self) -> int:
        """Supervise until the job's first process ends; returns its wait status."""
        while self._loop.status is None:
            self._loop.turn(None)
        return self._loop.status

    def _answer(self, notification: Notification) -> None:
        if self._stops.are_spent:  # nobody is waited for, so nothing need be performed here, or known
            seccomp.let_go(self._listener, notification.id)
            return
        self._log.met = []
        try:
            super()._answer(notification)
        except HeldError as held:
            found = [(stop, held.path) for stop in held.stops]
            self._hold(found, notification, lambda: self._answer(notification))

    def _give(self, notification: Notification, answer: Callable[[], bool]) -> None:
        if self._log.met:
            self._hold(self._log.met, notification, answer)
        else:
            answer()

    def _hold(self, found: list[tuple[Stop, str]], notification: Notification, go_on: Callable[[], object]) -> None:
        self._holds.append(Hold({stop.index for stop, _ in found}, go_on))
        process = self._process_of(notification.thread)
        for stop, path in found:
            line = {"stop": stop.index, "process": process, "thread": notification.thread, "path": path}
            try:
                self._door.sendall(json.dumps(line).encode() + b"\n")
            except OSError:
                self._let_all_go()
                return

    def _take_word(self) -> None:
        """Whoever listens lets a call go, or is gone: then nobody is held any more, for a job never depends on the harness."""
        try:
            heard = self._door.recv(LINE_SIZE_MAX)
        except OSError:
            heard = b""
        if not heard:
            self._loop.forget(self._door.fileno())
            self._let_all_go()
            return
        self._heard += heard
        *lines, rest = bytes(self._heard).split(b"\n")
        self._heard[:] = rest
        for line in lines:
            self._let_go(int(line))

    def _let_go(self, index: int) -> None:
        for hold in list(self._holds):
            hold.waits_for.discard(index)
            if not hold.waits_for:
                self._holds.remove(hold)
                hold.go_on()

    def _let_all_go(self) -> None:
        self._stops.forget()
        while self._holds:
            self._holds.pop(0).go_on()

    @staticmethod
    def _process_of(thread: int) -> int:
        try:
            return ThreadStatus(thread).process
        except OSError:
            return thread
