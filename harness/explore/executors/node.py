"""What a process of a cluster keeps between its tasks: a station, and the blobs that it has got so far. Knows of no cluster."""

import shutil
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

import msgspec

from harness.clock import Clock
from harness.explore.executors.station import Station
from harness.explore.executors.wire import Answer, Setup, decode
from harness.explore.recipe import StateTask
from harness.targets.local.scratch import make_scratch_directory

Fetch = Callable[[Sequence[str]], Sequence[bytes]]
"""Gets contents by their SHA-256, in the same order."""


class Node:
    """One such process; its tasks come one after the other, by one setup after the other."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._template = b""
        self._station: Station | None = None
        self._root = Path()
        self._made = 0
        self._used_s = 0.0

    def try_state(self, template: bytes, task: StateTask, fetch: Fetch) -> Answer:
        """Try recovery from a state.

        Args:
            template: An encoded ``Setup`` without directories.
            task: The state.
            fetch: Asked for the blobs that are not here yet.

        Raises:
            OSError: When no worker can be started, or the disk is full.
            TimeoutError: When processes of a lost worker withstand SIGKILL.
        """
        station = self._open(template)
        self._keep({piece.content for piece in task.pieces if piece.kind == "file"}, fetch)
        answer = station.try_state(task)
        self._used_s = self._clock.monotonic_s()
        return answer

    def close(self) -> None:
        """End the worker and remove all that is here."""
        if self._station is not None:
            self._station.close()
            self._station = None
            shutil.rmtree(self._root, ignore_errors=True)

    def _open(self, template: bytes) -> Station:
        """The station by a setup; another one where it was set up otherwise, or where its worker is about to leave."""
        setup = decode(template, Setup)
        is_rested = self._clock.monotonic_s() - self._used_s > setup.idle_s_max / 2
        if is_rested or template != self._template:
            self.close()
        if self._station is None:
            self._template = template
            self._root = make_scratch_directory(setup.run_id)
            (self._root / "blobs").mkdir()
            self._station = Station(self._make_setup, self._clock)
        return self._station

    def _keep(self, contents: Collection[str], fetch: Fetch) -> None:
        """Have the blobs where the worker finds them, each as a whole."""
        blobs = self._root / "blobs"
        missing = sorted(content for content in contents if not (blobs / content).exists())
        for content, data in zip(missing, fetch(missing) if missing else (), strict=True):
            part = blobs / f"{content}.part"
            part.write_bytes(data)
            part.rename(blobs / content)

    def _make_setup(self) -> Setup:
        self._made += 1
        place, blobs = self._root / f"w{self._made}", self._root / "blobs"
        return msgspec.structs.replace(decode(self._template, Setup), place=str(place), blobs=str(blobs), owns=str(self._root))
