"""Reading pipes."""

import os

import pytest

from harness.protocol.attempt_key import AttemptKey
from harness.protocol.output import JobOutput, OutputLimits, PipeSource, severity_of


@pytest.fixture
def pipes():
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    yield (out_read, err_read), (out_write, err_write)
    for descriptor in (out_read, out_write, err_read, err_write):
        try:
            os.close(descriptor)
        except OSError:
            continue


def make(readers, **limits):
    return JobOutput(AttemptKey(1, 2), stdout=PipeSource(readers[0]), stderr=PipeSource(readers[1]), limits=OutputLimits(**limits))


def test_lines_of_both_streams_name_their_attempt(pipes):
    readers, (out, err) = pipes
    output = make(readers)
    os.write(out, b"a\nb\nhalf")
    os.write(err, b"e\n")

    lines = output.read(3.0, 1 << 20)

    assert [(line.stream, line.text, line.task, line.attempt, line.t_s) for line in lines] == [
        ("stdout", "a", 1, 2, 3.0),
        ("stdout", "b", 1, 2, 3.0),
        ("stderr", "e", 1, 2, 3.0),
    ]
    last, lost = output.finish(4.0)
    assert [(line.text, line.t_s) for line in last] == [("half", 4.0)]
    assert lost == []


def test_a_progress_bar_is_seen_as_it_goes(pipes):
    readers, (_, err) = pipes
    output = make(readers)
    os.write(err, b"begins\n\r  0%| 0/60\r 40%| 24/60\r")

    lines = output.read(1.0, 1 << 20)
    os.write(err, b"100%| 60/60\nends\r")
    lines += output.read(2.0, 1 << 20)
    os.write(err, b"\n")
    lines += output.read(3.0, 1 << 20) + output.finish(4.0)[0]

    assert [(line.text, line.is_redrawn, line.t_s) for line in lines] == [
        ("begins", False, 1.0),
        ("  0%| 0/60", True, 1.0),
        (" 40%| 24/60", True, 2.0),
        ("100%| 60/60", True, 2.0),
        ("ends", False, 3.0),
    ]


def test_a_closed_stream_is_not_watched_any_more(pipes):
    readers, (out, _) = pipes
    output = make(readers)
    assert list(output.open_descriptors) == list(readers)

    os.close(out)
    output.read(0.0, 1 << 20)

    assert list(output.open_descriptors) == [readers[1]]


def test_the_budget_bounds_a_look_and_says_that_there_is_more(pipes):
    readers, (out, _) = pipes
    output = make(readers)
    os.set_blocking(out, False)
    written = os.write(out, b"x" * 9 + b"\n") + os.write(out, b"y\n" * 1000)

    output.read(0.0, 10)
    assert not output.is_drained
    output.read(0.0, 1 << 20)

    assert output.is_drained
    assert written == 2010


@pytest.mark.parametrize("limits", [{"lines": 10}, {"bytes": 20}])
def test_what_is_over_a_limit_is_drained_and_counted(pipes, limits):
    readers, (out, _) = pipes
    output = make(readers, **limits)
    kept = 0
    for _ in range(10):
        os.write(out, b"x\n" * 10)
        kept += len(output.read(0.0, 1 << 20))

    _, (lost,) = output.finish(1.0)

    assert (kept, lost.what, lost.count) == (10, "logs", 90)


@pytest.mark.parametrize(
    ("text", "severity"),
    [
        ("plain", "DEFAULT"),
        ('{"severity":"ERROR"}', "ERROR"),
        ('{"severity":"warning","x":[1]}', "WARNING"),
        ('{"severity":"loud"}', "DEFAULT"),
        ('{"severity":7}', "DEFAULT"),
        ('{"severity":', "DEFAULT"),
        ("{" + "[" * 100_000, "DEFAULT"),
        ('{"x":' + "[" * 100_000, "DEFAULT"),
    ],
)
def test_only_a_line_of_json_has_a_severity(text, severity):
    assert severity_of(text) == severity


def test_a_line_that_began_before_the_limit_and_ended_behind_it_is_counted_once(pipes):
    readers, (out, _) = pipes
    output = make(readers, bytes=10)
    os.write(out, b"kept\nhalf")
    output.read(1.0, 1 << 20)
    os.write(out, b"other half\n")
    output.read(2.0, 1 << 20)

    lines, (lost,) = output.finish(3.0)

    assert lines == []
    assert lost.count == 1
