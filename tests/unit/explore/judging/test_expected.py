"""What the log of a recording promises, at each moment of it."""

from harness.explore.judgement import Recovery
from harness.explore.judging.expected import expect
from harness.explore.operations import Closed, Ended, Printed, Renamed, Said

GOLDEN = Recovery(exit_code=0)


def said(index: int, line: str) -> Said:
    return Said(index=index, t_s=1.0, line=line)


def rename(index: int) -> Renamed:
    return Renamed(index=index, t_s=1.0, path="a", to="b", node=1)


def test_digests_are_those_that_were_told_last() -> None:
    expected = expect(
        (
            said(1, '{"event":"step","step":4,"digests":{"params":"first"}}'),
            rename(2),
            said(3, '{"event":"save.begin","step":4,"digests":{"params":"second"}}'),
            rename(4),
            said(5, '{"event":"save.begin","step":8,"digests":{"params":"third"}}'),
        ),
        GOLDEN,
    )

    assert [dict(expected.digests_at(4, at)) for at in (1, 2, 4)] == [{"params": "first"}, {"params": "second"}, {"params": "second"}]
    assert [dict(expected.digests_at(8, at)) for at in (2, 4)] == [{}, {"params": "third"}]


def test_only_rank_0_tells_the_state_and_any_rank_a_save() -> None:
    expected = expect(
        (
            said(1, '{"event":"step","step":4,"rank":1,"digests":{"params":"shard"}}'),
            said(2, '{"event":"save.end","step":4,"rank":3}'),
        ),
        GOLDEN,
    )

    assert expected.digests_at(4, 9) == {}
    assert expected.promised_step(9) == 4


def test_what_was_restored_was_durable() -> None:
    assert expect((said(1, '{"event":"restore","step":8,"digests":{}}'),), GOLDEN).promised_step(1) == 8


def test_a_step_that_was_named_and_could_not_be_restored_is_no_promise() -> None:
    printed = tuple(
        Printed(index=index, t_s=1.0, stream="stdout", text=f"{text}\n")
        for index, text in enumerate(("resuming 15", "resuming 10", "step 11", "saved 15"), start=1)
    )
    patterns = {"resumed": r"resuming (?P<step>\d+)", "step": r"step (?P<step>\d+)", "saved": r"saved (?P<step>\d+)"}
    expected = expect(printed, GOLDEN, patterns=patterns)

    assert [expected.promised_step(at) for at in (1, 2, 3, 4)] == [0, 10, 10, 15]
    silently = expect((*printed[:1], *printed[2:]), GOLDEN, patterns=patterns)
    assert [silently.promised_step(at) for at in (1, 3, 4)] == [0, 0, 15]


def test_what_was_kept_before_the_recording_is_promised_until_something_newer_is() -> None:
    expected = expect((said(3, '{"event":"save.end","step":12}'),), GOLDEN, kept_before=8)

    assert [expected.promised_step(moment) for moment in (1, 3)] == [8, 12]
    assert expect((said(3, '{"event":"restore","step":4}'),), GOLDEN, kept_before=8).promised_step(3) == 8


def test_what_had_been_begun_before_the_recording_may_be_restored_from_its_beginning_on() -> None:
    expected = expect((said(0, '{"event":"save.begin","step":4,"digests":{"params":"p"}}'), rename(1)), GOLDEN)

    assert expected.was_begun(4, 0) is True
    assert expected.digests_at(4, 0) == {"params": "p"}


def test_a_line_that_is_no_event_says_nothing() -> None:
    assert expect((said(1, "{"), said(2, '{"event":"save.end"}'), said(3, "\udc80")), GOLDEN).acknowledged == ()


def test_a_silent_job_acknowledges_by_what_it_prints_with_the_piece_that_ends_the_line() -> None:
    printed = (
        Printed(index=1, t_s=1.0, stream="stdout", text="saved st"),
        Printed(index=2, t_s=1.0, stream="stdout", text="ep 4\nsaved"),
        Printed(index=3, t_s=1.0, stream="stderr", text=" step 8\n"),
    )

    assert expect(printed, GOLDEN, patterns={"saved": r"saved step (?P<step>\d+)"}).acknowledged == ((2, 4),)
    assert expect(printed, GOLDEN).acknowledged == ()


def test_the_recording_hears_progress_bars_and_a_last_line_without_its_end_as_recoveries_do() -> None:
    entries = (
        Printed(index=1, t_s=1.0, stream="stdout", text="50%\r100%\rsaved step 4\n"),
        Printed(index=2, t_s=1.0, stream="stdout", text="saved step 8\rsaved"),
        Printed(index=3, t_s=1.0, stream="stdout", text=" step 12"),
        Ended(index=4, t_s=1.0, exit_code=0),
    )

    assert expect(entries, GOLDEN, patterns={"saved": r"^saved step (?P<step>\d+)"}).acknowledged == ((1, 4), (2, 8), (4, 12))
    assert expect(entries, GOLDEN).acknowledged == ()


def test_an_acknowledgement_obliges_from_its_own_entry_on() -> None:
    expected = expect((rename(1), said(2, '{"event":"save.end","step":4}'), Closed(index=3, t_s=1.0, node=1, handle=1)), GOLDEN)

    assert [expected.promised_step(at) for at in (0, 1, 2, 3)] == [0, 0, 4, 4]


def test_a_change_that_is_half_done_comes_after_what_was_said_before_it() -> None:
    expected = expect((rename(1), said(2, '{"event":"save.begin","step":4,"digests":{"params":"p"}}'), rename(3), rename(4)), GOLDEN)

    assert [expected.was_begun(4, at) for at in (0, 1, 2, 3)] == [False, True, True, True]
    assert [dict(expected.digests_at(4, at)) for at in (0, 1)] == [{}, {"params": "p"}]


def test_a_job_that_does_not_tell_its_saves_leaves_it_open_whether_one_was_begun() -> None:
    assert expect((), GOLDEN).was_begun(4, 9) is None
    assert expect((said(2, '{"event":"save.begin","step":8}'),), GOLDEN).was_begun(4, 9) is False
    assert expect((said(2, '{"event":"save.begin","step":8}'),), GOLDEN, kept_before=4).was_begun(4, 9) is True
