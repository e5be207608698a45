"""The content that operations make, against plain bytes."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from harness.supervision.recorder.pieces import Pieces

OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("write"), st.integers(0, 40), st.binary(min_size=1, max_size=20)),
        st.tuples(st.just("truncate"), st.integers(0, 60), st.just(b"")),
    ),
    max_size=12,
)


@given(OPERATIONS)
def test_any_writes_and_truncations_leave_what_they_leave_in_a_file(operations) -> None:
    pieces, data, content = Pieces(), bytearray(), b""
    for kind, number, written in operations:
        if kind == "write":
            pieces.write(number, len(written), len(data))
            data += written
            content = content[:number].ljust(number, b"\0") + written + content[number + len(written) :]
        else:
            pieces.truncate(number)
            content = content[:number].ljust(number, b"\0")

    made = bytearray(pieces.size)
    for begins, ends, start in pieces:
        made[begins:ends] = data[start : start + ends - begins]
    assert bytes(made) == content
    parts = list(pieces)
    assert all(one[1] <= other[0] for one, other in itertools.pairwise(parts))


def test_a_file_written_from_front_to_back_is_one_piece() -> None:
    pieces = Pieces()
    for at in range(1000):
        pieces.write(at * 10, 10, 500 + at * 10)

    assert list(pieces) == [(0, 10_000, 500)]


def test_the_rest_of_a_file_that_was_cut_is_not_there_when_it_grows_again() -> None:
    pieces = Pieces()
    pieces.write(0, 10, 0)
    pieces.truncate(4)
    pieces.truncate(10)

    assert (list(pieces), pieces.size) == ([(0, 4, 0)], 10)
