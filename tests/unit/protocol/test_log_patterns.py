"""Events from the log of a silent job."""

import pytest

from harness.errors import UnknownNameError
from harness.history import Done, LogLine, Restored, SaveEnded, SigtermSeen, Started, StepDone
from harness.protocol.log_patterns import LogPatternReader


def line(text):
    return LogLine(t_s=1.5, task=1, attempt=2, stream="stdout", text=text)


def test_each_pattern_stands_for_its_events():
    patterns = {
        "step": r"step=(?P<step>\d+)",
        "saved": r"wrote (?P<step>\d+)",
        "resumed": r"from (?P<step>\d+)",
        "sigterm": "TERM",
        "done": "finished",
    }
    reader = LogPatternReader(patterns, steps=9)

    where = {"t_s": 1.5, "task": 1, "attempt": 2}
    assert reader.read(line("nothing")) == []
    assert reader.read(line("step=3 loss=1")) == [StepDone(**where, step=3)]
    assert reader.read(line("wrote 3")) == [SaveEnded(**where, step=3)]
    assert reader.read(line("from 3")) == [Restored(**where, step=3), Started(**where, restored_step=3, steps=9)]
    assert reader.read(line("got TERM")) == [SigtermSeen(**where)]
    assert reader.read(line("finished")) == [Done(**where, step=9)]


def test_done_takes_the_step_of_its_line_else_the_last_one_seen():
    reader = LogPatternReader({"step": r"step (?P<step>\d+)", "done": r"done( at (?P<step>\d+))?"}, steps=0)
    reader.read(line("step 4"))

    assert [event.step for event in reader.read(line("done"))] == [4]
    assert [event.step for event in reader.read(line("done at 7"))] == [7]


def test_one_line_may_stand_for_several_events():
    reader = LogPatternReader({"step": r"(?P<step>\d+)", "saved": r"(?P<step>\d+) saved"}, steps=0)

    assert [type(event) for event in reader.read(line("5 saved"))] == [StepDone, SaveEnded]


@pytest.mark.parametrize("text", ["step x", "step " + "9" * 5000, "a" * 5000 + "step 3", "step -3"])
def test_what_is_no_step_is_no_event(text):
    assert LogPatternReader({"step": r"step (?P<step>\S+)"}, steps=0).read(line(text)) == []


def test_a_pattern_for_no_event_is_refused():
    with pytest.raises(UnknownNameError, match="did you mean saved"):
        LogPatternReader({"save": "x"}, steps=0)
