"""Bytes to lines."""

import re

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.protocol.lines import LineSplitter

ON_A_LOADED_MACHINE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@ON_A_LOADED_MACHINE
@given(st.lists(st.binary(max_size=20)))
def test_lines_do_not_depend_on_how_the_bytes_arrive(pieces):
    splitter = LineSplitter(1000, drops_long=False)

    lines = [line for piece in pieces for line in splitter.feed(piece)]

    *whole, rest = b"".join(pieces).split(b"\n")
    assert lines == whole
    assert splitter.has_partial == bool(rest)
    assert splitter.take_partial() == [rest]


@ON_A_LOADED_MACHINE
@given(st.lists(st.lists(st.sampled_from([b"a", b"\r", b"\n"]), max_size=6).map(b"".join)))
def test_a_lone_carriage_return_ends_a_line_and_stays_however_the_bytes_arrive(pieces):
    splitter = LineSplitter(1000, drops_long=False, splits_redraws=True)

    lines = [line for piece in pieces for line in splitter.feed(piece)] + splitter.take_partial()

    whole = re.sub(rb"\r(?!\n|\Z)", b"\r\0", b"".join(pieces)).replace(b"\r\n", b"\0").replace(b"\n", b"\0")
    assert lines == whole.removesuffix(b"\r").split(b"\0")


@ON_A_LOADED_MACHINE
@given(st.lists(st.binary(max_size=20)), st.booleans())
def test_a_long_line_is_cut_or_dropped_and_counted(pieces, drops_long):
    splitter = LineSplitter(5, drops_long=drops_long)

    lines = [line for piece in pieces for line in splitter.feed(piece)] + splitter.take_partial()

    whole = b"".join(pieces).split(b"\n")
    assert lines == [line[:5] for line in whole if len(line) <= 5 or not drops_long]
    assert splitter.long_count == sum(len(line) > 5 for line in whole)
