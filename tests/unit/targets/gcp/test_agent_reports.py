"""What the agent says, whatever storage does."""

import json
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.targets.gcp.agent import reports
from harness.targets.gcp.agent.clock import monotonic_s
from harness.targets.gcp.agent.reports import Reporter, number_of, write_file
from harness.targets.gcp.reports import Report, read_report_file

SOON_S = 20.0
"""Far more than anything here takes."""


class Storage:
    """Writes that fail as often as it is told to, some of them half way."""

    def __init__(self, *, fails: int = 0, leaves_half: bool = False) -> None:
        self.fails, self.leaves_half = fails, leaves_half
        self.tried: list[str] = []

    def write(self, path: str, data: bytes, must_be_new: bool) -> None:
        self.tried.append(Path(path).name)
        if self.fails:
            self.fails -= 1
            if self.leaves_half:
                write_file(path, data[: len(data) // 2], must_be_new)
            raise OSError(5, "Input/output error")
        write_file(path, data, must_be_new)


@pytest.fixture
def said(tmp_path: Path) -> Path:
    return tmp_path / "said" / "0-0"


def reporter_to(said: Path, write: Callable[[str, bytes, bool], None] = write_file, every_s: float = 0.01) -> Reporter:
    reporter = Reporter(str(said), every_s=every_s, write=write)
    reporter.start()
    return reporter


def read_all(said: Path) -> tuple[list[int], list[Report]]:
    numbers, found = [], []
    for path in sorted(said.iterdir()):
        number = number_of(path.name)
        file = read_report_file(path.read_bytes(), number)
        assert file is not None, path
        numbers.append(number)
        found += file.reports
    return numbers, found


def test_everything_is_said_in_order_in_numbered_files_without_gaps(said: Path):
    reporter = reporter_to(said)
    for index in range(50):
        reporter.say("event", line=str(index), is_urgent=index % 7 == 0)

    assert reporter.close(monotonic_s() + SOON_S) == 0
    numbers, found = read_all(said)
    assert numbers == list(range(1, len(numbers) + 1))
    assert [report.line for report in found] == [str(index) for index in range(50)]


@pytest.mark.parametrize("leaves_half", [False, True])
def test_a_file_that_could_not_be_written_is_written_again_under_its_number(said: Path, leaves_half: bool):
    storage = Storage(fails=3, leaves_half=leaves_half)
    reporter = reporter_to(said, storage.write)
    reporter.say("hello", is_urgent=True)

    assert reporter.close(monotonic_s() + SOON_S) == 0
    numbers, found = read_all(said)
    assert numbers == [1]
    assert [report.kind for report in found] == ["hello"]
    assert storage.tried == ["00000001.jsonl"] * 4


def test_what_could_not_be_said_by_the_end_is_counted(said: Path):
    storage = Storage(fails=10_000)
    reporter = reporter_to(said, storage.write)
    for _ in range(3):
        reporter.say("exit", is_urgent=True)

    assert reporter.close(monotonic_s()) == 3


def test_where_there_is_no_room_events_are_left_out_and_counted_and_the_rest_is_said(said: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reports, "HELD_BYTES_MAX", 2_000)
    gate = threading.Event()

    def write_when_let(path: str, data: bytes, must_be_new: bool) -> None:
        if not gate.wait(SOON_S):
            raise OSError(110, "never let")
        write_file(path, data, must_be_new)

    reporter = reporter_to(said, write_when_let)
    for index in range(200):
        reporter.say("event", line=str(index))
    reporter.say("barrier", barrier=1, is_urgent=True)
    gate.set()

    assert reporter.close(monotonic_s() + SOON_S) == 0
    _, found = read_all(said)
    lines = [report for report in found if report.kind == "event"]
    lost = [report for report in found if report.kind == "lost"]
    assert [report.barrier for report in found if report.kind == "barrier"] == [1]
    assert 0 < len(lines) < 200
    assert sum(report.count for report in lost if report.what == "event") == 200 - len(lines)


def test_a_second_container_of_the_same_attempt_goes_on_after_the_numbers_that_are_taken(said: Path):
    first = reporter_to(said)
    first.say("hello", is_urgent=True)
    assert first.close(monotonic_s() + SOON_S) == 0
    second = reporter_to(said)
    second.say("hello", is_urgent=True)

    assert second.close(monotonic_s() + SOON_S) == 0
    assert read_all(said)[0] == [1, 2]


def test_a_number_that_another_has_taken_meanwhile_is_passed_over(said: Path):
    def write_after_another(path: str, data: bytes, must_be_new: bool) -> None:
        if not said.exists():
            write_file(str(said / "00000001.jsonl"), b"another's\n", True)
        write_file(path, data, must_be_new)

    reporter = reporter_to(said, write_after_another)
    reporter.say("hello", is_urgent=True)

    assert reporter.close(monotonic_s() + SOON_S) == 0
    assert (said / "00000001.jsonl").read_bytes() == b"another's\n"
    whole = read_report_file((said / "00000002.jsonl").read_bytes(), 2)
    assert whole is not None
    assert [report.kind for report in whole.reports] == ["hello"]


def test_every_line_is_json_with_the_moment(said: Path):
    before_s = monotonic_s()
    reporter = reporter_to(said)
    reporter.say("event", line='quotes " and \n newlines', is_urgent=True)
    reporter.close(monotonic_s() + SOON_S)

    line = json.loads((said / "00000001.jsonl").read_text().splitlines()[0])
    assert line["line"] == 'quotes " and \n newlines'
    assert before_s <= line["at"] <= monotonic_s()
