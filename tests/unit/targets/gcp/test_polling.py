"""A look that is repeated in a thread: what it saw is kept, what broke is raised, and asking for it makes it look at once."""

import threading

import pytest

from harness.targets.gcp.polling import Poller

FAR_S = 3600.0
"""A pause that only being asked ends."""


class Looks:
    """Sees one thing after the other, then nothing; an exception is raised."""

    def __init__(self, *things: object) -> None:
        self.things, self.count = list(things), 0
        self.looked = threading.Semaphore(0)

    def look(self) -> object:
        self.count += 1
        try:
            thing = self.things.pop(0) if self.things else None
            if isinstance(thing, Exception):
                raise thing
            return thing
        finally:
            self.looked.release()


@pytest.fixture
def news() -> threading.Event:
    return threading.Event()


@pytest.fixture
def begun(news):
    pollers: list[Poller] = []

    def begin(looks: Looks, *, every_s: float = 0.001) -> Poller:
        poller = Poller("test", looks.look, every_s=every_s, longest_s=every_s, is_news=lambda seen: seen is not None, news=news)
        pollers.append(poller)
        poller.start()
        return poller

    yield begin
    for poller in pollers:
        poller.stop()


def test_what_is_news_is_kept_in_order_until_it_is_taken(begun, news):
    looks = Looks("a", None, "b")
    poller = begun(looks)
    for _ in range(4):
        assert looks.looked.acquire(timeout=30)
    assert news.is_set()
    assert poller.take() == ["a", "b"]
    assert poller.take() == []


def test_what_broke_is_raised_after_what_was_seen_before(begun, news):
    looks = Looks("a", OSError("gone"))
    poller = begun(looks)
    assert looks.looked.acquire(timeout=30)
    assert looks.looked.acquire(timeout=30)
    poller.stop()
    assert news.is_set()
    assert poller.take() == ["a"]
    for _ in range(2):
        with pytest.raises(OSError, match="gone"):
            poller.take()
    assert looks.count == 2


def test_to_ask_makes_it_look_at_once(begun):
    looks = Looks()
    poller = begun(looks, every_s=FAR_S)
    assert looks.looked.acquire(timeout=30)
    poller.hurry()
    assert looks.looked.acquire(timeout=30)


def test_one_that_is_stopped_looks_no_more(begun):
    looks = Looks()
    poller = begun(looks, every_s=FAR_S)
    assert looks.looked.acquire(timeout=30)
    poller.stop()
    poller.stop()
    poller.hurry()
    assert looks.count == 1


def test_one_that_never_began_can_be_stopped(news):
    Poller("test", Looks().look, every_s=1.0, longest_s=1.0, is_news=bool, news=news).stop()
