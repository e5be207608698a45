"""The agents of an execution, followed: their reports are read while they may come, and become events of their attempts."""

import threading

from harness.history import BarrierReached, Event
from harness.protocol.attempt_key import AttemptKey
from harness.targets.gcp.attempts import Attempts
from harness.targets.gcp.deployment import OWN_BARRIER
from harness.targets.gcp.grounds import Grounds
from harness.targets.gcp.mailbox import ReportReader, Said
from harness.targets.gcp.polling import Poller


class AgentFollowing:
    """Of one execution; nothing is read before ``watch``.

    Attributes:
        heard_until_s: All that agents had said by then was heard, on the monotonic clock.
    """

    def __init__(self, grounds: Grounds, attempts: Attempts) -> None:
        self._grounds, self._attempts = grounds, attempts
        self.heard_until_s = float("-inf")
        self._looked_s = self._looked_before_s = float("-inf")
        self._own_waiters: list[BarrierReached] = []
        self._over_since_s: dict[AttemptKey, float] = {}
        self._forgotten: set[AttemptKey] = set()

    def watch(self, reader: ReportReader, news: threading.Event) -> Poller[list[Said]]:
        """Follow what this one reads; who looks for it is returned, and not begun yet."""
        self._reader, pace = reader, self._grounds.pace
        self._poller: Poller[list[Said]] = Poller(
            "reports", self._look, every_s=pace.reports_s, longest_s=pace.reports_longest_s, is_news=bool, news=news
        )
        return self._poller

    def hear(self) -> list[Event]:
        """What was said since; who waits on our own behalf is kept for ``take_own_waiters``."""
        events: list[Event] = []
        self.heard_until_s = self._looked_before_s
        for batch in self._poller.take():
            for said in batch:
                events += self._attempts.hear(said)
        own = [event for event in events if isinstance(event, BarrierReached) and self._is_own(event)]
        self._own_waiters += own
        return [event for event in events if event not in own]

    def hurry(self) -> None:
        """Look at once, and often: something was asked for."""
        self._poller.hurry()

    def take_own_waiters(self) -> list[BarrierReached]:
        """Who waits where nobody but ourselves wanted it, each once."""
        waiting, self._own_waiters = self._own_waiters, []
        return waiting

    def forget_ended(self) -> None:
        """Agents whose end was told, and which had the time to say more, are not looked for any more."""
        silence_s = self._grounds.pace.silence_s
        for key in [key for key, attempt in self._attempts.by_key.items() if attempt.is_over and key not in self._forgotten]:
            since_s = self._over_since_s.setdefault(key, self._grounds.clock.monotonic_s())
            if self.heard_until_s >= since_s + silence_s:
                self._forgotten.add(key)
                self._reader.close([key])

    def _look(self) -> list[Said]:
        """By the thread that looks: what a look saw can be taken when the next one begins."""
        self._looked_before_s, self._looked_s = self._looked_s, self._grounds.clock.monotonic_s()
        return self._reader.look()

    def _is_own(self, reached: BarrierReached) -> bool:
        place = f"{reached.event}:{reached.when}"
        return place == OWN_BARRIER and place not in self._grounds.launch.armed
