"""What agents say, read back."""

import json
import random

import pytest

from harness.protocol.attempt_key import AttemptKey
from harness.targets.gcp.agent.reports import trailer
from harness.targets.gcp.reports import PATIENCE_S, ReportFile, ReportOrder, attempt_of, read_report_file


def file_of(number: int, *lines: bytes) -> bytes:
    return b"".join(line + b"\n" for line in lines) + trailer(number, len(lines))


def test_a_whole_file_gives_its_reports_in_order():
    data = file_of(3, b'{"kind":"hello","at":1.5,"pid":7}', b'{"kind":"event","at":2,"line":"{}"}')

    found = read_report_file(data, 3)

    assert found is not None
    assert [(report.kind, report.at) for report in found.reports] == [("hello", 1.5), ("event", 2.0)]
    assert found.garbage_count == 0


def test_a_file_that_is_not_whole_gives_nothing_wherever_it_was_cut():
    data = file_of(1, b'{"kind":"hello","at":1.5}', b'{"kind":"exit","at":2}')

    assert [size for size in range(len(data)) if read_report_file(data[:size], 1) is not None] == []
    assert read_report_file(data, 1) is not None


def test_a_file_under_another_number_is_not_taken_for_this_one():
    assert read_report_file(file_of(1, b'{"kind":"hello"}'), 2) is None


def test_lines_that_are_no_reports_are_counted_and_the_others_told():
    lines = (b"[]", b'{"kind":1}', b'{"at":1}', b'{"kind":"exit","at":1e999}', b'{"kind":"exit","at":"now"}', b"[" * 5000, b"\xff")
    found = read_report_file(file_of(1, *lines, b'{"kind":"alive","at":1}'), 1)

    assert found is not None
    assert [report.kind for report in found.reports] == ["alive"]
    assert found.garbage_count == len(lines)


def test_whatever_bytes_stand_there_nothing_breaks():
    chance = random.Random(2)
    for _ in range(300):
        assert read_report_file(chance.randbytes(chance.randrange(60)), 1) is None


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("0-0", AttemptKey(0, 0)),
        ("12-3/00000001.jsonl", AttemptKey(12, 3)),
        ("x", None),
        ("-1", None),
        ("1-", None),
        ("1-2-3", None),
        ("٣-0", None),
        ("9999999-0", None),
        ("../0", None),
    ],
)
def test_a_folder_names_its_attempt_or_nobody(name: str, key: AttemptKey | None):
    assert attempt_of(name) == key


def empty() -> ReportFile:
    return ReportFile(reports=())


def test_files_are_told_in_order_each_once():
    order, files = ReportOrder(), {number: ReportFile(reports=(), garbage_count=number) for number in range(1, 5)}
    told = [order.take(number, files[number]) for number in (2, 3, 2, 1, 1, 4)]

    assert told == [[], [], [], [files[1], files[2], files[3]], [], [files[4]]]
    assert not order.wants(4)
    assert order.wants(5)


def test_one_that_stays_missing_is_passed_over_after_a_while():
    order = ReportOrder()
    order.take(2, empty())
    assert order.give_up({2}, 0.0) == (0, [])
    assert order.give_up({2}, PATIENCE_S - 0.1) == (0, [])

    passed, told = order.give_up({2}, PATIENCE_S)

    assert (passed, len(told)) == (1, 1)
    assert order.next_number == 3


def test_one_that_is_there_and_never_whole_is_passed_over_after_a_while():
    order = ReportOrder()
    order.give_up({1}, 0.0)

    assert order.give_up({1}, PATIENCE_S)[0] == 1


def test_nothing_is_passed_over_where_nothing_is_missing():
    order = ReportOrder()
    for now_s in (0.0, PATIENCE_S, 10 * PATIENCE_S):
        assert order.give_up(set(), now_s) == (0, [])


def test_an_order_is_a_file_that_says_its_number():
    from harness.targets.gcp.reports import encode_order

    assert json.loads(encode_order(4, do="signal", signal=15)) == {"number": 4, "do": "signal", "signal": 15}
