"""The log of one execution is read within bounds, each entry once, the platform's own lines however much the job prints."""

from datetime import UTC, datetime, timedelta

import pytest

from harness.targets.gcp import log_reader
from harness.targets.gcp.calling import Page
from harness.targets.gcp.failures import CallError, Failure, UnreachableError
from harness.targets.gcp.log_reader import LATE_S, EntrySieve, LogReader
from harness.targets.gcp.log_reading import read_time

SYSTEM = "run.googleapis.com%2Fvarlog%2Fsystem"
BEGAN = datetime(2026, 1, 1, tzinfo=UTC)

Entry = dict[str, object]


def entry(number: int, text: str = "", log: str = "run.googleapis.com%2Fstdout", **fields: object) -> Entry:
    stamp = (BEGAN + timedelta(seconds=number)).isoformat().replace("+00:00", "Z")
    found: Entry = {"logName": f"projects/p/logs/{log}", "textPayload": text or str(number), "insertId": str(number), "timestamp": stamp}
    return {**found, **fields}


class Log:
    """Pages of what a query asks for: an entry each, in the order of their times; ``broken`` are calls, from 1, that fail."""

    def __init__(self, *entries: Entry, broken: tuple[int, ...] = ()) -> None:
        self.entries, self.broken = list(entries), broken
        self.queries: list[str] = []
        self.deadlines_s: list[float] = []

    def __call__(self, query: str, token: str, deadline_s: float) -> Page[Entry]:
        self.queries.append(query)
        self.deadlines_s.append(deadline_s)
        if len(self.queries) in self.broken:
            failure = Failure(code="UNAVAILABLE", message="away")
            raise UnreachableError(service="logging", method="entries.list", resource="p", failure=failure)
        _, _, since = query.partition('timestamp>="')
        asked = [
            each
            for each in self.entries
            if str(each["timestamp"]) >= since.rstrip('"') and ("logName=" not in query or f'logName="{each["logName"]}"' in query)
        ]
        asked.sort(key=lambda each: str(each["timestamp"]))
        number = int(token or "0")
        return Page(items=asked[number : number + 1], token=str(number + 1) if number + 1 < len(asked) else "")


def reader(log: Log) -> LogReader:
    return LogReader(log, project="p", execution="job-abc12")


def texts(found: log_reader.Entries) -> list[str]:
    return [line.text for line, _ in found]


def all_of(mine: LogReader, log: Log) -> list[str]:
    """What looks find until one has come to the end."""
    found = texts(mine.look())
    while mine.is_behind:
        found += texts(mine.look())
    return found


def look_back(mine: LogReader) -> list[str]:
    found: list[str] = []
    while not mine.has_looked_back:
        found += texts(mine.look_back())
    return found


def test_an_entry_is_let_through_once_however_often_and_late_it_comes():
    sieve = EntrySieve()
    first, second = entry(5), entry(1)

    assert [sieve.take(each) for each in (first, second, first, second)] == [True, True, False, False]
    assert sieve.newest == read_time(str(first["timestamp"]))


def test_the_same_insert_id_in_another_log_is_another_entry():
    sieve = EntrySieve()

    assert sieve.take(entry(1))
    assert sieve.take(entry(1, log="run.googleapis.com%2Fstderr"))


def test_a_look_is_a_page_and_the_next_one_goes_on_behind_it():
    log = Log(*(entry(number) for number in range(3)))
    mine = reader(log)

    assert [(texts(mine.look()), mine.is_behind) for _ in range(3)] == [(["0"], True), (["1"], True), (["2"], False)]


def test_a_page_that_cannot_be_had_is_the_next_one_again():
    mine = reader(Log(*(entry(number) for number in range(2)), broken=(2,)))

    assert texts(mine.look()) == ["0"]
    with pytest.raises(CallError):
        mine.look()
    assert texts(mine.look()) == ["1"]


def test_what_comes_late_is_seen_by_a_later_look():
    log = Log(entry(0), entry(100))
    mine = reader(log)
    all_of(mine, log)
    log.entries.append(entry(50))

    assert all_of(mine, log) == ["50"]


def test_what_comes_very_late_or_never_in_order_is_seen_by_the_last_look():
    log = Log(entry(0), entry(1000))
    mine = reader(log)
    all_of(mine, log)
    log.entries.append(entry(1000 - int(LATE_S) - 1))
    assert all_of(mine, log) == []

    assert look_back(mine) == ["879"]


def test_a_job_that_prints_much_makes_no_look_read_more_than_a_page_again(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_reader, "OVERLAP_ENTRIES", 3)
    log = Log(*(entry(number) for number in range(20)))
    mine = reader(log)
    all_of(mine, log)
    log.entries.append(entry(20))
    before = len(log.queries)

    assert all_of(mine, log) == ["20"]
    assert len(log.queries) - before == 4


@pytest.mark.parametrize("bound", ["entries", "bytes"])
def test_beyond_its_bound_the_job_is_read_no_more_and_the_platform_still_is(monkeypatch: pytest.MonkeyPatch, bound: str):
    monkeypatch.setattr(log_reader, "ENTRIES_MAX", 3 if bound == "entries" else 10_000)
    monkeypatch.setattr(log_reader, "BYTES_MAX", 1 << 20 if bound == "entries" else 500)
    log = Log(*(entry(number, "x" * 20) for number in range(1000)), entry(1000, "Container called exit(0).", SYSTEM))
    mine = reader(log)

    found = all_of(mine, log) + all_of(mine, log)

    assert len(found) == 4
    assert found[-1] == "Container called exit(0)."
    assert mine.sieve.is_full
    assert len(log.queries) < 10


def test_the_last_look_at_a_log_that_is_beyond_its_bound_is_short(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_reader, "ENTRIES_MAX", 3)
    log = Log(*(entry(number) for number in range(1000)), entry(1000, "Container called exit(0).", SYSTEM))
    mine = reader(log)

    assert look_back(mine) == ["0", "1", "2", "Container called exit(0)."]
    assert len(log.queries) < 10


def test_even_of_the_platforms_lines_there_are_not_more_than_so_many(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_reader, "ENTRIES_MAX", 1)
    monkeypatch.setattr(log_reader, "QUIET_ENTRIES_MAX", 2)
    log = Log(entry(0), *(entry(number, log=SYSTEM) for number in range(1, 100)))
    mine = reader(log)

    assert look_back(mine) == ["0", "1", "2"]
    assert len(log.queries) < 10


def test_looking_back_goes_over_everything_and_tells_only_what_is_new():
    log = Log(entry(0), entry(1), entry(2))
    mine = reader(log)
    all_of(mine, log)
    log.entries.append(entry(1, "late", insertId="late"))

    assert look_back(mine) == ["late"]


def test_a_page_of_the_last_look_may_last_as_long_as_there_is_time():
    log = Log(entry(0))
    reader(log).look_back(7.5)

    assert log.deadlines_s == [7.5]


def test_entries_of_logs_that_are_not_known_are_counted():
    log = Log(entry(0, log="requests"), entry(1, "known"))
    mine = reader(log)

    assert all_of(mine, log) == ["known"]
    assert mine.unknown == {"requests": 1}
