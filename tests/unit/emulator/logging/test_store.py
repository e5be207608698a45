"""Entries that are kept, in which order they are found, and what befalls them on purpose."""

import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.clock import ManualClock
from harness.emulator.logging.disturbances import Disturbance
from harness.emulator.logging.following import QUEUE_MAX
from harness.emulator.logging.query import FilterError, TimeBounds
from harness.emulator.logging.retention import Retention
from harness.emulator.logging.store import LogEntryStore

P = frozenset({"p"})


@pytest.fixture
def clock():
    return ManualClock()


@pytest.fixture
def store(clock):
    return LogEntryStore(clock)


def entry(text, *, second=0, insert_id="", log="l", project="p"):
    stamp = {"timestamp": f"2026-01-01T00:00:{second:02d}Z"} if second is not None else {}
    return {"logName": f"projects/{project}/logs/{log}", "textPayload": text, "insertId": insert_id, **stamp}


def texts(store, **kwargs):
    return [found.entry()["textPayload"] for found in store.scan(P, TimeBounds(), **kwargs)]


def test_entries_are_found_by_their_timestamps_whenever_they_came(store):
    store.append([entry("b", second=2), entry("c", second=3), entry("a", second=1)])
    assert texts(store) == ["a", "b", "c"]
    assert texts(store, is_descending=True) == ["c", "b", "a"]


def test_entries_of_one_moment_are_found_by_their_insert_ids(store):
    store.append([entry("second", insert_id="y"), entry("first", insert_id="x")])
    assert texts(store) == ["first", "second"]


def test_entries_without_a_timestamp_or_an_id_keep_the_order_of_their_request(store):
    store.append([entry(str(number), second=None) for number in range(20)])
    assert texts(store) == [str(number) for number in range(20)]


def test_the_same_entry_twice_is_found_once(store):
    store.append([entry("a", insert_id="x"), entry("a again", insert_id="x"), entry("later", second=1, insert_id="x")])
    assert texts(store) == ["a", "later"]


def test_it_is_found_once_across_pages_too(store):
    store.append([entry("a", insert_id="x"), entry("other", insert_id="x", project="q"), entry("a again", insert_id="x")])
    first = next(store.scan(P, TimeBounds()))
    assert texts(store, after=first.key) == []


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from("xy"), st.sampled_from("pq")), max_size=12), st.booleans())
def test_pages_of_one_hold_what_one_page_of_all_does(drawn, is_descending):
    store, both = LogEntryStore(ManualClock()), frozenset("pq")
    store.append([entry("a", second=second, insert_id=insert_id, project=project) for second, insert_id, project in drawn])
    whole = list(store.scan(both, TimeBounds(), is_descending=is_descending))
    assert len(whole) == len(set(drawn))
    paged, after = [], None
    while (found := next(store.scan(both, TimeBounds(), after=after, is_descending=is_descending), None)) is not None:
        paged.append(found)
        after = found.key
    assert paged == whole


def test_other_projects_are_not_seen(store):
    store.append([entry("theirs", project="q"), entry("ours")])
    assert texts(store) == ["ours"]


def test_a_page_goes_on_behind_its_last_entry_whatever_comes_meanwhile(store):
    store.append([entry(str(second), second=second, insert_id="i") for second in (1, 3, 5)])
    keys = [found.key for found in store.scan(P, TimeBounds())]
    store.append([entry("0", second=0, insert_id="i"), entry("4", second=4, insert_id="i")])
    assert texts(store, after=keys[0]) == ["3", "4", "5"]
    assert texts(store, after=keys[1], is_descending=True) == ["1", "0"]


def test_the_moment_of_arrival_is_told(store, clock):
    clock.advance(7)
    store.append([entry("a")])
    assert next(store.scan(P, TimeBounds())).entry()["receiveTimestamp"] == "2026-01-01T00:00:07Z"


def test_a_writer_of_the_emulator_that_is_wrong_is_told_so(store):
    with pytest.raises(ValueError, match="logName is 'l'"):
        store.append([{"logName": "l"}])
    with pytest.raises(ValueError, match="timestamp is 'x'"):
        store.append([{"logName": "projects/p/logs/l", "timestamp": "x"}])


def test_an_entry_held_back_is_found_late_and_says_so(store, clock):
    store.hold_back("textPayload=late", late_s=5)
    store.append([entry("late", second=1), entry("soon", second=2)])
    assert texts(store) == ["soon"]
    clock.advance(4.9)
    assert texts(store) == ["soon"]
    clock.advance(0.1)
    assert texts(store) == ["late", "soon"]
    assert next(store.scan(P, TimeBounds())).entry()["receiveTimestamp"] == "2026-01-01T00:00:05Z"


def test_what_is_held_back_without_end_is_found_when_it_is_released(store, clock):
    store.hold_back()
    store.append([entry("a")])
    clock.advance(86_400)
    store.undisturb()
    assert texts(store) == []
    assert store.holdings().waiting == 1
    store.release()
    assert texts(store) == ["a"]
    assert store.holdings().waiting == 0


def test_drawn_lateness_turns_the_order_of_arrival(store, clock):
    store.hold_back(late_s=0, late_max_s=10, seed=1)
    follower = store.follow()
    store.append([entry(str(number), second=number) for number in range(10)])
    clock.advance(10)
    store.settle()
    arrived = [found.entry()["textPayload"] for found in follower.take(clock.monotonic_s(), 100, 1 << 20)[0]]
    assert sorted(arrived) == texts(store) == [str(number) for number in range(10)]
    assert arrived != texts(store)


def test_a_duplicate_is_delivered_as_often_as_was_asked(store):
    store.duplicate("textPayload:a", copies=3)
    store.append([entry("a", insert_id="x"), entry("b", second=1)])
    assert texts(store) == ["a", "a", "a", "b"]
    assert {found.entry()["insertId"] for found in store.scan(P, TimeBounds()) if found.copy or found.entry()["textPayload"] == "a"} == {
        "x"
    }


def test_an_entry_lost_is_never_found_and_counted(store):
    store.lose("textPayload:a", times=1)
    store.append([entry("a"), entry("a too", second=1), entry("b", second=2)])
    assert texts(store) == ["a too", "b"]
    assert store.holdings().lost == 1


def test_a_wrong_clock_turns_the_order(store):
    store.skew("textPayload=b", skew_s=-1.5)
    store.append([entry("a", second=2), entry("b", second=3)])
    found = [found.entry() for found in store.scan(P, TimeBounds())]
    assert [(each["textPayload"], each["timestamp"]) for each in found] == [
        ("b", "2026-01-01T00:00:01.5Z"),
        ("a", "2026-01-01T00:00:02Z"),
    ]


def test_an_entry_is_as_long_as_was_asked(store):
    store.enlarge(padded_bytes=1 << 20)
    store.append([entry("a"), {"logName": "projects/p/logs/l", "jsonPayload": {"step": 1}, "timestamp": "2026-01-01T00:00:01Z"}])
    text, structured = (found.entry() for found in store.scan(P, TimeBounds()))
    assert len(text["textPayload"]) == 1 << 20
    assert structured["jsonPayload"]["step"] == 1
    assert len(structured["jsonPayload"]["padding"]) == 1 << 20


def test_a_disturbance_that_cannot_be_meant_is_refused(store):
    with pytest.raises(FilterError):
        store.hold_back("severity=")
    with pytest.raises(ValueError, match="numbers >= 0"):
        Disturbance(late_s=-1)


def test_space_is_bounded_and_what_was_dropped_is_told(clock):
    store = LogEntryStore(clock, Retention(bytes_max=10_000))
    store.append([entry(f"{number:03d}", second=None) for number in range(200)])
    held = store.holdings()
    assert held.bytes <= 10_000
    assert held.entries + held.dropped_for_space == 200
    assert held.dropped_for_space > 0
    assert texts(store) == [f"{number:03d}" for number in range(held.dropped_for_space, 200)]


def test_age_is_bounded_both_ways(store, clock):
    store.append(
        [
            entry("kept"),
            entry("old") | {"timestamp": "2025-11-01T00:00:00Z"},
            entry("ahead") | {"timestamp": "2026-01-02T00:00:01Z"},
        ]
    )
    assert texts(store) == ["kept"]
    assert store.holdings().dropped_for_age == 2
    clock.advance(31 * 86_400)
    assert texts(store) == []


def test_a_deleted_log_is_gone_and_others_stay(store):
    store.append([entry("a", log="l"), entry("b", log="m", second=1), entry("c", log="l", second=2)])
    assert store.log_names("p") == ["projects/p/logs/l", "projects/p/logs/m"]
    assert store.delete_log("projects/p/logs/l") == 2
    assert store.log_names("p") == ["projects/p/logs/m"]
    assert texts(store) == ["b"]
    assert store.delete_log("projects/p/logs/l") == 0


def test_a_follower_gets_what_comes_after_it_and_not_before_its_window(store, clock):
    store.append([entry("before")])
    follower = store.follow()
    store.append([entry("after", second=1)])
    assert follower.take(clock.monotonic_s() - 2, 10, 1 << 20) == ([], 0)
    clock.advance(2)
    assert [found.entry()["textPayload"] for found in follower.take(clock.monotonic_s() - 2, 10, 1 << 20)[0]] == ["after"]
    store.unfollow(follower)
    store.append([entry("never", second=2)])
    assert follower.take(float("inf"), 10, 1 << 20) == ([], 0)


def test_a_slow_follower_is_told_how_many_it_has_missed(store):
    follower = store.follow()
    store.append([entry("x", second=None) for _ in range(QUEUE_MAX + 3)])
    taken, missed = follower.take(float("inf"), QUEUE_MAX * 2, 1 << 30)
    assert (len(taken), missed) == (QUEUE_MAX, 3)
    assert follower.take(float("inf"), 10, 1 << 20) == ([], 0)


def test_a_follower_takes_no_more_bytes_than_it_wants_but_one_entry_at_least(store):
    follower = store.follow()
    store.append([entry("x" * 1000, second=second) for second in range(5)])
    assert [len(follower.take(float("inf"), 10, 2500)[0]) for _ in range(4)] == [2, 2, 1, 0]
    store.append([entry("x" * 1000, second=9)])
    assert len(follower.take(float("inf"), 10, 1)[0]) == 1


def test_many_threads_lose_nothing(store):
    threads = [
        threading.Thread(target=lambda name=name: [store.append([entry(f"{name}-{number}", second=None)]) for number in range(100)])
        for name in range(8)
    ]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        texts(store)
    assert sorted(texts(store)) == sorted(f"{name}-{number}" for name in range(8) for number in range(100))
