"""The reference emitter of the workload protocol (protocol.md): standard library only, made to be copied into a job.

Where nobody listens (``HARNESS_EVENTS`` absent) every call returns at once and the job runs as in production.
"""

import hashlib
import json
import os
import time

_events_path = os.environ.get("HARNESS_EVENTS", "")
_barrier_path = os.environ.get("HARNESS_BARRIER", "")
_armed = frozenset(os.environ.get("HARNESS_ARMED", "").split())
_task = int(os.environ.get("CLOUD_RUN_TASK_INDEX", "0"))
_attempt = int(os.environ.get("CLOUD_RUN_TASK_ATTEMPT", "0"))
_descriptor: int | None = None

if _barrier_path and _armed:
    import socket  # now: a signal handler that emits while it is half imported finds half a module


def digest(*parts: bytes | str) -> str:
    """Fingerprint bytes or text as 16 hexadecimal digits (the first 64 bits of SHA-256), parts told apart by their length."""
    sha = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        sha.update(len(data).to_bytes(8, "little"))
        sha.update(data)
    return sha.hexdigest()[:16]


def emit(event: str, *, rank: int = 0, **fields: object) -> None:
    """Append one event; block at the barrier before or after it where the schedule has armed it."""
    if not _events_path:
        return
    line = {"event": event, "t": time.monotonic(), "pid": os.getpid(), "task": _task, "attempt": _attempt, "rank": rank, **fields}
    _wait_at_barrier(line, "before")
    os.write(_events_file(), json.dumps(line, separators=(",", ":")).encode() + b"\n")
    _wait_at_barrier(line, "after")


def _events_file() -> int:
    global _descriptor
    if _descriptor is None:
        _descriptor = os.open(_events_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    return _descriptor


def _wait_at_barrier(line: dict[str, object], when: str) -> None:
    if not _barrier_path or f"{line['event']}:{when}" not in _armed:
        return
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as barrier:
            barrier.connect(_barrier_path)
            barrier.sendall(json.dumps({**line, "when": when}, separators=(",", ":")).encode() + b"\n")
            barrier.recv(1)
    except OSError:
        return  # the job never depends on the harness
