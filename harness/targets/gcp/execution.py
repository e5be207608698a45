"""One execution on Cloud Run while it lasts: begun, looked at from three sides (agents, platform, log), and taken away."""

import threading
from collections.abc import Callable
from dataclasses import replace
from random import Random

from harness.errors import BrokenHarnessError
from harness.history import BarrierReached, Event, ExecutionFinished, ExecutionStarted, LogLine, ObservationLost, TaskFinished
from harness.protocol.attempt_key import AttemptKey
from harness.protocol.log_patterns import LogPatternReader
from harness.targets.gcp.agent_archive import ARCHIVE_NAME, build_archive
from harness.targets.gcp.agent_following import AgentFollowing
from harness.targets.gcp.agent_orders import AgentOrders
from harness.targets.gcp.attempts import Attempts
from harness.targets.gcp.ends import Ends
from harness.targets.gcp.execution_end import end_heard, end_unheard
from harness.targets.gcp.failures import CallError
from harness.targets.gcp.grounds import Grounds
from harness.targets.gcp.log_following import LogFollowing
from harness.targets.gcp.log_reader import Entries, LogReader
from harness.targets.gcp.log_reading import entry_pages
from harness.targets.gcp.mailbox import ReportReader, Said
from harness.targets.gcp.playing import PlayedLines
from harness.targets.gcp.polling import JOINED_S, Poller
from harness.targets.gcp.startup import Startup, is_starting, startup_s_max
from harness.targets.gcp.storage import RunStorage
from harness.targets.gcp.submission import Jobs, Running
from harness.targets.gcp.watching import ExecutionWatcher, Sight, Standing


class GcpExecution:
    """Begun by ``begin``, moved by ``poll``, ended by itself or by ``end_all``, freed by ``close``.

    Args:
        grounds: What it works with.
        job: Full name of the job.
        beat: Called now and then while something takes long.

    Attributes:
        grounds: What it works with.
        attempts: What agents have told.
        storage: The run's checkpoints.
        startup: How long it has waited for containers.
        orders: To its agents.
        pending: Events that the next ``poll`` returns.
        name: Full; empty before it was begun.
    """

    def __init__(self, grounds: Grounds, job: str, *, beat: Callable[[], None] = lambda: None) -> None:
        self.grounds, self.job = grounds, job
        self.jobs = Jobs(grounds.clients, grounds.caller)
        self.attempts = Attempts(grounds.launch)
        self.storage = RunStorage(grounds, beat=beat)
        self.startup = Startup(startup_s_max(grounds.launch.max_retries))
        self.pending: list[Event] = []
        self.name = ""
        self._news = threading.Event()
        self._agents = AgentFollowing(grounds, self.attempts)
        self._log = LogFollowing(grounds, self._news)
        self.orders = AgentOrders(grounds, self.attempts, self._agents, news=self._news, heard=self._keep)
        self._standing = Standing()
        LogPatternReader(grounds.launch.log_patterns, steps=grounds.launch.steps)  # refuses a pattern that stands for nothing
        self._started: set[AttemptKey] = set()
        self._pollers: list[Poller[list[Said]] | Poller[Sight] | Poller[Entries]] = []
        self._ends: Ends | None = None
        self._is_closed = False

    # ---- the course --------------------------------------------------------------------------------------------------

    def begin(self) -> None:
        """Run the job, which is there, with its agent in the bucket.

        Raises:
            CallError: When the bucket or Cloud Run does not do it.
        """
        grounds = self.grounds
        grounds.agent.write(ARCHIVE_NAME, build_archive())
        for prefix in (grounds.checkpoints, grounds.agent.below("orders"), grounds.agent.below("said")):
            prefix.write("", b"", generation=None)  # a directory, as gcsfuse knows it
        running = self.jobs.run(self.job)
        self.name = running.name
        self._watch(running)
        launch = grounds.launch
        self.pending.append(
            ExecutionStarted(
                t_s=grounds.t_s(),
                execution=self.short_name,
                tasks=launch.tasks,
                max_retries=launch.max_retries,
                timeout_s=launch.timeout_s,
                grace_s=launch.grace_s,
            )
        )

    @property
    def short_name(self) -> str:
        """The last part of the execution's name."""
        return self.name.rpartition("/")[2]

    @property
    def is_over(self) -> bool:
        """Whether all has ended and was told."""
        return self._ends is not None and self._ends.is_complete and not self.pending

    @property
    def is_over_there(self) -> bool:
        """Whether Cloud Run was seen to have ended it, told or not."""
        return self._standing.execution.is_over

    @property
    def is_settling(self) -> bool:
        """Whether it has ended, and the log of it is waited for."""
        return self._ends is not None and self._ends.is_settling

    def poll(self) -> list[Event]:
        """Take in what was seen since, and give the orders that are due.

        Raises:
            HarnessError: When something could not be seen or done for long, or somebody has deleted the execution.
        """
        self._news.clear()
        ends = self._ends
        if ends is None:
            return []
        events, self.pending = self.pending, []
        events += self.storage.push()
        self._start_due()
        events += self._hear(ends)
        launch = self.grounds.launch
        self.startup.note(is_starting=is_starting(launch, self.attempts, self._standing), now_s=self.grounds.clock.monotonic_s())
        events += ends.tell(self._standing, self._log.book)
        events += self.storage.follow(events)
        for waiting in self._agents.take_own_waiters():
            self.release(waiting)
        return _in_order(events)

    def wait(self, timeout_s: float) -> None:
        """Until there is something new, or the time is over; not for long, since what has not come in time is told without news."""
        if not self.pending:
            self._news.wait(max(0.0, min(timeout_s, self.grounds.pace.watch_s)))

    def say(self, text: str) -> LogLine:
        """A line of ours."""
        return LogLine(t_s=self.grounds.t_s(), stream="system", text=text, severity="NOTICE")

    # ---- orders ------------------------------------------------------------------------------------------------------

    def release(self, reached: BarrierReached) -> None:
        """Let one go that waits at the barrier; nothing happens when it is gone. What a fault has changed is in the bucket before."""
        self.pending += self.storage.push()
        held = self.attempts.take_barrier(reached)
        if held is not None and self.attempts.attempt(held[0]).is_running:
            self.orders.give(held[0], "release", barrier=held[1])

    def cancel(self) -> None:
        """Cancel the execution.

        Raises:
            CallError: When Cloud Run does not do it.
        """
        try:
            self.jobs.cancel(self.name)
        except CallError as error:
            self.attempts.is_cancelled = self.attempts.is_cancelled or error.may_be_done
            self.pending.append(self.say(f"The execution could not be cancelled: {error}"))
            raise
        self.attempts.is_cancelled = True
        self._hurry()

    # ---- the end -----------------------------------------------------------------------------------------------------

    def end_all(self, last: list[Event], *, deadline_s: float, is_heard: bool = True) -> None:
        """Cancel and kill what runs, and hear the rest; what was seen until then is added to ``last``, whatever fails.

        Without ``is_heard`` nothing is judged any more: neither the log nor the bucket is read, however much of them there is.

        Raises:
            CallError: When it could not be ended, or was not seen to end.
        """
        if not self.name:
            return
        self.attempts.is_stopping = True
        if is_heard:
            end_heard(self, last, deadline_s)
            last += self.storage.pull()
            return
        for poller in self._pollers:
            poller.end()
        end_unheard(self, self.grounds.clock.monotonic_s() + deadline_s)

    def close(self) -> None:
        """Look no more."""
        if self._is_closed:
            return
        self._is_closed = True
        for poller in self._pollers:
            poller.end()
        until_s = self.grounds.clock.monotonic_s() + JOINED_S
        for poller in self._pollers:
            poller.stop(until_s - self.grounds.clock.monotonic_s())

    # ---- looking -----------------------------------------------------------------------------------------------------

    def _watch(self, running: Running) -> None:
        grounds, news = self.grounds, self._news
        pace, project = grounds.pace, grounds.place.project
        if running.created is not None:
            self._log.book.note_made(running.created, asked_s=running.asked_s, seen_s=running.seen_s)
        reports = self._agents.watch(ReportReader(_own(grounds, 1).agent.below("said"), grounds.clock), news)
        watcher = ExecutionWatcher(grounds.clients, _own(grounds, 2).caller, self.name)
        self._sights: Poller[Sight] = Poller(
            "watch", watcher.look, every_s=pace.watch_s, longest_s=pace.watch_longest_s, is_news=_NewSight(), news=news
        )
        log = LogReader(entry_pages(grounds.clients, _own(grounds, 3).caller, project), project=project, execution=self.short_name)
        entries = self._log.poller_of(log)
        self._log.watch(log, entries)
        self._pollers = [reports, self._sights, entries]
        played = PlayedLines(
            grounds.clients, grounds.caller, place=grounds.place, job=self.job.rpartition("/")[2], execution=self.short_name
        )
        self._ends = Ends(grounds, self.attempts, played=played, hurry=self._hurry, heard_until_s=lambda: self._agents.heard_until_s)
        for poller in self._pollers:
            poller.start()

    def _hear(self, ends: Ends) -> list[Event]:
        """All three sides, each in its own order."""
        events = self._agents.hear()
        self._agents.forget_ended()
        events += self._log.hear(ends)
        sights = self._sights.take()
        for sight in sights:
            self._standing.take(sight)
        if any(sight.is_gone for sight in sights):
            raise BrokenHarnessError(
                f"execution {self.name} is gone: somebody has deleted it, or its job, while it ran; see who else works on the project"
            )
        return events

    def _start_due(self) -> None:
        """Start attempts whose predecessor's end was told in an earlier poll: what acts on that end has acted."""
        for attempt in list(self.attempts.by_key.values()):
            if attempt.hello is None or attempt.pid or attempt.exit is not None or attempt.is_over or attempt.key in self._started:
                continue
            if self.attempts.is_preceded(attempt.key):
                self._started.add(attempt.key)
                self.orders.give(attempt.key, "start")

    def _keep(self, events: list[Event]) -> None:
        self.pending += events

    def _hurry(self) -> None:
        for poller in self._pollers:
            poller.hurry()


class _NewSight:
    """Whether a look at the execution shows anything new."""

    def __init__(self) -> None:
        self._last: Sight | None = None

    def __call__(self, sight: Sight) -> bool:
        shown = replace(sight, seen_s=0.0)
        is_new, self._last = shown != self._last, shown
        return is_new


def _own(grounds: Grounds, number: int) -> Grounds:
    """The grounds with a caller of a thread's own: its draws of jitter are nobody else's."""
    return replace(grounds, caller=replace(grounds.caller, chance=Random(number)))  # noqa: S311  jitter, no cryptography


def _in_order(events: list[Event]) -> list[Event]:
    """By time, each source in its own order; ends come after what they end, and who waits for us comes last."""

    def rank(event: Event) -> int:
        if isinstance(event, BarrierReached):
            return 2
        return int(isinstance(event, TaskFinished | ExecutionFinished | ObservationLost))

    return sorted(events, key=lambda event: (rank(event), event.t_s if rank(event) == 0 else 0.0))
