"""What a plan has used of its limits, over all its runs, whoever makes them, however often it is applied: a file for each plan.

A run is written down before it makes anything, and its end after all is taken away. One that has no end (its harness died, or could not
take its execution away) is counted on, up to all that it may cost: so a crash never makes a plan cheaper.
"""

import contextlib
import errno
import os
from datetime import datetime
from pathlib import Path

import msgspec

from harness.clock import Clock
from harness.errors import StoreError
from harness.targets.gcp.footprint import footprints_directory
from harness.targets.gcp.plan import Plan, sha256_of

KEPT_S = 30 * 86400.0
"""Nothing of a plan that old begins any more: it is applied within an hour, and its runs within its limit after that."""

WRITES_MAX = 3
"""A disk that is full cuts a line off once, and refuses the next one; a quota may do it again."""


class Share(msgspec.Struct, frozen=True, kw_only=True):
    """What one run of a plan has: GPUs at once, and GPU-hours at worst."""

    gpus: int
    gpu_hours: float


class Used(msgspec.Struct, frozen=True, kw_only=True):
    """What a plan has used: GPU-hours, and seconds since its first run began."""

    gpu_hours: float
    elapsed_s: float


class _Line(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A run has begun, with its share; or, without one, it is over."""

    run_id: str
    at: datetime
    share: Share | None = None


class PlanUsage:
    """Of one plan, of this user on this machine; several processes append to it at once."""

    def __init__(self, plan: Plan, clock: Clock) -> None:
        self._plan, self._clock = plan, clock
        self._path = footprints_directory() / "plans" / f"{sha256_of(plan)}.jsonl"

    def share_of(self, digest: str) -> Share:
        """What a run of a scenario, or of the uninterrupted one that it is compared with, has; of one that is not named, all."""
        for scenario in self._plan.scenarios:
            if digest and digest in (scenario.digest, scenario.uninterrupted):
                cost = scenario.exposure
                return Share(gpus=cost.gpus * cost.tasks, gpu_hours=cost.gpu_hours / cost.executions)
        return Share(gpus=self._plan.gpus, gpu_hours=self._plan.gpu_hours)

    def begin(self, run_id: str, share: Share) -> None:
        """Write down that a run begins.

        Raises:
            StoreError: When it cannot be written; nothing must be begun then.
        """
        self._forget_old()
        self._append(_Line(run_id=run_id, at=self._clock.utc(), share=share))

    def end(self, run_id: str) -> None:
        """Write down that it is over, and nothing of it runs any more.

        Raises:
            StoreError: When it cannot be written; it counts on then.
        """
        self._append(_Line(run_id=run_id, at=self._clock.utc()))

    def used(self) -> Used:
        """Up to now.

        Raises:
            StoreError: When it cannot be read.
        """
        now = self._clock.utc()
        began: dict[str, _Line] = {}
        ended: dict[str, datetime] = {}
        for line in self._lines():
            if line.share is not None:
                began.setdefault(line.run_id, line)
            else:
                ended[line.run_id] = line.at
        hours = sum(_hours(line, ended.get(run_id), now) for run_id, line in began.items())
        first = min((line.at for line in began.values()), default=now)
        return Used(gpu_hours=hours, elapsed_s=max(0.0, (now - first).total_seconds()))

    def _lines(self) -> list[_Line]:
        try:
            data = self._path.read_bytes()
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StoreError(path=self._path, attempted="read what the plan has used from", reason=error.strerror or str(error)) from error
        found: list[_Line] = []
        for line in data.splitlines():
            with contextlib.suppress(msgspec.MsgspecError):  # one that was cut off by a crash: what it was to tell did not happen
                found.append(msgspec.json.decode(line, type=_Line))
        return found

    def _append(self, line: _Line) -> None:
        """In one write, that is on the disk before anything follows from it; whatever was cut off before it stays a line of its own.

        Others append meanwhile, so what a full disk has cut off is not gone on with: the line is written again, whole, or it is an error.
        """
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                _write_whole_line(descriptor, b"\n" + msgspec.json.encode(line) + b"\n")
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise StoreError(path=self._path, attempted="write what the plan uses to", reason=error.strerror or str(error)) from error

    def _forget_old(self) -> None:
        oldest = self._clock.utc().timestamp() - KEPT_S
        for path in _files(self._path.parent):
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < oldest:
                    path.unlink()


def _write_whole_line(descriptor: int, line: bytes) -> None:
    for _ in range(WRITES_MAX):
        if os.write(descriptor, line) == len(line):
            return
    raise OSError(errno.ENOSPC, f"only part of a line could be written, {WRITES_MAX} times")


def _files(directory: Path) -> list[Path]:
    try:
        return list(directory.glob("*.jsonl"))
    except OSError:
        return []


def _hours(line: _Line, ended: datetime | None, now: datetime) -> float:
    assert line.share is not None
    hours = line.share.gpus * max(0.0, ((ended or now) - line.at).total_seconds()) / 3600.0
    return hours if ended is not None else min(hours, line.share.gpu_hours)
