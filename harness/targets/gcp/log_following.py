"""The log of an execution, followed: read while it lasts, looked at a last time when all else has ended, and told as events."""

import threading

from harness.history import Event, LogLine, ObservationLost
from harness.targets.gcp.ends import Ends
from harness.targets.gcp.failures import CallError
from harness.targets.gcp.grounds import Grounds
from harness.targets.gcp.log_book import LogBook
from harness.targets.gcp.log_reader import BYTES_MAX, ENTRIES_MAX, Entries, LogReader
from harness.targets.gcp.polling import Poller


class LogFollowing:
    """Of one execution; nothing is read before ``watch``.

    Attributes:
        book: What the log has told.
    """

    def __init__(self, grounds: Grounds, news: threading.Event) -> None:
        self.book = LogBook(launch=grounds.launch, secrets=grounds.caller.secrets)
        self._grounds, self._news = grounds, news
        self._page_due_s, self._last_look_due_s = float("-inf"), float("inf")
        self._is_cut_told = False

    def poller_of(self, log: LogReader) -> Poller[Entries]:
        """Who reads it while the execution lasts: page after page while there is more, then now and then."""
        pace = self._grounds.pace
        return Poller(
            "log",
            log.look,
            every_s=lambda: pace.log_page_s if log.is_behind else pace.log_s,
            longest_s=pace.log_longest_s,
            is_news=lambda entries: bool(entries) or log.is_behind,
            news=self._news,
        )

    def watch(self, log: LogReader, poller: Poller[Entries]) -> None:
        """Follow this one, that this one reads."""
        self._log, self._poller = log, poller

    def hear(self, ends: Ends) -> list[Event]:
        """What was read since, and where all else has ended the next page of the last look."""
        seen_s = self._grounds.clock.monotonic_s()
        events: list[Event] = []
        for entries in self._poller.take():
            events += self.book.take(entries, seen_s)
        events += self.tell_cut()
        return [*events, *(self.look_back(ends) if ends.wants_last_look else [])]

    def tell_cut(self) -> list[Event]:
        """That there is no room for more of the log, once: what is beyond is asked for no more, so nobody counts it."""
        if self._is_cut_told or not self._log.sieve.is_full:
            return []
        self._is_cut_told = True
        bounds = f"of one execution {ENTRIES_MAX} log entries or {BYTES_MAX} bytes are read"
        detail = f"{bounds}; what its job has printed beyond them is not, however much that is"
        return [ObservationLost(t_s=self._grounds.t_s(), what="logs", count=1, detail=detail)]

    def look_back(self, ends: Ends) -> list[Event]:
        """A page of the log from its beginning on, once nobody else reads it; what is not read in time is lost."""
        pace, now_s = self._grounds.pace, self._grounds.clock.monotonic_s()
        if self._last_look_due_s == float("inf"):
            self._last_look_due_s = now_s + pace.last_look_s_max
            self._poller.end()
            return []  # what it has seen until now is taken first
        left_s = self._last_look_due_s - now_s
        if left_s <= 0:
            return self._end_look_back(ends, f"the last look at the log had not come to its end after {pace.last_look_s_max:g} s")
        if now_s < self._page_due_s or not self._poller.has_ended:
            return []
        self._page_due_s = now_s + pace.log_page_s
        try:
            events: list[Event] = [*self.book.take(self._log.look_back(left_s), now_s)]
        except CallError as error:  # the run is over, and most of its log was read
            return self._end_look_back(ends, f"the last look at the log failed: {error}")
        self._news.set()
        return [*events, *self.tell_cut(), *(self._end_look_back(ends) if self._log.has_looked_back else [])]

    def _end_look_back(self, ends: Ends, gap: str = "") -> list[Event]:
        """The log was read, or cannot be read any further."""
        ends.had_last_look()
        t_s = self._grounds.t_s()
        events = self.book.told_cuts(t_s)
        if gap:
            events.append(ObservationLost(t_s=t_s, what="logs", count=1, detail=f"{gap}: entries that came late may be missing"))
        if self._log.unknown:
            named = ", ".join(f"{count} of {name}" for name, count in self._log.unknown.most_common(5))
            text = f"Entries of logs that are not known here were left out: {named}."
            events.append(LogLine(t_s=t_s, stream="system", text=text, severity="NOTICE"))
        return events
