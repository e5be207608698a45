"""What the agent says: lines in numbered files that never change once they are whole, written by a thread of their own.

Storage may be slow or fail for a while: whoever speaks never waits for it. A file that could not be written is written again under the same
number, with the same content, so numbers have no gaps and nothing is said twice. What there was no room for is counted, and told.
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections import Counter, deque
from typing import Callable  # noqa: UP035  a container may have Python 3.8

from harness.targets.gcp.agent.clock import monotonic_s

FILE_BYTES_MAX = 1 << 20
"""Of one file; a line that is longer has one of its own."""

HELD_BYTES_MAX = 32 << 20
"""Of what waits for storage: the container's memory is the job's."""

AGAIN_S_MIN, AGAIN_S_MAX = 0.1, 5.0
"""Between two tries to write a file."""

DISPENSABLE = frozenset({"event", "alive"})
"""What is left out first where there is no room: the rest says where the job stands."""

Write = Callable[[str, bytes, bool], None]
"""Path, content, whether the file must be a new one."""


def file_name(number: int, ending: str) -> str:
    """The name of a numbered file."""
    return f"{number:08d}.{ending}"


def number_of(name: str) -> int:
    """The number of a numbered file; 0: it is none."""
    stem = name.partition(".")[0]
    return int(stem) if stem.isdecimal() and len(stem) <= 9 else 0


def write_file(path: str, data: bytes, must_be_new: bool) -> None:  # noqa: FBT001  as the type says
    """Write a file whole.

    Raises:
        OSError: When storage did not take it, or not all of it; part of it may be there.
    """
    os.makedirs(os.path.dirname(path), exist_ok=True)  # noqa: PTH103, PTH120  pathlib would be slower
    how = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_EXCL if must_be_new else os.O_TRUNC)
    descriptor = os.open(path, how, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
    finally:
        os.close(descriptor)  # where an object is made only now, as by gcsfuse, this is what fails


class Reporter:
    """Says lines in order.

    Args:
        directory: Of the attempt.
        every_s: What is not urgent waits at most so long for company.
        write: Puts a file into storage.
    """

    def __init__(self, directory: str, *, every_s: float, write: Write = write_file) -> None:
        self._directory = directory
        self._every_s = every_s
        self._write = write
        self._lines: deque[tuple[str, bytes]] = deque()
        self._bytes = 0
        self._lost: Counter[str] = Counter()
        self._next = 0
        self._unwritten: tuple[int, bytes, int] | None = None
        self._is_urgent = self._is_closing = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="reports", daemon=True)

    def start(self) -> None:
        """Begin to write."""
        self._thread.start()

    def say(self, kind: str, *, is_urgent: bool = False, **fields: object) -> None:
        """Say a line; it goes out soon, or at once."""
        line = json.dumps({"kind": kind, "at": monotonic_s(), **fields}, separators=(",", ":")).encode() + b"\n"
        with self._changed:
            if self._bytes + len(line) > HELD_BYTES_MAX and kind in DISPENSABLE:
                self._lost[kind] += 1
                return
            self._lines.append((kind, line))
            self._bytes += len(line)
            self._is_urgent |= is_urgent
            if is_urgent:
                self._changed.notify()

    def say_lost(self, what: str, count: int) -> None:
        """Say that something will never be said."""
        with self._changed:
            self._lost[what] += count

    def close(self, deadline_s: float) -> int:
        """Say the rest, until a moment of the monotonic clock; returns how many lines were not said."""
        with self._changed:
            self._is_closing = self._is_urgent = True
            self._changed.notify()
        self._thread.join(max(0.0, deadline_s - monotonic_s()))
        with self._changed:
            held = self._unwritten[2] if self._unwritten is not None else 0
            return len(self._lines) + held + sum(self._lost.values())

    def _run(self) -> None:
        delay_s = AGAIN_S_MIN
        while True:
            with self._changed:
                if not self._is_urgent:
                    self._changed.wait(self._every_s)
                self._is_urgent = False
                self._take()
                if self._unwritten is None:
                    if self._is_closing:
                        return
                    continue
            if self._put():
                delay_s = AGAIN_S_MIN
                with self._changed:
                    self._is_urgent |= bool(self._lines) or self._is_closing
                continue
            with self._changed:
                self._changed.wait(delay_s)
                self._is_urgent = True
            delay_s = min(AGAIN_S_MAX, delay_s * 2)

    def _take(self) -> None:
        """Make a file of what there is, if the one before is written."""
        if self._unwritten is not None:
            return
        if self._lost:
            for what, count in sorted(self._lost.items()):
                told = json.dumps({"kind": "lost", "at": monotonic_s(), "what": what, "count": count}, separators=(",", ":"))
                self._lines.append(("lost", told.encode() + b"\n"))
                self._bytes += len(told) + 1
            self._lost.clear()
        taken: list[bytes] = []
        size = 0
        while self._lines and (not taken or size + len(self._lines[0][1]) <= FILE_BYTES_MAX):
            line = self._lines.popleft()[1]
            taken.append(line)
            size += len(line)
        self._bytes -= size
        if taken:
            self._next = self._next or self._first_free()
            self._unwritten = (self._next, b"".join(taken) + trailer(self._next, len(taken)), len(taken))
            self._is_new = True

    def _put(self) -> bool:
        """Write the file; whether it is written."""
        assert self._unwritten is not None
        number, data, lines = self._unwritten
        path = os.path.join(self._directory, file_name(number, "jsonl"))  # noqa: PTH118
        must_be_new, self._is_new = self._is_new, False
        try:
            self._write(path, data, must_be_new)
        except FileExistsError:  # another process of the same attempt has spoken
            body = data[: data.rindex(b"\n", 0, -1) + 1]
            self._unwritten, self._is_new = (number + 1, body + trailer(number + 1, lines), lines), True
            return False
        except OSError:
            return False
        with self._changed:
            self._unwritten, self._next = None, number + 1
        return True

    def _first_free(self) -> int:
        """The first number that nobody has used; 1 where that cannot be told."""
        with contextlib.suppress(OSError):
            return max(map(number_of, os.listdir(self._directory)), default=0) + 1
        return 1


def trailer(number: int, lines: int) -> bytes:
    """The last line of a file: who reads it knows that the file is whole."""
    return json.dumps({"kind": "end", "number": number, "lines": lines}, separators=(",", ":")).encode() + b"\n"
