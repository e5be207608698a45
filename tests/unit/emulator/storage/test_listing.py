"""Pages of listings, compared with a plain model that has no pages."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from harness.emulator.failures import ApiError
from harness.emulator.storage.listing import RESULTS_MAX, ListQuery, list_page

TEXT = st.text(alphabet="ab/é\U0001f600", max_size=5)
NAMES = st.sets(st.text(alphabet="ab/é\U0001f600", min_size=1, max_size=6), max_size=25)
QUERIES = st.builds(
    ListQuery,
    prefix=st.sampled_from(["", "a", "a/", "a/b", "é"]),
    delimiter=st.sampled_from(["", "/", "b", "//"]),
    start_offset=st.one_of(st.just(""), TEXT),
    end_offset=st.one_of(st.just(""), TEXT),
    tells_trailing_delimiter=st.booleans(),
)


def model(names, query):
    """Everything that a query asks for, as Google's page describes it: names sorted by their bytes, and the prefixes."""
    found, prefixes = [], set()
    for name in sorted(names, key=str.encode):
        if not name.startswith(query.prefix) or name.encode() < query.start_offset.encode():
            continue
        if query.end_offset and name.encode() >= query.end_offset.encode():
            continue
        rest = name[len(query.prefix) :]
        if query.delimiter and query.delimiter in rest:
            prefixes.add(query.prefix + rest.split(query.delimiter)[0] + query.delimiter)
            is_only = rest.index(query.delimiter) + len(query.delimiter) == len(rest)
            if not (query.tells_trailing_delimiter and is_only):
                continue
        found.append(name)
    return found, sorted(prefixes, key=str.encode)


def pages(names, query, size):
    token = ""
    while True:
        page = list_page(
            names,
            ListQuery(
                prefix=query.prefix,
                delimiter=query.delimiter,
                start_offset=query.start_offset,
                end_offset=query.end_offset,
                tells_trailing_delimiter=query.tells_trailing_delimiter,
                page_token=token,
                results_max=size,
            ),
        )
        yield page
        token = page.next_token
        if not token:
            return


@example(names={"a/", "a/b"}, query=ListQuery(delimiter="/", tells_trailing_delimiter=True), size=1)
@given(names=NAMES, query=QUERIES, size=st.integers(1, 30))
def test_all_pages_together_are_what_was_asked_for_once_each_and_in_order(names, query, size):
    found = list(pages(names, query, size))

    assert [name for page in found for name in page.names] == model(names, query)[0]
    assert [prefix for page in found for prefix in page.prefixes] == model(names, query)[1]
    assert all(1 <= len(page.names) + len(page.prefixes) <= size for page in found[:-1])


@given(names=NAMES, other=NAMES, size=st.integers(1, 5))
def test_a_name_that_stays_is_told_once_whatever_comes_and_goes_between_pages(names, other, size):
    first = list_page(names, ListQuery(results_max=size))
    rest = list_page(other, ListQuery(page_token=first.next_token)).names if first.next_token else ()

    told = [*first.names, *rest]
    assert len(told) == len(set(told))
    assert not first.next_token or names & other <= set(told)


def test_a_page_has_no_more_than_a_thousand_whatever_is_asked():
    page = list_page({str(number) for number in range(RESULTS_MAX + 1)}, ListQuery(results_max=5000))

    assert len(page.names) == RESULTS_MAX
    assert page.next_token


@pytest.mark.parametrize("token", ["x", "!!", "eA==", "é"])
def test_a_token_that_is_none_is_refused(token):
    with pytest.raises(ApiError, match="Invalid pageToken"):
        list_page({"a"}, ListQuery(page_token=token))


def test_a_page_of_no_results_is_refused():
    with pytest.raises(ApiError, match="maxResults"):
        list_page({"a"}, ListQuery(results_max=0))
