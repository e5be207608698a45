"""Faults of processes: terminate, kill, pause."""

import signal
from collections.abc import Sequence

from harness.capabilities import GraceExpirable, SelfContinuing, Signalable, Terminable
from harness.faults.active import OneWay, Scene, named
from harness.history import AttemptExited, Event, PodSeen, SigtermSeen
from harness.scenario.faults import Pause
from harness.undo import ContinueProcesses, NothingToUndo, Undo, identify


class ActiveTerminate(OneWay):
    """Seen when the victim was sent SIGTERM and then noticed it or ended; one that ignores it is seen when its grace ends it."""

    def __init__(self, scene: Scene) -> None:
        assert isinstance(scene.target, Terminable)
        self._scene, self._target = scene, scene.target
        self._pids: tuple[int, ...] = ()
        self._is_sent = False
        self._effect = ""

    def inject(self) -> str:
        """See ``ActiveFault``."""
        try:
            self._pids = self._target.terminate(self._scene.victim, cause="fault")
        except LookupError as error:
            raise self._scene.failed(error) from error
        return f"SIGTERM to {named(self._pids)}, SIGKILL when the grace period is over"

    def observe(self, events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        for event in events:
            self._is_sent = self._is_sent or self._scene.is_signal(event, cause="fault", signal="SIGTERM")
            self._effect = self._effect or self._noticed(event) or self._scene.exit_for(event, ("fault", "grace"))
        self._effect = self._effect or self._ended()
        return self._effect if self._is_sent else ""

    def _noticed(self, event: Event) -> str:
        if not isinstance(event, SigtermSeen) or not self._scene.concerns(event) or self._scene.victim.rank not in (-1, event.rank):
            return ""
        return f"the job noticed SIGTERM (rank {event.rank}, process {event.pid})"

    def _ended(self) -> str:
        """One rank's process may end without its attempt."""
        if self._scene.victim.rank < 0 or not isinstance(self._target, Signalable):
            return ""
        return _all_gone(self._target, self._pids)


class ActiveEndGrace(OneWay):
    """Seen when the victim was sent the platform's SIGKILL and ended by it; what left by itself at that moment was not hit."""

    def __init__(self, scene: Scene) -> None:
        assert isinstance(scene.target, GraceExpirable)
        self._scene, self._target = scene, scene.target
        self._pids: tuple[int, ...] = ()
        self._is_sent = False
        self._end = ""

    def inject(self) -> str:
        """See ``ActiveFault``."""
        with self._scene.injecting():
            self._pids = self._target.expire_grace(self._scene.victim)
        return f"the grace is over: SIGKILL to {named(self._pids)}"

    def observe(self, events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        for event in events:
            self._is_sent = self._is_sent or self._scene.is_signal(event, cause="grace", signal="SIGKILL")
            if isinstance(event, AttemptExited) and event.signal == signal.SIGKILL:
                self._end = self._end or self._scene.exit_for(event, ("grace",))
        if self._scene.victim.rank >= 0 and isinstance(self._target, Signalable):
            return _all_gone(self._target, self._pids) if self._is_sent else ""
        return self._end if self._is_sent else ""


class ActiveKill(OneWay):
    """Seen in the wait status of the attempt, for one rank in its process being gone; of several pods, which may end alone, in theirs."""

    def __init__(self, scene: Scene) -> None:
        assert isinstance(scene.target, Signalable)
        self._scene, self._target = scene, scene.target
        self._pids: tuple[int, ...] = ()
        self._killed: dict[str, str] = {}

    def inject(self) -> str:
        """See ``ActiveFault``."""
        try:
            self._pids = self._target.signal(self._scene.victim, signal.SIGKILL, cause="fault")
        except LookupError as error:
            raise self._scene.failed(error) from error
        return f"SIGKILL to {named(self._pids)}"

    def observe(self, events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        if self._scene.victim.rank >= 0:
            return _all_gone(self._target, self._pids)
        pods = (event for event in events if isinstance(event, PodSeen) and event.role == "host" and self._scene.concerns(event))
        self._killed |= {pod.uid: pod.name for pod in pods if pod.exit_code == 128 + signal.SIGKILL}
        if self._killed and len(self._killed) == len(self._pids):
            return f"pods {', '.join(self._killed.values())} ended with exit code {128 + signal.SIGKILL}"
        killed = [event for event in events if isinstance(event, AttemptExited) and event.signal == signal.SIGKILL]
        return next(filter(None, (self._scene.exit_for(event, ("fault",)) for event in killed)), "")


class ActivePause:
    """Seen in the state of the processes, as is its end."""

    def __init__(self, scene: Scene, fault: Pause) -> None:
        assert isinstance(scene.target, Signalable)
        self._scene, self._target = scene, scene.target
        self._pids: tuple[int, ...] = ()
        self.heal_after_s: float | None = fault.duration_s

    def undo(self) -> Undo:
        """See ``ActiveFault``."""
        return owe_continuing(self._scene, self._target)

    def inject(self) -> str:
        """See ``ActiveFault``."""
        try:
            self._pids = self._target.signal(self._scene.victim, signal.SIGSTOP, cause="fault")
        except LookupError as error:
            raise self._scene.failed(error) from error
        return f"SIGSTOP to {named(self._pids)}"

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        return all_stopped(self._target, self._pids)

    def heal(self) -> str:
        """See ``ActiveFault``."""
        return continue_processes(self._scene, self._target, self._pids)


def owe_continuing(scene: Scene, target: Signalable) -> Undo:
    """The undo of a stop, named before it happens; of processes elsewhere nothing here can be named.

    Raises:
        InjectionError: When the victim is not there.
    """
    with scene.injecting():
        pids = target.process_ids(scene.victim)
    if isinstance(target, SelfContinuing):
        return NothingToUndo(why=target.continues_by_itself)
    return ContinueProcesses(processes=identify(pids))


def continue_processes(scene: Scene, target: Signalable, pids: Sequence[int]) -> str:
    """Send SIGCONT to a victim and say what became of the processes that were stopped.

    Raises:
        HealError: When one of them is stopped still.
    """
    try:
        target.signal(scene.victim, signal.SIGCONT, cause="fault")
    except LookupError as error:
        return f"nothing left to continue: {error}"
    states = target.process_states(pids)
    stopped = [pid for pid in pids if states.get(pid) == "stopped"]
    if stopped:
        raise scene.unhealed(f"{named(stopped)} still stopped after SIGCONT")
    running = sum(states.get(pid) == "running" for pid in pids)
    return f"SIGCONT: {running} running, {len(pids) - running} gone"


def all_stopped(target: Signalable, pids: Sequence[int]) -> str:
    """Evidence that every one of the processes that is still there is stopped, or ""."""
    states = target.process_states(pids)
    there = [pid for pid in pids if states.get(pid, "gone") != "gone"]
    return f"{named(there)} stopped" if there and all(states[pid] == "stopped" for pid in there) else ""


def _all_gone(target: Signalable, pids: Sequence[int]) -> str:
    states = target.process_states(pids)
    return f"{named(pids)} gone" if pids and all(states.get(pid, "gone") == "gone" for pid in pids) else ""
