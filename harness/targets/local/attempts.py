"""Attempts as groups of processes: how each is started, and the end of what escaped from it."""

import contextlib
import selectors
import shutil
from collections.abc import MutableMapping
from pathlib import Path

from harness.capabilities import Launch
from harness.clock import Clock
from harness.cloud_run.attempt import Attempt, AttemptParts, Voices
from harness.protocol.attempt_key import AttemptKey
from harness.protocol.barrier import Barrier, make_socket_directory
from harness.protocol.event_file import EventFile
from harness.protocol.job_lines import JobLineReader
from harness.protocol.log_patterns import LogPatternReader
from harness.protocol.output import JobOutput, PipeSource
from harness.targets.local.environment import environment_of, event_path, marks_of
from harness.targets.local.process_group import ProcessGroup
from harness.targets.local.processes import end_processes
from harness.targets.local.scratch import make_scratch_directory, remove_scratch_directories
from harness.targets.local.stops import StopsDoor, held_at
from harness.targets.local.storage import StorageInForce
from harness.targets.local.storage_rules import StorageRules, interposed
from harness.targets.local.subreaper import subreaper


class LocalAttempts:
    """Makes the attempts of one execution; see ``harness.cloud_run.running.Attempts``.

    Attributes:
        storage: The storage rules in force.
    """

    def __init__(self, launch: Launch, clock: Clock) -> None:
        self.storage = StorageInForce()
        self._launch = launch
        self._clock = clock
        self._sockets: Path | None = None

    def open(self, resources: contextlib.ExitStack, held: MutableMapping[AttemptKey, Attempt]) -> None:
        """See ``Attempts``."""
        if self._launch.armed or self._launch.interpose_storage or self._launch.stops:
            self._sockets = make_socket_directory(self._launch.run_id)
            resources.callback(shutil.rmtree, self._sockets, ignore_errors=True)
        resources.callback(remove_scratch_directories, self._launch.run_id)  # of an attempt that an interrupt kept from being held
        resources.callback(subreaper.release, self)  # before it is acquired: an interrupt may come between the two
        subreaper.acquire(self)
        resources.callback(self._end_escaped, held)

    def start(self, key: AttemptKey, selector: selectors.BaseSelector) -> Attempt:
        """See ``Attempts``."""
        launch, control_path = self._launch, self._socket_path("control", key, is_needed=self._launch.interpose_storage)
        barrier_path = self._socket_path("barrier", key, is_needed=bool(launch.armed))
        patterns = LogPatternReader(launch.log_patterns, steps=launch.steps)
        command = launch.command
        if control_path is not None:
            rule = self.storage.rule_for(key.task)
            command = interposed(command, control=control_path, root=launch.checkpoint_path, rule=rule)
        door_path = self._socket_path("stops", key, is_needed=bool(launch.stops))
        if door_path is not None:
            command = held_at(command, launch.stops, door=door_path, root=launch.checkpoint_dir, events=event_path(launch, key))
        with contextlib.ExitStack() as undo:
            belongings = undo.enter_context(contextlib.ExitStack())
            scratch = make_scratch_directory(launch.run_id)
            belongings.callback(shutil.rmtree, scratch, ignore_errors=True)
            reader = JobLineReader(key, launch.epoch_s)
            events = EventFile(event_path(launch, key), reader=reader)
            undo.callback(events.close)
            barrier = None
            if barrier_path is not None:
                barrier = Barrier(barrier_path, reader, armed=launch.armed, selector=selector)
                undo.callback(barrier.close)
            stops = None
            if door_path is not None:
                stops = StopsDoor(door_path, key, launch.stops, epoch_s=launch.epoch_s, selector=selector)
                undo.callback(stops.close)
            environment = environment_of(launch, key, barrier_path, scratch)
            started_at_s = self._clock.monotonic_s()
            processes = ProcessGroup(
                command, directory=launch.directory, environment=environment, marks=marks_of(launch, key), is_held=door_path is not None
            )
            undo.pop_all()
        output = JobOutput(key, stdout=PipeSource(processes.stdout), stderr=PipeSource(processes.stderr))
        voices = Voices(events=events, barrier=barrier, output=output, patterns=patterns, stops=stops)
        attempt = Attempt(
            key,
            launch,
            parts=AttemptParts(processes=processes, voices=voices, started_at_s=started_at_s, belongings=belongings),
            selector=selector,
        )
        self.storage.note(key.task, None if control_path is None else StorageRules(control_path))
        return attempt

    def took(self, attempt: Attempt) -> None:
        """See ``Attempts``. Only now is it a leader: an interrupt between its start and this loses nobody."""
        subreaper.add_leader(attempt.processes.pid)

    def _socket_path(self, name: str, key: AttemptKey, *, is_needed: bool) -> Path | None:
        return self._sockets / f"{name}-{key.task}-{key.attempt}" if is_needed and self._sockets is not None else None

    def _end_escaped(self, held: MutableMapping[AttemptKey, Attempt]) -> None:
        """What no attempt knew as its own, and everything when its end failed; no look at all processes where none can be ours."""
        if held or subreaper.may_have_orphans():
            end_processes(self._launch.run_id, self._clock)
        while held:
            _, attempt = held.popitem()
            subreaper.remove_leader(attempt.processes.pid)
            subreaper.reap(attempt.processes.pid)
            attempt.finish(self._clock.monotonic_s())
