"""Taking the engine's stream apart."""

import os
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.targets.docker.attached_output import STDERR, STDOUT, AttachedOutput


def framed(stream: int, data: bytes) -> bytes:
    return struct.pack(">BxxxL", stream, len(data)) + data


@pytest.fixture
def pipe():
    reading, writing = os.pipe()
    output = AttachedOutput(reading)
    yield output, writing
    output.close()
    try:
        os.close(writing)
    except OSError:
        return


def test_each_stream_gets_its_own_pieces(pipe):
    output, writing = pipe
    os.write(writing, framed(STDOUT, b"a\n") + framed(STDERR, b"e\n") + framed(STDOUT, b"b\n"))

    assert b"".join(output.stdout.read(1 << 20)) == b"a\nb\n"
    assert b"".join(output.stderr.read(1 << 20)) == b"e\n"
    assert output.stdout.is_open


def test_a_piece_that_comes_in_halves_is_whole_in_the_end(pipe):
    output, writing = pipe
    data = framed(STDERR, b"hello")
    os.write(writing, data[:3])
    assert list(output.stderr.read(100)) == []
    os.write(writing, data[3:10])
    assert b"".join(output.stderr.read(100)) == b"he"
    os.write(writing, data[10:])

    assert b"".join(output.stderr.read(100)) == b"llo"


def test_the_end_comes_when_both_are_read(pipe):
    output, writing = pipe
    os.write(writing, framed(STDERR, b"last"))
    os.close(writing)

    assert list(output.stdout.read(1 << 20)) == []
    assert output.is_at_end
    assert not output.stdout.is_open
    assert output.stderr.is_open
    assert b"".join(output.stderr.read(1 << 20)) == b"last"
    assert not output.stderr.is_open


def test_an_empty_piece_is_no_end(pipe):
    output, writing = pipe
    os.write(writing, framed(STDOUT, b"") + framed(STDOUT, b"on"))

    assert b"".join(output.stdout.read(100)) == b"on"


def test_a_budget_bounds_what_is_read_of_both(pipe):
    output, writing = pipe
    os.set_blocking(writing, False)
    os.write(writing, b"".join(framed(STDERR, b"x" * 1000) for _ in range(60)))

    assert list(output.stdout.read(1)) == []
    assert sum(map(len, output.stderr.read(500))) <= 1000
    assert output.stderr.is_open


@given(pieces=st.lists(st.tuples(st.sampled_from([STDOUT, STDERR]), st.binary(max_size=40)), max_size=20), cut=st.integers(1, 50))
def test_any_cut_of_the_stream_gives_the_same(pieces, cut):
    reading, writing = os.pipe()
    output = AttachedOutput(reading)
    stream = b"".join(framed(*piece) for piece in pieces)
    said = {STDOUT: b"", STDERR: b""}
    for at in range(0, len(stream), cut):
        os.write(writing, stream[at : at + cut])
        said[STDOUT] += b"".join(output.stdout.read(1 << 20))
        said[STDERR] += b"".join(output.stderr.read(1 << 20))
    os.close(writing)
    output.close()

    assert said == {number: b"".join(data for stream, data in pieces if stream == number) for number in (STDOUT, STDERR)}
