"""What a recovery said becomes what it did."""

import json
from collections.abc import Sequence
from pathlib import Path

from harness.explore.judging.ended import Ended, ended_of
from harness.explore.judging.observation import PatternListener, observe, read_events
from harness.history import JobEvent, LogLine
from harness.protocol.attempt_key import AttemptKey
from harness.protocol.job_lines import JobLineReader

WELL = Ended(exit_code=0)


def events(*lines: dict[str, object]) -> Sequence[JobEvent]:
    reader = JobLineReader(AttemptKey(0, 1), 0.0)
    return [reader.read_event(json.dumps(line).encode(), 1.0) for line in lines]


def test_a_recovery_is_told_by_the_protocol() -> None:
    recovery = observe(
        WELL,
        events(
            {"event": "boot"},
            {"event": "restore.begin", "step": 8},
            {"event": "restore.begin", "step": 4},
            {"event": "restore", "step": 4, "digests": {"params": "p4"}},
            {"event": "start", "restored_step": 4, "steps": 6},
            {"event": "step", "step": 5},
            {"event": "step", "step": 6, "digests": {"params": "p6"}},
            {"event": "save.end", "step": 6, "rank": 1, "digests": {"params": "p6"}},
            {"event": "done", "step": 6},
        ),
    )

    assert (recovery.chosen_step, recovery.restored_step, recovery.restored_digests) == (4, 4, {"params": "p4"})
    assert (recovery.final_step, recovery.digests, recovery.done) == (6, {5: {}, 6: {"params": "p6"}}, True)
    assert [save.step for save in recovery.saves] == [6]


def test_a_checkpoint_that_was_chosen_and_not_restored_is_known() -> None:
    recovery = observe(Ended(exit_code=1, said="ValueError"), events({"event": "restore.begin", "step": 8}))

    assert (recovery.chosen_step, recovery.restored_step, recovery.detail) == (8, -1, "ValueError")


def test_from_scratch_is_step_0_and_silence_is_no_step() -> None:
    assert observe(WELL, events({"event": "start", "restored_step": 0})).restored_step == 0
    assert observe(WELL, []).restored_step == -1


def test_the_step_that_was_loaded_counts_and_not_the_one_that_it_takes_it_for() -> None:
    assert observe(WELL, events({"event": "restore", "step": 8}, {"event": "start", "restored_step": 9})).restored_step == 8


def test_other_ranks_do_not_speak_for_the_first() -> None:
    recovery = observe(WELL, events({"event": "step", "step": 3, "rank": 1}, {"event": "done", "step": 3, "rank": 1}))

    assert (recovery.final_step, recovery.digests, recovery.done) == (-1, {}, False)


def test_a_silent_job_is_heard_by_its_patterns() -> None:
    listener = PatternListener({"resumed": r"resumed from (?P<step>\d+)", "saved": r"saved (?P<step>\d+)", "done": "complete"})
    for text in ("resumed from 4", "saved 8", "noise", "complete"):
        listener.hear(LogLine(t_s=0.0, task=0, attempt=1, stream="stdout", text=text))
    recovery = observe(WELL, listener.events)

    assert (recovery.restored_step, [save.step for save in recovery.saves], recovery.done) == (4, [8], True)


FALLS_BACK = {"resumed": r"resuming from (?P<step>\d+)", "step": r"^step (?P<step>\d+)", "saved": r"saved (?P<step>\d+)"}


def heard(*lines: tuple[str, str]) -> Sequence[JobEvent]:
    listener = PatternListener(FALLS_BACK)
    for stream, text in lines:
        listener.hear(LogLine(t_s=0.0, task=0, attempt=1, stream="stdout" if stream == "out" else "stderr", text=text))
    return listener.events


def test_of_a_silent_job_that_falls_back_the_last_restore_before_its_first_step_counts() -> None:
    said = [("out", text) for text in ("resuming from 15", "resuming from 10", "step 11", "saved 15", "resuming from 15")]

    assert observe(WELL, heard(*said)).restored_step == 10


def test_what_is_restored_comes_first_when_two_streams_arrive_in_another_order() -> None:
    assert observe(WELL, heard(("out", "step 11"), ("err", "resuming from 10"))).restored_step == 10
    assert observe(WELL, heard(("out", "step 11"), ("out", "resuming from 10"))).restored_step == -1


def test_what_a_job_of_the_protocol_says_last_before_it_trains_counts() -> None:
    begins = [{"event": "start", "restored_step": 8}, {"event": "restore", "step": 4}, {"event": "start", "restored_step": 4}]

    assert observe(WELL, events(*begins, {"event": "step", "step": 5})).restored_step == 4


def test_lines_that_could_not_be_read_are_told(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(b'{"event":"boot"}\ngarbage\n{"event":"step"')
    found, unheard = read_events(path, attempt=1, now_s=1.0)

    assert len(found) == 1
    assert "1 not an event" in unheard
    assert "torn last line" in unheard


def test_a_signal_of_ours_says_nothing_of_the_job() -> None:
    assert ended_of(-9, timed_out=True, seconds=1.0, said="").signal is None
    assert ended_of(-9, timed_out=False, seconds=1.0, said="").signal == 9
    assert ended_of(3, timed_out=False, seconds=1.0, said="").exit_code == 3
