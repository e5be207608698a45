"""Pages of entries."""

import pytest

from harness.clock import ManualClock
from harness.emulator.failures import ApiError
from harness.emulator.logging import listing
from harness.emulator.logging.listing import Query, list_entries
from harness.emulator.logging.store import LogEntryStore
from harness.emulator.project import Projects, ProjectState


@pytest.fixture
def projects():
    return Projects([ProjectState(name="p", number=7), ProjectState(name="closed", number=8, granted=frozenset())])


@pytest.fixture
def store():
    store = LogEntryStore(ManualClock())
    store.append(
        {"logName": "projects/p/logs/l", "timestamp": f"2026-01-01T00:00:{second:02d}Z", "jsonPayload": {"step": second}}
        for second in range(10)
    )
    return store


def steps(page):
    return [found.entry()["jsonPayload"]["step"] for found in page.deliveries]


def read_all(store, projects, **asked):
    pages, token = [], ""
    while True:
        page = list_entries(store, projects, Query(resource_names=["projects/p"], page_token=token, **asked))
        pages.append(steps(page))
        token = page.next_page_token
        if not token:
            return pages


def refusal(store, projects, **asked):
    with pytest.raises(ApiError) as caught:
        list_entries(store, projects, Query(**{"resource_names": ["projects/p"], **asked}))
    return caught.value


def test_pages_hold_all_in_order_and_the_last_has_no_token(store, projects):
    assert read_all(store, projects, page_size=4) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert read_all(store, projects, page_size=5) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert read_all(store, projects, page_size=6, order_by="timestamp desc") == [[9, 8, 7, 6, 5, 4], [3, 2, 1, 0]]
    assert read_all(store, projects, page_size=1, filter="jsonPayload.step>=8") == [[8], [9]]


def test_a_page_cut_short_has_a_token_for_the_rest(store, projects):
    page = list_entries(store, projects, Query(resource_names=["projects/p"], is_partial=True))
    assert steps(page) == [0, 1, 2, 3, 4]
    rest = list_entries(store, projects, Query(resource_names=["projects/p"], page_token=page.next_page_token))
    assert steps(rest) == [5, 6, 7, 8, 9]


def test_a_search_that_took_too_long_gives_an_empty_page_and_goes_on(store, projects, monkeypatch):
    monkeypatch.setattr(listing, "SCANNED_MAX", 4)
    assert read_all(store, projects, filter="jsonPayload.step=9") == [[], [], [9]]


def test_a_project_is_meant_by_its_number_too(store, projects):
    assert steps(list_entries(store, projects, Query(resource_names=["projects/7"]))) == list(range(10))


def test_a_token_of_another_query_is_refused(store, projects):
    token = list_entries(store, projects, Query(resource_names=["projects/p"], page_size=1)).next_page_token
    assert refusal(store, projects, page_token=token, filter="a").code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("token", ["x", "%%%", "W10=", "bm9uZQ=="])
def test_a_token_that_is_none_is_refused(store, projects, token):
    assert "page token is invalid" in refusal(store, projects, page_token=token).message


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"page_size": 1001}, "INVALID_ARGUMENT"),
        ({"page_size": -1}, "INVALID_ARGUMENT"),
        ({"order_by": "severity"}, "INVALID_ARGUMENT"),
        ({"filter": "severity="}, "INVALID_ARGUMENT"),
        ({"resource_names": []}, "INVALID_ARGUMENT"),
        ({"resource_names": ["projects/p"] * 101}, "INVALID_ARGUMENT"),
        ({"resource_names": ["p"]}, "INVALID_ARGUMENT"),
        ({"resource_names": ["projects/other"]}, "PERMISSION_DENIED"),
        ({"resource_names": ["projects/closed"]}, "PERMISSION_DENIED"),
        ({"resource_names": ["folders/1"]}, "PERMISSION_DENIED"),
        ({"resource_names": ["projects/p/locations/global/buckets/b/views/v"]}, "UNIMPLEMENTED"),
    ],
)
def test_what_cannot_be_asked_is_refused(store, projects, asked, code):
    assert refusal(store, projects, **asked).code == code


def test_a_page_of_large_entries_ends_early_and_one_too_large_comes_alone(store, projects, monkeypatch):
    monkeypatch.setattr(listing, "PAGE_BYTES_MAX", 400)
    pages = read_all(store, projects)
    assert [step for page in pages for step in page] == list(range(10))
    assert all(len(page) in (1, 2, 3) for page in pages)
    monkeypatch.setattr(listing, "PAGE_BYTES_MAX", 1)
    assert read_all(store, projects) == [[step] for step in range(10)]
