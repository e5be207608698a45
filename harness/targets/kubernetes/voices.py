"""Where the pods of a run speak: event files, logs, and the barrier of each task. Pods that were given up speak on and are heard."""

import heapq
import selectors
import socket
import struct
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from harness.capabilities import Launch
from harness.history import BarrierReached, Event, JobEvent, LogLine, ObservationLost
from harness.protocol.attempt_key import AttemptKey
from harness.protocol.barrier import Barrier
from harness.protocol.event_file import EventFile
from harness.protocol.job_lines import JobLineReader
from harness.protocol.log_patterns import LogPatternReader
from harness.protocol.output import JobOutput
from harness.targets.kubernetes.pod_log import NoSource, PodLog
from harness.targets.kubernetes.pod_processes import PodProcess, PodProcesses, pod_uid_of

READ_BYTES_A_POLL = 256 << 10
"""Of each pod: some milliseconds of reading."""

_CREDENTIALS = struct.Struct("3i")
"""Process, user and group. Source: https://man7.org/linux/man-pages/man7/unix.7.html (SO_PEERCRED)."""

KeyOfPod = Callable[[str], AttemptKey | None]
"""The attempt that a pod, by its uid, is of; None while nothing is known of that pod."""


class PodBarrier(Barrier):
    """The barrier of all pods of a task: it is there before the first of them starts. Who asks is known by the process that asks."""

    def __init__(
        self, path: Path, launch: Launch, *, reader_of: Callable[[str], JobLineReader | None], selector: selectors.BaseSelector
    ) -> None:
        super().__init__(path, JobLineReader(AttemptKey(0, 0), launch.epoch_s), armed=launch.armed, selector=selector)
        path.chmod(0o777)  # pods may run as another user
        self._reader_of = reader_of

    def _reader_for(self, peer: socket.socket) -> JobLineReader | None:
        return self._reader_of(pod_uid_of(_process_of(peer)))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Voice:
    """One pod's."""

    key: AttemptKey
    events: EventFile
    output: JobOutput
    patterns: LogPatternReader
    log: PodLog | None


class Voices:
    """All that is said in one run."""

    def __init__(self, launch: Launch, events_dir: Path, *, processes: PodProcesses, selector: selectors.BaseSelector) -> None:
        self._launch = launch
        self._processes = processes
        self._events_dir = events_dir
        self._selector = selector
        self._voices: dict[str, _Voice] = {}
        self._barriers: list[Barrier] = []
        self._held: list[BarrierReached] = []
        self._said: dict[tuple[AttemptKey, int], PodProcess] = {}

    def open_barrier(self, path: Path, key_of_pod: KeyOfPod) -> None:
        """Open the barrier of a task, before its object is submitted.

        Raises:
            OSError: When the socket cannot be made.
        """

        def reader_of(uid: str) -> JobLineReader | None:
            key = key_of_pod(uid)
            return None if key is None else self._reader(uid, key)

        self._barriers.append(PodBarrier(path, self._launch, reader_of=reader_of, selector=self._selector))

    def add(self, uid: str, name: str, key: AttemptKey, log: PodLog | None) -> None:
        """Begin to listen to a pod, which runs.

        Raises:
            StoreError: When its event file cannot be opened.
        """
        launch = self._launch
        events = EventFile(self._events_dir / f"{name}.jsonl", reader=self._reader(uid, key))
        output = JobOutput(key, stdout=NoSource() if log is None else log.source, stderr=NoSource())
        patterns = LogPatternReader(launch.log_patterns, steps=launch.steps)
        self._voices[uid] = _Voice(key=key, events=events, output=output, patterns=patterns, log=log)
        if log is not None:
            self._selector.register(log.source.descriptor, selectors.EVENT_READ)
            log.start()

    def has_spoken(self, name: str) -> bool:
        """Whether a pod of that name has said anything, heard or not: then it runs."""
        try:
            return (self._events_dir / f"{name}.jsonl").stat().st_size > 0
        except OSError:
            return False

    def hears(self, uid: str) -> bool:
        """Whether a pod is listened to."""
        return uid in self._voices

    def receive(self, now_s: float) -> None:
        """Let in who has come to the barrier: ``listen`` tells of them. That a pod comes there shows that it runs."""
        for barrier in self._barriers:
            self._held += barrier.receive(now_s)

    def listen(self, now_s: float) -> list[Event]:
        """What was said since, by time; who waits at the barrier comes last, and only when all that was said before it has been read."""
        streams = [self._hear(voice, now_s) for voice in self._voices.values()]
        said: list[Event] = list(heapq.merge(*streams, key=lambda event: event.t_s))
        if self.is_behind:
            return said
        held, self._held = self._held, []
        self._note_pids(held)
        return [*said, *held]

    @property
    def is_behind(self) -> bool:
        """Whether there is more to read than the last look could take."""
        return any(not (voice.events.is_caught_up and voice.output.is_drained) for voice in self._voices.values())

    def has_said_all(self, uid: str) -> bool:
        """Whether a pod that has ended was read to its end."""
        voice = self._voices.get(uid)
        return voice is None or (voice.events.is_caught_up and voice.output.is_drained and not voice.output.open_descriptors)

    def process_of(self, key: AttemptKey, rank: int) -> PodProcess:
        """The process that a rank of an attempt has last said it is; it may have ended since.

        Raises:
            LookupError: When it has said none.
        """
        if (key, rank) not in self._said:
            raise LookupError(f"rank {rank} of task {key.task} attempt {key.attempt} has not said its process id")
        return self._said[key, rank]

    def release(self, reached: BarrierReached) -> None:
        """Let a process go on that waits."""
        for barrier in self._barriers:
            barrier.release(reached)

    def close(self, now_s: float, *, ended: Collection[str] = ()) -> list[Event]:
        """Listen no more; returns last lines, and what was not recorded.

        Args:
            now_s: The time.
            ended: Pods, by uid, that had ended before we stopped any: their logs should have been read to the end.
        """
        last: list[Event] = []
        t_s = now_s - self._launch.epoch_s
        for uid, voice in self._voices.items():
            is_read = voice.output.is_drained and not voice.output.open_descriptors
            lines, lost = voice.output.finish(t_s)
            last += [*_with_patterns(voice, lines), *lost, *voice.events.finish(t_s)]
            if voice.log is not None:
                with suppress(KeyError):
                    self._selector.unregister(voice.log.source.descriptor)
                last += _unread(voice.log, t_s, is_read=is_read, has_ended=uid in ended)
                voice.log.close()
                last += _lost_by_rotation(voice.log, t_s)
        for barrier in self._barriers:
            barrier.close()
        self._voices.clear()
        self._barriers.clear()
        return last

    def _reader(self, uid: str, key: AttemptKey) -> JobLineReader:
        return JobLineReader(key, self._launch.epoch_s, partial(self._processes.here, uid))

    def _hear(self, voice: _Voice, now_s: float) -> Sequence[Event]:
        events = voice.events.read(now_s, READ_BYTES_A_POLL)
        self._note_pids(events)
        lines = voice.output.read(now_s - self._launch.epoch_s, READ_BYTES_A_POLL)
        if voice.log is not None and not voice.output.open_descriptors:
            with suppress(KeyError):  # at its end, a pipe would never let the loop sleep
                self._selector.unregister(voice.log.source.descriptor)
        return sorted([*events, *_with_patterns(voice, lines)], key=lambda event: event.t_s)

    def _note_pids(self, events: Sequence[JobEvent]) -> None:
        for event in events:
            if process := self._processes.heard(event.pid):
                self._said[AttemptKey(event.task, event.attempt), event.rank] = process


def _unread(log: PodLog, t_s: float, *, is_read: bool, has_ended: bool) -> list[ObservationLost]:
    """That a log was given up; one that we cut off ourselves, with its pod, lacks nothing that the job can be asked for."""
    why = log.failure
    if not why and has_ended and (log.is_cut or not is_read):
        why = "its pod was gone first" if log.is_cut else "it had not come to its end when we stopped reading"
    return [ObservationLost(t_s=t_s, what="logs", count=1, detail=f"the {log.name} was not read to its end: {why}")] if why else []


def _lost_by_rotation(log: PodLog, t_s: float) -> list[ObservationLost]:
    if not log.rotations:
        return []
    detail = f"times the {log.name} was rotated while nobody followed it: the lines at the end of the old one were not seen"
    return [ObservationLost(t_s=t_s, what="logs", count=log.rotations, detail=detail)]


def _with_patterns(voice: _Voice, lines: Sequence[LogLine]) -> list[Event]:
    stream: list[Event] = []
    for line in lines:
        stream.append(line)
        stream += voice.patterns.read(line)
    return stream


def _process_of(peer: socket.socket) -> int:
    """The process at the other end of a Unix socket, by its id on this machine; 0 where the system does not say."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return 0
    pid, _, _ = _CREDENTIALS.unpack(peer.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size))
    return int(pid)
