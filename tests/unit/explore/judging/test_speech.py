"""What comes through a pipe is read as it comes, and only its end is kept."""

import os
from collections.abc import Callable, Iterator

import pytest

from harness.explore.judging.speech import KEPT_BYTES, Output
from harness.history import LogLine

Write = Callable[[bytes], None]


@pytest.fixture
def pipe() -> Iterator[tuple[int, Write, Callable[[], None]]]:
    reading, writing = os.pipe()
    open_ends = [reading, writing]

    def end() -> None:
        open_ends.remove(writing)
        os.close(writing)

    yield reading, lambda data: os.write(writing, data) and None, end
    for descriptor in open_ends:
        os.close(descriptor)


def test_nothing_yet_is_not_the_end(pipe) -> None:
    reading, write, end = pipe
    output = Output({"stdout": reading})

    assert output.read(reading) is None
    write(b"x")
    assert output.read(reading) == b"x"
    end()
    assert output.read(reading) == b""


def test_only_the_end_is_kept(pipe) -> None:
    reading, write, _ = pipe
    output = Output({"stdout": reading})
    write(b"a" * KEPT_BYTES + b"\xffthe end\n")
    output.drain()

    assert output.end.endswith("\ufffdthe end")
    assert len(output.end) <= KEPT_BYTES


def test_lines_are_heard_once_each_with_progress_bars_and_a_last_line_that_never_ended(pipe) -> None:
    reading, write, end = pipe
    heard: list[LogLine] = []
    output = Output({"stdout": reading}, heard.append)
    for part in (b"step ", b"1\nstep 2\r\n  5%\r 10%\r", b"done"):
        write(part)
        output.read(reading)
    end()
    output.drain()

    assert [line.text.strip() for line in heard] == ["step 1", "step 2", "5%", "10%", "done"]


def test_a_bar_on_the_one_stream_that_ends_no_line_takes_no_line_of_the_other() -> None:
    heard: list[tuple[str, str]] = []
    (out, say), (errors, draw) = os.pipe(), os.pipe()
    output = Output({"stdout": out, "stderr": errors}, lambda line: heard.append((line.stream, line.text.strip())))
    for step in (1, 2):
        os.write(draw, f"\r{step}/2 |###|".encode())
        output.read(errors)
        os.write(say, f"step {step}\n".encode())
        output.read(out)
    for descriptor in (say, draw):
        os.close(descriptor)
    output.drain()

    assert [text for stream, text in heard if stream == "stdout"] == ["step 1", "step 2"]
    assert [text for stream, text in heard if stream == "stderr"] == ["1/2 |###|", "2/2 |###|"]
    assert output.end.splitlines()[-1] == "step 2"
    assert output.end_of("stdout") == "step 1\nstep 2"
    for descriptor in (out, errors):
        os.close(descriptor)
