"""The attempts of an execution as their agents tell of them: reports in, events out.

An agent's own stamps decide when things happened; what it said is told in its order. Where it could not speak any more, the platform's word
about the attempt stands in for it, and what that does not say is told to be lost.
"""

from harness.capabilities import Launch
from harness.history import BarrierReached, Event
from harness.protocol.attempt_key import WHOLE_ATTEMPT, AttemptKey
from harness.targets.gcp.attempt import Attempt
from harness.targets.gcp.attempt_exits import AttemptExits, Ours
from harness.targets.gcp.attempt_words import lost, named
from harness.targets.gcp.clock_offsets import SourceTimes
from harness.targets.gcp.mailbox import Said
from harness.targets.gcp.report_hearing import ReportHearing


class Attempts:
    """All attempts of one execution.

    Args:
        launch: What runs.

    Attributes:
        by_key: Those that were heard of.
        is_cancelled: Whether we have cancelled the execution.
        is_stopping: Whether we end the run.
    """

    def __init__(self, launch: Launch) -> None:
        self.by_key: dict[AttemptKey, Attempt] = {}
        self.is_cancelled = self.is_stopping = False
        self._launch = launch
        self._asked_s: dict[tuple[AttemptKey, int], float] = {}
        self._held: list[tuple[BarrierReached, int]] = []
        self._reports = ReportHearing(launch, ours=self._ours, held=self._hold)
        self._exits = AttemptExits(launch, ours=self._ours, is_cancelled=lambda: self.is_cancelled)

    def attempt(self, key: AttemptKey) -> Attempt:
        """The attempt, known or not."""
        if key not in self.by_key:
            self.by_key[key] = Attempt(key, SourceTimes(epoch_s=self._launch.epoch_s))
        return self.by_key[key]

    def find(self, key: AttemptKey) -> Attempt:
        """An attempt whose job runs.

        Raises:
            LookupError: When there is none.
        """
        found = self.by_key.get(key)
        if found is None or not found.is_running:
            raise LookupError(f"attempt {key.attempt} of task {key.task} does not run")
        return found

    def is_preceded(self, key: AttemptKey) -> bool:
        """Whether the end of the attempt before it was told, or there is none before it."""
        if key.attempt == 0:
            return True
        before = self.by_key.get(AttemptKey(key.task, key.attempt - 1))
        return before is not None and before.is_over

    def note_order(self, key: AttemptKey, number: int, *, asked_s: float, pid: int = WHOLE_ATTEMPT, rank: int = WHOLE_ATTEMPT) -> None:
        """An order was given, which concerns a rank."""
        self._asked_s[key, number] = asked_s
        self.attempt(key).rank_of[pid] = rank

    def hear(self, said: Said) -> list[Event]:
        """What an agent has said, as events."""
        attempt = self.attempt(said.key)
        events: list[Event] = []
        for report in said.reports:
            attempt.times.offset.seen(report.at, said.seen_s)
            asked_s = self._asked_s.pop((said.key, report.order), None) if report.order else None
            if asked_s is not None:
                attempt.times.offset.answered(asked_s, report.at, said.seen_s)
            events += self._reports.hear(attempt, report, said.seen_s)
        if attempt.times.offset.jumps > attempt.jumps:
            attempt.jumps = attempt.times.offset.jumps
            detail = f"{named(said.key)}: its clock jumped against ours: its times before and after cannot be compared"
            events.append(lost(self._launch, said.seen_s, "moments", 1, detail))
        if said.lost:
            events.append(lost(self._launch, said.seen_s, "events", 1, f"{named(said.key)}: {said.lost}"))
        return events

    def take_barrier(self, reached: BarrierReached) -> tuple[AttemptKey, int] | None:
        """Who waits there, once: the attempt, and the number that its agent gave; None: nobody does."""
        for held in self._held:
            if held[0] == reached:
                self._held.remove(held)
                return AttemptKey(reached.task, reached.attempt), held[1]
        return None

    def pid_of(self, key: AttemptKey, rank: int) -> int:
        """The process id that a rank has said; ``WHOLE_ATTEMPT`` stays what it is.

        Raises:
            LookupError: When it has said none.
        """
        if rank == WHOLE_ATTEMPT:
            return WHOLE_ATTEMPT
        pids = self.attempt(key).rank_pids
        if rank not in pids:
            raise LookupError(f"rank {rank} of task {key.task} attempt {key.attempt} has not said its process id")
        return pids[rank]

    def state_of(self, pid: int) -> str:
        """The state of a process, as its agent has told it last; one that has said who it is, and was not signalled, goes on."""
        for attempt in sorted(self.by_key.values(), key=lambda each: each.key, reverse=True):
            if pid in attempt.states or pid in (attempt.pid, *attempt.rank_pids.values()):
                return attempt.states.get(pid, "running") if attempt.is_running else "gone"
        return "gone"

    # ---- ends --------------------------------------------------------------------------------------------------------

    def tell_exit(self, attempt: Attempt, now_s: float) -> list[Event]:
        """The end of an attempt, by its agent's last word."""
        return self._exits.tell_exit(attempt, now_s)

    def tell_silent_exit(self, attempt: Attempt, now_s: float, *, exit_code: int | None, number: int | None) -> list[Event]:
        """The end of an attempt whose agent has no last word, by the platform's; with neither code nor signal nobody knows how it ended."""
        return self._exits.tell_silent_exit(attempt, now_s, exit_code=exit_code, number=number)

    def _ours(self) -> Ours:
        if self.is_stopping:
            return "stop"
        return "cancel" if self.is_cancelled else ""

    def _hold(self, reached: BarrierReached, number: int) -> None:
        self._held.append((reached, number))
