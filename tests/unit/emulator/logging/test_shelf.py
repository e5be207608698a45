"""Entries are found by what they are about, without a look at all the others; those that had to make room are told of."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.clock import ManualClock
from harness.emulator.logging.deliveries import Delivery
from harness.emulator.logging.listing import Query, list_entries
from harness.emulator.logging.notices import LOG_ID, LOST_LABEL
from harness.emulator.logging.query import find_subjects, matches, parse_filter, subjects_of
from harness.emulator.logging.retention import Retention
from harness.emulator.logging.store import SCANNED_AT_ONCE, LogEntryStore
from harness.emulator.logging.tailing import _Following
from harness.emulator.project import Projects, ProjectState

EXECUTION = "run.googleapis.com/execution_name"
PROJECTS = Projects([ProjectState(name="p", number=7)])


def entry(number: int, execution: str = "chatty", log: str = "stdout", text: str = "x") -> dict[str, object]:
    return {
        "logName": f"projects/p/logs/{log}",
        "textPayload": text,
        "insertId": f"{number:08d}",
        "timestamp": f"2026-01-01T00:{number // 60 % 60:02d}:{number % 60:02d}Z",
        "labels": {EXECUTION: execution},
    }


@pytest.fixture
def looked_at(monkeypatch: pytest.MonkeyPatch) -> list[Delivery]:
    """Every entry that was decoded."""
    seen: list[Delivery] = []
    decode = Delivery.entry

    def noting(delivery: Delivery) -> dict[str, object]:
        seen.append(delivery)
        return decode(delivery)

    monkeypatch.setattr(Delivery, "entry", noting)
    return seen


def read(store: LogEntryStore, query: str, **asked: object) -> list[str]:
    page = list_entries(store, PROJECTS, Query(resource_names=["projects/p"], filter=query, **asked))
    assert not page.next_page_token or asked
    return [msgspec.json.decode(found.encoded)["insertId"] for found in page.deliveries]


@pytest.mark.parametrize(
    "query",
    [
        'labels."run.googleapis.com/execution_name"="QUIET"',
        '(labels."run.googleapis.com/execution_name"="quiet" OR protoPayload.resourceName="namespaces/p/executions/quiet")',
        'timestamp>="2020-01-01T00:00:00Z" AND logName="projects/p/logs/system" AND labels."run.googleapis.com/execution_name"="quiet"',
    ],
)
def test_a_page_of_one_execution_costs_nothing_of_the_others(looked_at: list[Delivery], query: str):
    store = LogEntryStore(ManualClock())
    store.append(entry(number) for number in range(3000))
    store.append([entry(7, "quiet", "system"), entry(9, "quiet", "system")])

    assert read(store, query) == ["00000007", "00000009"]
    assert len(looked_at) == 2


@pytest.mark.parametrize("order", ["timestamp asc", "timestamp desc"])
def test_a_page_of_a_long_log_costs_a_page(looked_at: list[Delivery], order: str):
    store = LogEntryStore(ManualClock())
    store.append(entry(number) for number in range(3 * SCANNED_AT_ONCE))

    assert len(read(store, f'labels."{EXECUTION}"="chatty"', page_size=10, order_by=order)) == 10
    assert len(looked_at) == 11


VALUES = st.sampled_from(["a", "A", "b", "", 7, True, None, ["a", "b"]])
QUERIES = st.sampled_from(
    [
        f'labels."{EXECUTION}"="a"',
        f'NOT labels."{EXECUTION}"="a"',
        f'labels."{EXECUTION}"="a" OR protoPayload.resourceName="b"',
        f'(labels."{EXECUTION}"="a" OR protoPayload.resourceName="true") AND logName="projects/p/logs/m"',
        f'labels."{EXECUTION}"="a" OR severity=ERROR',
        'protoPayload.resourceName=7 OR logName="PROJECTS/P/LOGS/l"',
        'protoPayload.resourceName="null" OR logName=""',
        f'labels."{EXECUTION}":"a"',
    ]
)


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from("lm"), VALUES, VALUES), max_size=8), QUERIES, st.booleans())
def test_what_is_found_by_its_subject_is_what_matches(drawn, query, is_descending):
    store = LogEntryStore(ManualClock())
    for number, (second, log, label, resource) in enumerate(drawn):
        made = {**entry(second, log=log), "insertId": str(number), "labels": {EXECUTION: label}, "protoPayload": {"resourceName": resource}}
        store.append([made])
    expression = parse_filter(query)
    order = "timestamp desc" if is_descending else "timestamp asc"
    every = list_entries(store, PROJECTS, Query(resource_names=["projects/p"], order_by=order)).deliveries

    found = list_entries(store, PROJECTS, Query(resource_names=["projects/p"], filter=query, order_by=order)).deliveries

    assert found == [each for each in every if matches(expression, each.entry())]


def test_a_filter_that_does_not_say_for_sure_is_looked_for_everywhere():
    assert find_subjects(parse_filter(f'labels."{EXECUTION}"="a" OR severity=ERROR')) == []
    assert find_subjects(parse_filter(f'labels."{EXECUTION}":*')) == []
    assert {subject.value for subject in subjects_of(entry(1, "Quiet"))} == {"projects/p/logs/stdout", "quiet"}


def test_entries_that_are_dropped_are_found_by_nothing_any_more():
    store = LogEntryStore(ManualClock())
    store.append([entry(1), entry(2, "quiet", "system")])

    assert store.delete_log("projects/p/logs/stdout") == 1
    assert read(store, f'labels."{EXECUTION}"="chatty"') == []
    assert store.log_names("p") == ["projects/p/logs/system"]


def test_an_execution_whose_first_entries_had_to_make_room_is_told_so_in_its_log():
    store = LogEntryStore(ManualClock(), Retention(bytes_max=10_000))
    store.append(entry(number, text="x" * 1000) for number in range(30))
    store.append([entry(99, "quiet")])

    page = list_entries(store, PROJECTS, Query(resource_names=["projects/p"], filter=f'labels."{EXECUTION}"="chatty"'))
    notices = [found.entry() for found in page.deliveries if found.log_name == f"projects/p/logs/{LOG_ID}"]
    kept = [found for found in page.deliveries if found.log_name != f"projects/p/logs/{LOG_ID}"]
    assert max(int(notice["labels"][LOST_LABEL]) for notice in notices) == 30 - len(kept) > 0
    assert "made room" in notices[-1]["textPayload"]
    assert store.holdings().bytes <= 10_000
    assert read(store, f'labels."{EXECUTION}"="quiet"') == ["00000099"]


def test_who_follows_one_execution_costs_nothing_for_the_entries_of_others(looked_at: list[Delivery]):
    store = LogEntryStore(ManualClock())
    follower = store.follow()
    store.append(entry(number) for number in range(500))
    store.append([entry(7, "quiet")])
    following = _Following(frozenset("p"), parse_filter(f'labels."{EXECUTION}"="quiet"'), 0.0)

    response = following.take(follower, ManualClock().monotonic_s())

    assert response is not None
    assert [found.insert_id for found in response.entries] == ["00000007"]
    assert len(looked_at) == 1
