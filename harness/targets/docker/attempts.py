"""Attempts as containers: what each is made of, how it is started, and the end of what escaped from us."""

import contextlib
import os
import selectors
import shutil
from collections.abc import MutableMapping
from pathlib import Path

from harness.capabilities import Launch
from harness.clock import Clock
from harness.cloud_run.attempt import Attempt, AttemptParts, Voices
from harness.cloud_run.environment import CHECKPOINTS_AT, platform_variables
from harness.errors import TargetUnavailableError, WorkloadMissingError
from harness.protocol.attempt_key import AttemptKey
from harness.protocol.barrier import Barrier, make_socket_directory
from harness.protocol.event_file import EventFile
from harness.protocol.job_lines import JobLineReader
from harness.protocol.log_patterns import LogPatternReader
from harness.protocol.output import JobOutput
from harness.protocol.variables import Doors, protocol_variables
from harness.targets.docker.attached_output import AttachedOutput
from harness.targets.docker.container import END_ROUND_S, Container
from harness.targets.docker.engine import ContainerSpec, NotStartableError
from harness.targets.docker.footprint import remove_footprint, write_footprint
from harness.targets.docker.images import environment_mount
from harness.targets.docker.presence import open_engine
from harness.targets.docker.process_namespace import ProcessNamespace, is_first_of_a_namespace

EVENTS_AT, BARRIER_AT = "/harness/events", "/harness/barrier"

HELD_BYTES_MAX = 4 << 20
"""Of the first words of a container, read before its first process is known; more waits in the engine."""

END_KNOWN_S_MAX = 5.0
"""The engine knows of an end after a tenth of a second; what it does not know by then runs, and not here."""

PROGRAM_WORDS = ("executable file not found", "no such file or directory", "permission denied", "is a directory", "not a directory")
"""How runc says that a program is not there or is none."""


class DockerAttempts:
    """Makes the attempts of one execution; see ``harness.cloud_run.running.Attempts``."""

    def __init__(self, launch: Launch, clock: Clock, image: str) -> None:
        self._launch = launch
        self._clock = clock
        self._image = image
        self._sockets: Path | None = None
        self._has_started = False

    def open(self, resources: contextlib.ExitStack, held: MutableMapping[AttemptKey, Attempt]) -> None:
        """See ``Attempts``."""
        self._engine = resources.enter_context(open_engine())
        write_footprint(self._launch.run_id, self._engine.host)
        if self._launch.armed:
            self._sockets = make_socket_directory(self._launch.run_id)
            resources.callback(shutil.rmtree, self._sockets, ignore_errors=True)
        resources.callback(self._end_escaped, held)

    def start(self, key: AttemptKey, selector: selectors.BaseSelector) -> Attempt:
        """See ``Attempts``. It takes some 0.4 s of the loop's time, the engine's share of it.

        Raises:
            WorkloadMissingError: When the image has no such program.
            BrokenHarnessError: When the engine refuses for another reason, or does not answer.
            TargetUnavailableError: When the engine's processes are not on this machine.
        """
        launch, namespace = self._launch, ProcessNamespace()
        patterns = LogPatternReader(launch.log_patterns, steps=launch.steps)
        reader = JobLineReader(key, launch.epoch_s, namespace.here)
        events_dir = launch.logs_dir / f"task{key.task}-attempt{key.attempt}"
        events_dir.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as undo:
            events = EventFile(events_dir / "events.jsonl", reader=reader)
            undo.callback(events.close)
            barrier_dir, barrier = None, None
            if self._sockets is not None:
                barrier_dir = self._sockets / f"{key.task}-{key.attempt}"
                barrier_dir.mkdir()
                barrier = Barrier(barrier_dir / "barrier", reader, armed=launch.armed, selector=selector)
                undo.callback(barrier.close)
            container = self._create(key, events_dir, barrier_dir)
            undo.callback(self._engine.remove, container)
            output = AttachedOutput(self._engine.attach(container))
            undo.callback(output.close)
            started_at_s = self._clock.monotonic_s()
            self._run(container, namespace, output)
            undo.pop_all()
        processes = Container(container, engine=self._engine, output=output, namespace=namespace, memory_mib=launch.memory_mib)
        lines = JobOutput(key, stdout=output.stdout, stderr=output.stderr)
        voices = Voices(events=events, barrier=barrier, output=lines, patterns=patterns)
        return Attempt(key, launch, parts=AttemptParts(processes=processes, voices=voices, started_at_s=started_at_s), selector=selector)

    def took(self, attempt: Attempt) -> None:
        """See ``Attempts``. Its label makes it ours from the moment it was made."""
        del attempt
        self._has_started = True

    def _create(self, key: AttemptKey, events_dir: Path, barrier_dir: Path | None) -> str:
        launch = self._launch
        tree = launch.root if launch.root.is_absolute() and launch.directory.is_relative_to(launch.root) else launch.directory
        mounts = [(launch.checkpoint_dir, CHECKPOINTS_AT, True), (events_dir, EVENTS_AT, True), (tree, str(tree), False)]
        mounts += environment_mount(self._image)
        if barrier_dir is not None:
            mounts.append((barrier_dir, BARRIER_AT, False))
        doors = Doors(events=f"{EVENTS_AT}/events.jsonl", barrier="" if barrier_dir is None else f"{BARRIER_AT}/barrier")
        spec = ContainerSpec(
            image=self._image,
            command=launch.command,
            directory=str(launch.directory),
            environment={
                **launch.environment,
                **platform_variables(launch, key, CHECKPOINTS_AT),
                **protocol_variables(launch.run_id, doors, launch.armed),
            },
            mounts=mounts,
            user=_user(),
            memory_mib=launch.memory_mib,
        )
        return self._engine.create(launch.run_id, f"chaos-harness-{launch.run_id}-{key.task}-{key.attempt}", spec)

    def _run(self, container: str, namespace: ProcessNamespace, output: AttachedOutput) -> None:
        """Start a container and learn its first process, which may have ended by then."""
        launch = self._launch
        try:
            self._engine.start(container)
        except NotStartableError as error:
            if not self._has_started and any(words in error.reason for words in PROGRAM_WORDS):
                raise WorkloadMissingError(workload=launch.job, program=launch.command[0], directory=launch.directory) from error
            raise
        namespace.begin(self._first_process(container, output))

    def _first_process(self, container: str, output: AttachedOutput) -> int:
        """The first process by its id here; 0 when it has ended already, which the engine learns a moment after the kernel.

        Raises:
            TargetUnavailableError: When the engine goes on to say that it runs, and it does not run here.
        """
        deadline_s = self._clock.monotonic_s() + END_KNOWN_S_MAX
        while True:
            output.hold(HELD_BYTES_MAX)
            state = self._engine.state(container)
            if state is not None and (not state.pid or is_first_of_a_namespace(state.pid)):
                return state.pid
            if self._clock.monotonic_s() >= deadline_s:
                named = "no process" if state is None else f"process {state.pid}, which is no container's first process on this machine"
                raise TargetUnavailableError(
                    target="docker",
                    reason=f"the engine names {named}",
                    advice="use an engine on this machine itself: exact signals need its processes here",
                )
            self._clock.sleep(END_ROUND_S)

    def _end_escaped(self, held: MutableMapping[AttemptKey, Attempt]) -> None:
        """What carries the run id and is still there, in whatever way its end has failed."""
        while held:
            _, attempt = held.popitem()
            attempt.finish(self._clock.monotonic_s())
        for container, _ in self._engine.containers_of(self._launch.run_id):
            self._engine.remove(container)
        remove_footprint(self._launch.run_id)


def _user() -> str:
    """The image's user; but as ourselves where we are not root: what it writes must be ours to read, and its processes ours to signal."""
    return "" if os.geteuid() == 0 else f"{os.geteuid()}:{os.getegid()}"
