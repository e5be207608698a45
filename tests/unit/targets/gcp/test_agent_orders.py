"""What the agent is told: half there, twice, out of order, or nonsense."""

import json
from pathlib import Path

import pytest

from harness.targets.gcp.agent.orders import LIST_EVERY_S, ORDER_BYTES_MAX, PATIENCE_S, Order, OrderReader, read_order


class Desk:
    """A directory of orders, and what came of them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.delivered: list[Order] = []
        self.refused: list[tuple[int, str]] = []
        self.reader = OrderReader(
            str(directory), deliver=self.delivered.append, refuse=lambda number, why: self.refused.append((number, why))
        )

    def put(self, number: int, document: object) -> None:
        data = document if isinstance(document, bytes) else json.dumps(document).encode()
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / f"{number:08d}.json").write_bytes(data)

    def look_until_nothing(self, now_s: float) -> None:
        while self.reader.look(now_s):
            pass

    @property
    def numbers(self) -> list[int]:
        return [order.number for order in self.delivered]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "orders" / "0-0")


def test_no_directory_is_no_order(desk: Desk):
    assert not desk.reader.look(0.0)


def test_orders_are_followed_in_order_each_once(desk: Desk):
    desk.put(1, {"number": 1, "do": "start"})
    desk.put(2, {"number": 2, "do": "signal", "signal": 15, "cause": "fault"})
    desk.look_until_nothing(0.0)
    desk.put(1, {"number": 1, "do": "start"})
    desk.put(2, {"number": 2, "do": "signal", "signal": 9})
    desk.look_until_nothing(100.0)

    assert desk.delivered == [Order(1, "start"), Order(2, "signal", signal=15, cause="fault")]
    assert not desk.refused


def test_what_comes_out_of_order_waits_for_what_is_due(desk: Desk):
    desk.put(2, {"number": 2, "do": "release", "barrier": 1})
    desk.look_until_nothing(0.0)
    assert desk.numbers == []
    desk.put(1, {"number": 1, "do": "start"})
    desk.look_until_nothing(0.1)

    assert desk.numbers == [1, 2]


def test_one_that_never_comes_is_passed_over_and_told(desk: Desk):
    desk.put(2, {"number": 2, "do": "start"})
    now_s = 0.0
    while not desk.delivered and now_s < 100.0:
        desk.look_until_nothing(now_s)
        now_s += LIST_EVERY_S

    assert desk.numbers == [2]
    assert [number for number, _ in desk.refused] == [1]
    assert now_s > PATIENCE_S


def test_one_that_is_half_there_is_read_again_when_it_is_whole(desk: Desk):
    desk.put(1, b'{"number": 1, "do": "st')
    desk.look_until_nothing(0.0)
    desk.put(1, {"number": 1, "do": "start"})
    desk.look_until_nothing(PATIENCE_S / 2)

    assert desk.numbers == [1]
    assert not desk.refused


HOSTILE = [
    b"",
    b"[1, 2]",
    b'"start"',
    b"\xff\xfe\x00",
    b"[" * 5000,
    b'{"number": 2, "do": "start"}',
    b'{"number": true, "do": "start"}',
    b'{"number": 1, "do": "rm"}',
    b'{"number": 1}',
    b'{"number": 1, "do": "signal", "signal": 0}',
    b'{"number": 1, "do": "signal", "signal": 4000}',
    b'{"number": 1, "do": "signal", "signal": "9"}',
    b'{"number": 1, "do": "signal", "signal": 9, "pid": 1}',
    b'{"number": 1, "do": "signal", "signal": 9, "pid": 0}',
    b'{"number": 1, "do": "signal", "signal": 9, "pid": -7}',
    b'{"number": 1, "do": "signal", "signal": 9, "pid": 1e300}',
    b'{"number": 1, "do": "notice", "grace_s": -1}',
    b'{"number": 1, "do": "notice", "grace_s": NaN}',
    b'{"number": 1, "do": "notice", "grace_s": 1e12}',
    b'{"number": 1, "do": {"a": 1}}',
    b'{"number": 1, "do": "start", "cause": "' + b"x" * ORDER_BYTES_MAX + b'"}',
]


@pytest.mark.parametrize("data", HOSTILE, ids=range(len(HOSTILE)))
def test_nonsense_is_refused_after_a_while_and_the_next_order_is_followed(desk: Desk, data: bytes):
    desk.put(1, data)
    desk.put(2, {"number": 2, "do": "start"})
    desk.look_until_nothing(0.0)
    assert not desk.delivered
    desk.look_until_nothing(PATIENCE_S + 0.1)

    assert desk.numbers == [2]
    assert [number for number, _ in desk.refused] == [1]


def test_storage_that_fails_for_a_while_loses_no_order(desk: Desk):
    (desk.directory / "00000001.json").mkdir(parents=True)  # reading it is an error
    assert not desk.reader.look(0.0)
    assert not desk.reader.look(PATIENCE_S * 10)
    (desk.directory / "00000001.json").rmdir()
    desk.put(1, {"number": 1, "do": "start"})
    desk.look_until_nothing(PATIENCE_S * 10)

    assert desk.numbers == [1]
    assert not desk.refused


def test_an_order_says_what_it_means():
    order = read_order(b'{"number": 7, "do": "notice", "grace_s": 10, "pid": 42, "cause": "timeout", "unknown": 1}', 7)

    assert order == Order(7, "notice", grace_s=10.0, pid=42, cause="timeout")
