"""A look that is repeated in a thread of its own, so that a slow answer of one service keeps nobody from hearing the others."""

import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Generic, TypeVar

T = TypeVar("T")

JOINED_S = 5.0
"""A thread that hangs in a call ends with that call's own deadline; nobody waits for it."""


class Poller(Generic[T]):
    """Looks, and keeps what it saw until it is taken.

    Args:
        name: For the thread.
        look: Looks once.
        every_s: Between two looks while there is news; a function is asked each time.
        longest_s: Between two looks when there has been none for a while; each time it is waited twice as long.
        is_news: Whether what was seen is worth a word.
        news: Set when there is any, or when looking has failed.
    """

    def __init__(
        self,
        name: str,
        look: Callable[[], T],
        *,
        every_s: float | Callable[[], float],
        longest_s: float,
        is_news: Callable[[T], bool],
        news: threading.Event,
    ) -> None:
        self._look, self._is_news, self._news = look, is_news, news
        self._every_s: Callable[[], float] = every_s if callable(every_s) else lambda: every_s
        self._longest_s = longest_s
        self._seen: SimpleQueue[T] = SimpleQueue()
        self._failure: BaseException | None = None
        self._is_stopped = False
        self._wanted = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"gcp-{name}", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def hurry(self) -> None:
        """Look at once, and often: something was asked for."""
        self._wanted.set()

    @property
    def has_ended(self) -> bool:
        """Whether nobody looks any more: what was seen until then can be taken, and what is looked at is nobody's."""
        return not self._thread.is_alive()

    def end(self) -> None:
        """Look no more, and do not wait for a look that goes on; harmless twice, and where it was never started."""
        self._is_stopped = True
        self._wanted.set()

    def stop(self, within_s: float = JOINED_S) -> None:
        """Look no more; a look that goes on is waited for, but not for long."""
        self.end()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(max(0.0, within_s))

    def take(self) -> list[T]:
        """What was seen since the last time, in order.

        Raises:
            BaseException: What a look raised, once all that was seen before was taken; no more looks follow.
        """
        taken: list[T] = []
        while True:
            try:
                taken.append(self._seen.get_nowait())
            except Empty:
                break
        if not taken and self._failure is not None:
            raise self._failure
        return taken

    def _run(self) -> None:
        pause_s = self._every_s()
        while not self._is_stopped:
            try:
                seen = self._look()
            except BaseException as error:  # noqa: BLE001  whatever it is, it is raised where it can be told
                self._failure = error
                self._news.set()
                return
            if self._is_news(seen):
                self._seen.put(seen)
                self._news.set()
                pause_s = self._every_s()
            else:
                pause_s = min(self._longest_s, pause_s * 2)
            if self._wanted.wait(pause_s):
                self._wanted.clear()
                pause_s = self._every_s()
