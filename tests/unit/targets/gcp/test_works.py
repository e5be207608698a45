"""Work beside the loop: one after the other, given up between two requests, and its failures told once."""

import threading

import pytest

from harness.clock import ManualClock, SystemClock
from harness.errors import BrokenHarnessError
from harness.targets.gcp.calling import Caller
from harness.targets.gcp.works import Work, Works


@pytest.fixture
def works() -> Works:
    return Works(Caller(clock=ManualClock()))


def until_done(doing) -> None:
    clock = SystemClock()
    end_s = clock.monotonic_s() + 20.0
    while not doing.is_done:
        assert clock.monotonic_s() < end_s
        clock.sleep(0.002)


def test_what_is_begun_together_is_done_one_after_the_other(works):
    done: list[int] = []
    doing = works.begin(*(Work(str(number), lambda _, number=number: done.append(number)) for number in range(3)))
    until_done(doing)
    assert done == [0, 1, 2]
    assert works.take_failures() == []


def test_what_follows_a_failure_is_not_done_and_the_failure_is_told_once(works):
    done: list[str] = []

    def fail(_: Caller) -> None:
        raise BrokenHarnessError("no quota")

    doing = works.begin(Work("resize", fail), Work("then", lambda _: done.append("then")))
    until_done(doing)
    assert done == []
    assert doing.failure == "resize; then has failed: no quota"
    assert works.take_failures() == [doing.failure]
    assert works.take_failures() == []


def test_what_is_given_up_asks_for_nothing_more(works):
    has_begun, may_go_on = threading.Event(), threading.Event()
    done: list[str] = []

    def first(_: Caller) -> None:
        has_begun.set()
        assert may_go_on.wait(20.0)

    doing = works.begin(Work("first", first), Work("second", lambda _: done.append("second")))
    assert has_begun.wait(20.0)
    doing.give_up()
    may_go_on.set()
    until_done(doing)
    assert (done, doing.failure) == ([], "")


def test_who_waits_for_a_service_wakes_when_it_is_given_up_and_sends_nothing_again(works):
    sent: list[str] = []

    def send_and_wait(caller: Caller) -> None:
        sent.append("sent")
        doing.give_up()
        caller.clock.sleep(5.0)
        sent.append("sent again")

    has_name = threading.Event()
    doing = works.begin(Work("wait", lambda caller: (has_name.wait(20.0), send_and_wait(caller))[1]))
    has_name.set()
    until_done(doing)
    assert sent == ["sent"]
    assert doing.failure == ""


def test_giving_up_one_leaves_the_others(works):
    may_go_on = threading.Event()
    done: list[str] = []
    other = works.begin(Work("wait", lambda _: may_go_on.wait(20.0)), Work("then", lambda _: done.append("then")))
    works.begin(Work("nothing", lambda _: None)).give_up()
    may_go_on.set()
    until_done(other)
    assert done == ["then"]
