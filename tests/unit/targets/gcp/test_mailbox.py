"""Orders and reports as objects."""

import json

import pytest

from harness.clock import ManualClock
from harness.protocol.attempt_key import AttemptKey
from harness.targets.gcp.agent.orders import read_order
from harness.targets.gcp.failures import Failure, UnreachableError
from harness.targets.gcp.mailbox import OrderWriter, ReportReader
from harness.targets.gcp.reports import PATIENCE_S
from tests.unit.targets.gcp.fake_bucket import FakePrefix
from tests.unit.targets.gcp.test_reports import file_of

KEY = AttemptKey(0, 0)


@pytest.fixture
def said() -> FakePrefix:
    return FakePrefix()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(monotonic_s=50.0)


def reader(said: FakePrefix, clock: ManualClock) -> ReportReader:
    return ReportReader(said, clock)  # type: ignore[arg-type]


def hello(number: int, pid: int = 7) -> bytes:
    return file_of(number, b'{"kind":"hello","at":1.0,"pid":%d}' % pid)


def test_each_report_is_read_once_of_each_attempt(said: FakePrefix, clock: ManualClock):
    mine = reader(said, clock)
    said.put("0-0/00000001.jsonl", hello(1))
    said.put("1-2/00000001.jsonl", hello(1, pid=9))

    first = mine.look()

    assert [(found.key, [report.pid for report in found.reports]) for found in first] == [(KEY, [7]), (AttemptKey(1, 2), [9])]
    assert {found.seen_s for found in first} == {50.0}
    assert mine.look() == []


def test_a_file_that_is_half_there_is_read_when_it_is_whole(said: FakePrefix, clock: ManualClock):
    mine = reader(said, clock)
    said.put("0-0/00000001.jsonl", hello(1)[:20])
    assert mine.look() == []
    said.put("0-0/00000001.jsonl", hello(1))

    assert [found.key for found in mine.look()] == [KEY]


def test_a_file_that_changes_while_it_is_read_is_read_at_the_next_look(said: FakePrefix, clock: ManualClock):
    mine = reader(said, clock)
    said.put("0-0/00000001.jsonl", b"")

    def finish(name: str) -> None:
        said.before_read = lambda _: None
        said.put(name, hello(1))

    said.before_read = finish
    assert mine.look() == []

    assert [found.key for found in mine.look()] == [KEY]


def test_one_that_never_comes_whole_is_told_to_be_lost_and_later_ones_are_told(said: FakePrefix, clock: ManualClock):
    mine = reader(said, clock)
    said.put("0-0/00000001.jsonl", b"half")
    said.put("0-0/00000002.jsonl", hello(2))
    assert mine.look() == []
    clock.advance(PATIENCE_S)

    found = mine.look()

    assert [bool(each.lost) for each in found] == [True, False]
    assert [report.pid for each in found for report in each.reports] == [7]


def test_objects_that_are_no_reports_are_passed_over(said: FakePrefix, clock: ManualClock):
    for name in ("readme", "x/00000001.jsonl", "0-0/", "0-0/notes.txt", "0-0/00000001.jsonl"):
        said.put(name, hello(1))

    assert [found.key for found in reader(said, clock).look()] == [KEY]


def test_an_attempt_that_is_closed_is_not_looked_at(said: FakePrefix, clock: ManualClock):
    mine = reader(said, clock)
    mine.close([KEY])
    said.put("0-0/00000001.jsonl", hello(1))

    assert mine.look() == []


def writer(orders: FakePrefix, clock: ManualClock) -> OrderWriter:
    return OrderWriter(orders, clock)  # type: ignore[arg-type]


def test_orders_are_numbered_without_gaps_and_readable_for_the_agent(clock: ManualClock):
    orders = FakePrefix()
    mine = writer(orders, clock)

    numbers = [mine.write(KEY, "start"), mine.write(KEY, "signal", signal=15, cause="fault", pid=-1), mine.write(AttemptKey(0, 1), "start")]

    assert numbers == [1, 2, 1]
    assert sorted(orders.objects) == ["0-0/00000001.json", "0-0/00000002.json", "0-1/00000001.json"]
    assert read_order(orders.objects["0-0/00000002.json"][1], 2).signal == 15
    assert mine.asked_s(KEY, 2) == 50.0


def test_an_order_whose_answer_was_lost_keeps_its_number_and_the_next_one_comes_after_it(clock: ManualClock):
    orders = FakePrefix()
    mine = writer(orders, clock)

    def take_and_break(name: str) -> None:
        orders.before_write = lambda _: None
        orders.put(name, json.dumps({"number": 1, "do": "start"}, separators=(",", ":")).encode())
        failure = Failure(code="UNAVAILABLE", message="the answer was lost")
        raise UnreachableError(service="storage", method="objects.insert", resource=name, failure=failure)

    orders.before_write = take_and_break
    with pytest.raises(UnreachableError):
        mine.write(KEY, "start")

    assert mine.write(KEY, "release", barrier=3) == 2
    assert [json.loads(data)["do"] for _, (_, data) in sorted(orders.objects.items())] == ["start", "release"]
