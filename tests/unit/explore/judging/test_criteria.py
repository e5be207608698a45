"""Each promise is kept, broken, or was not checked; and what was not checked is never valid."""

from typing import Any

import msgspec
import pytest

from harness.explore.judgement import Judgement, Recovery, SaveSeen
from harness.explore.judging.criteria import NOTHING_COMPARED, judge
from harness.explore.judging.expected import expect
from harness.explore.operations import AnyEntry, Closed, Said
from harness.explore.recipe import Piece, Tried
from harness.verdict import Outcome

STEPS, EVERY = 12, 4


def digests(step: int, *, of: str = "a") -> dict[str, str]:
    return {"params": f"{of}{step}", "step": f"s{step}"}


def recovery(restored: int = 0, *, last: int = STEPS, **fields: Any) -> Recovery:
    """One that does all right from a step on."""
    steps = range(restored + 1, last + 1)
    right = Recovery(
        exit_code=0,
        restored_step=restored,
        restored_digests=digests(restored) if restored else {},
        final_step=last if steps else -1,
        digests={step: digests(step) for step in steps},
        saves=tuple(SaveSeen(step=step, digests=digests(step)) for step in steps if step % EVERY == 0),
        done=True,
        result="r" * 64,
    )
    return msgspec.structs.replace(right, **fields)


GOLDEN = recovery()


def said(index: int, text: str) -> Said:
    return Said(index=index, t_s=0.0, line=text)


def begin(index: int, step: int) -> Said:
    return said(index, f'{{"event":"save.begin","step":{step},"digests":{{"params":"a{step}","step":"s{step}"}}}}')


def end(index: int, step: int) -> Said:
    return said(index, f'{{"event":"save.end","step":{step}}}')


def closed(index: int) -> Closed:
    return Closed(index=index, t_s=0.0, node=1, handle=1)


LOG: tuple[AnyEntry, ...] = (
    closed(1),
    begin(2, 4),
    closed(3),
    closed(4),
    end(5, 4),
    closed(6),
    begin(7, 8),
    closed(8),
    closed(9),
    end(10, 8),
    closed(11),
)
BEFORE_ANY, IN_FIRST_SAVE, AFTER_FIRST, IN_SECOND_SAVE, AFTER_SECOND = 1, 3, 6, 8, 11


def judged(first: Recovery | None, second: Recovery | None = None, *, at: int = AFTER_FIRST, **expected: Any) -> Judgement:
    golden = expected.pop("golden", GOLDEN)
    return judge(Tried(state="s", first=first, second=second), expect(LOG, golden, **expected), at=at)


def outcome(judgement: Judgement, promise: str) -> Outcome | None:
    """None: not checked."""
    found = [broken.outcome for broken in judgement.broken if broken.promise == promise]
    return found[0] if found else Outcome.VALID if promise in judgement.checked else None


def says(judgement: Judgement, promise: str) -> str:
    return next(broken.says for broken in judgement.broken if broken.promise == promise)


KEEPS = "keeps-what-was-acknowledged"

VALID, INVALID, UNKNOWN = Outcome.VALID, Outcome.INVALID, Outcome.UNKNOWN


def test_a_right_recovery_keeps_every_promise_that_can_be_checked() -> None:
    judgement = judged(recovery(4), recovery(12))

    assert judgement.broken == ()
    assert set(judgement.checked) == {
        "recovers",
        "restores-what-was-saved",
        "keeps-what-was-acknowledged",
        "completes-as-uninterrupted",
        "saves-at-its-cadence",
        "keeps-the-last-good-checkpoint",
        "recovers-twice-alike",
    }


def test_from_scratch_is_right_before_anything_was_acknowledged() -> None:
    judgement = judged(recovery(0), at=IN_FIRST_SAVE)

    assert judgement.broken == ()
    assert outcome(judgement, "keeps-what-was-acknowledged") is None


def test_a_save_that_became_whole_before_it_was_acknowledged_may_be_restored() -> None:
    assert judged(recovery(8), at=IN_SECOND_SAVE).broken == ()


# ---- recovers --------------------------------------------------------------------------------------------------------

FAILURES = {
    "a traceback": recovery(-1, exit_code=1, detail="Traceback\n  ...\nValueError: torn"),
    "a signal": recovery(-1, exit_code=None, signal=11),
    "a hang": recovery(-1, exit_code=None, timed_out=True, seconds=60.0),
}


@pytest.mark.parametrize("failed", FAILURES.values(), ids=FAILURES)
def test_a_recovery_that_does_not_come_through_is_invalid(failed: Recovery) -> None:
    judgement = judged(failed)

    assert outcome(judgement, "recovers") is INVALID
    assert outcome(judgement, "completes-as-uninterrupted") is None


def test_a_failed_recovery_is_told_with_the_step_that_it_had_chosen_and_its_last_line() -> None:
    failed = Recovery(exit_code=1, chosen_step=8, detail="Traceback\nValueError: torn")

    assert says(judged(failed), "recovers") == "recovery failed with exit code 1 after it had chosen step 8: ValueError: torn"


OVERDUE = Recovery(exit_code=None, timed_out=True, seconds=30.0)
ASLEEP = msgspec.structs.replace(OVERDUE, slept=True)


@pytest.mark.parametrize(("first", "second"), [(OVERDUE, recovery(4)), (ASLEEP, None), (ASLEEP, ASLEEP)])
def test_one_that_may_only_have_waited_is_unknown_until_somebody_says_how_long_it_may(first: Recovery, second: Recovery | None) -> None:
    assert outcome(judged(first, second), "recovers") is UNKNOWN
    assert "--recovery-timeout SECONDS" in says(judged(first, second), "recovers")
    assert NOTHING_COMPARED not in {each.says for each in judged(first, second).broken}
    assert outcome(judged(first, second, is_timeout_given=True), "recovers") is INVALID


def test_one_that_works_until_its_time_is_over_and_the_next_one_too_is_invalid() -> None:
    assert outcome(judged(OVERDUE, OVERDUE), "recovers") is INVALID
    assert outcome(judged(OVERDUE), "recovers") is INVALID


def test_a_second_recovery_that_sleeps_until_its_time_is_over_is_unknown() -> None:
    assert outcome(judged(recovery(4), ASLEEP), "recovers-twice-alike") is UNKNOWN
    assert outcome(judged(recovery(4), OVERDUE), "recovers-twice-alike") is INVALID


def test_one_that_fails_again_on_what_the_first_left_is_a_crash_loop() -> None:
    failed = FAILURES["a traceback"]

    assert "the next one, on what it left, did not either" in says(judged(failed, failed), "recovers")
    assert says(judged(failed, recovery(4)), "recovers").endswith("the next one came through")


def test_what_nobody_could_try_is_unknown_with_the_reason() -> None:
    judgement = judge(Tried(state="s", lost="its worker was lost"), expect(LOG, GOLDEN), at=1)

    assert [(broken.outcome, broken.says) for broken in judgement.broken] == [(UNKNOWN, "nothing is known of it: its worker was lost")]
    assert judgement.checked == ()


# ---- restores what was saved -----------------------------------------------------------------------------------------


def test_what_is_restored_is_compared_with_what_was_in_memory_before_the_save() -> None:
    wrong = judged(recovery(4, restored_digests={"params": "torn", "step": "s4"}))

    assert outcome(wrong, "restores-what-was-saved") is INVALID
    assert says(wrong, "restores-what-was-saved") == "it restored step 4 with params torn; in memory it was a4 before the save"


def test_a_step_that_nobody_began_to_save_is_invalid_whatever_is_in_it() -> None:
    assert outcome(judged(recovery(8), at=AFTER_FIRST - 1), "restores-what-was-saved") is INVALID
    assert outcome(judged(recovery(8), at=IN_SECOND_SAVE), "restores-what-was-saved") is VALID


def test_a_part_that_recovery_does_not_tell_is_unknown() -> None:
    assert outcome(judged(recovery(4, restored_digests={"step": "s4"})), "restores-what-was-saved") is UNKNOWN


def test_without_digests_nothing_is_said_of_what_was_restored() -> None:
    assert outcome(judged(recovery(4, restored_digests={})), "restores-what-was-saved") is None


# ---- keeps what was acknowledged -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("at", "restored", "expected"), [(AFTER_FIRST, 4, VALID), (AFTER_FIRST, 0, INVALID), (AFTER_SECOND, 4, INVALID), (AFTER_SECOND, 8, VALID), (BEFORE_ANY, 0, None)]
)  # fmt: skip
def test_it_goes_on_from_the_newest_acknowledged_step(at: int, restored: int, expected: Outcome | None) -> None:
    assert outcome(judged(recovery(restored), at=at), "keeps-what-was-acknowledged") is expected


def test_a_silent_job_that_does_acknowledged_steps_again_has_lost_them() -> None:
    again = recovery(-1, digests={step: {} for step in (2, 3, 4)})
    further_on = recovery(-1, digests={step: {} for step in (6, 8)})

    assert outcome(judged(again), "keeps-what-was-acknowledged") is INVALID
    assert outcome(judged(further_on), "keeps-what-was-acknowledged") is VALID


@pytest.mark.parametrize("said", [4, 8])
def test_steps_that_are_done_again_were_lost_whatever_it_said_to_have_restored(said: int) -> None:
    lying = recovery(said, digests={step: digests(step) for step in range(3, 13)})

    assert outcome(judged(lying), KEEPS) is INVALID
    assert says(judged(lying), KEEPS) == f"step 4 had been acknowledged, and it said that it restored step {said}, and did step 3 again"


def test_a_newer_step_that_it_only_said_to_restore_breaks_no_promise() -> None:
    trying = recovery(8, digests={step: digests(step) for step in range(5, 13)})

    assert outcome(judged(trying, at=IN_SECOND_SAVE), KEEPS) is VALID
    seldom = {"golden": recovery(digests={8: {}, 12: {}})}
    assert outcome(judged(recovery(8, digests={8: {}, 12: {}}), at=IN_SECOND_SAVE, **seldom), KEEPS) is UNKNOWN


def test_steps_that_are_told_seldom_prove_nothing_unless_the_promised_one_is_among_them() -> None:
    told = {"golden": recovery(digests={step: {} for step in (2, 4, 6, 8, 10, 12)})}
    seldom = {"golden": recovery(digests={step: {} for step in (1, 6, 12)})}
    silent = recovery(-1, digests={6: {}, 12: {}}, saves=(SaveSeen(step=8), SaveSeen(step=12)))

    assert outcome(judged(silent, **seldom), KEEPS) is UNKNOWN
    assert "(`resumed`) or each step (`step`)" in says(judged(silent, **seldom), KEEPS)
    assert outcome(judged(msgspec.structs.replace(silent, digests={step: {} for step in (6, 8, 10, 12)}), **told), KEEPS) is VALID


def test_steps_that_the_uninterrupted_run_does_not_tell_are_counted_otherwise_and_prove_nothing() -> None:
    told = {"golden": recovery(digests={step: {} for step in (4, 8, 12)})}

    assert outcome(judged(recovery(-1, digests={7: {}, 11: {}}), **told), KEEPS) is UNKNOWN


def test_a_job_that_tells_each_step_and_had_none_left_to_do_has_kept_them() -> None:
    silent = Recovery(exit_code=0, result=GOLDEN.result, done=True)

    assert outcome(judged(silent), KEEPS) is VALID
    assert outcome(judged(msgspec.structs.replace(silent, unheard="3 lines")), KEEPS) is UNKNOWN


def test_of_a_job_that_counts_from_0_the_step_that_follows_a_checkpoint_has_its_number() -> None:
    golden = recovery(0, digests={step: {} for step in range(12)}, final_step=11, saves=(SaveSeen(step=4), SaveSeen(step=8)))
    goes_on = recovery(4, digests={step: {} for step in range(4, 12)}, final_step=11)

    assert outcome(judged(goes_on, golden=golden), KEEPS) is VALID
    assert outcome(judged(msgspec.structs.replace(goes_on, restored_step=-1), golden=golden), KEEPS) is UNKNOWN
    assert outcome(judged(msgspec.structs.replace(goes_on, digests={3: {}}), golden=golden), KEEPS) is INVALID
    assert outcome(judged(recovery(-1, digests=golden.digests), golden=golden), KEEPS) is INVALID


def test_a_step_that_is_told_after_the_save_of_that_many_may_be_the_one_after_them() -> None:
    golden = recovery(0, digests={step: {} for step in (4, 8)}, final_step=11, saves=(SaveSeen(step=4), SaveSeen(step=8)))
    goes_on = recovery(4, digests={4: {}, 8: {}}, final_step=11)
    saved, step = end(1, 4), said(2, '{"event":"step","step":4}')
    told = {late: expect((saved, step) if late else (step, saved), golden) for late in (True, False)}

    judgements = {late: judge(Tried(state="s", first=goes_on), expected, at=2) for late, expected in told.items()}
    assert {late: outcome(judgement, KEEPS) for late, judgement in judgements.items()} == {True: VALID, False: INVALID}


ONCE = Recovery(exit_code=0, result="r" * 64, saves=(SaveSeen(step=4),))
"""It tells one save and nothing else."""


def test_a_job_that_tells_nothing_but_its_saves_is_unknown_even_where_nothing_was_left_to_do() -> None:
    assert outcome(judged(Recovery(exit_code=0, result=ONCE.result), golden=ONCE), KEEPS) is UNKNOWN


def test_a_save_that_is_acknowledged_again_and_was_not_there_any_more_was_lost() -> None:
    made = {4: frozenset({Piece(path="4", kind="directory")})}
    tried = Tried(state="s", first=ONCE)

    assert outcome(judge(tried, expect(LOG, ONCE, made=made), at=AFTER_FIRST), KEEPS) is INVALID
    assert outcome(judge(tried, expect(LOG, ONCE, made=made), at=AFTER_FIRST, pieces=tuple(made[4])), KEEPS) is UNKNOWN
    assert outcome(judge(tried, expect(LOG, ONCE), at=AFTER_FIRST), KEEPS) is UNKNOWN
    saves_when_complete = expect(LOG, ONCE, made=made, golden_again=ONCE)
    assert outcome(judge(tried, saves_when_complete, at=AFTER_FIRST), KEEPS) is UNKNOWN


def test_a_save_from_before_the_promised_one_that_is_acknowledged_again_shows_the_loss() -> None:
    golden = msgspec.structs.replace(ONCE, saves=(SaveSeen(step=4), SaveSeen(step=8)))

    assert outcome(judged(golden, golden=golden, at=AFTER_SECOND), KEEPS) is INVALID
    assert says(judged(golden, golden=golden, at=AFTER_SECOND), KEEPS).endswith("it saved step 4 again")
    best_last = msgspec.structs.replace(golden, saves=(*golden.saves, SaveSeen(step=4)))
    assert outcome(judged(best_last, golden=best_last, at=AFTER_SECOND), KEEPS) is UNKNOWN


def test_an_inspection_that_finds_less_than_was_promised_shows_the_loss_where_it_counts_as_the_job_does() -> None:
    golden = msgspec.structs.replace(ONCE, inspected_before=0, inspected_after=4)
    found = {step: judged(Recovery(exit_code=0, result=ONCE.result, inspected_before=step), golden=golden) for step in (-1, 0, 4)}

    assert {step: outcome(judgement, KEEPS) for step, judgement in found.items()} == {-1: UNKNOWN, 0: INVALID, 4: VALID}
    assert says(found[0], KEEPS) == "step 4 had been acknowledged, and the inspection found nothing before recovery"
    counts_otherwise = msgspec.structs.replace(golden, inspected_after=1)
    assert outcome(judged(Recovery(exit_code=0, inspected_before=0), golden=counts_otherwise), KEEPS) is UNKNOWN


def test_an_inspection_that_finds_less_than_what_was_said_to_be_restored_leaves_it_open_unless_its_content_is_known() -> None:
    golden = msgspec.structs.replace(GOLDEN, inspected_after=12)

    assert outcome(judged(recovery(4, inspected_before=0, restored_digests={}), golden=golden), KEEPS) is UNKNOWN
    assert outcome(judged(recovery(4, inspected_before=0), golden=golden), KEEPS) is VALID


# ---- completes as uninterrupted --------------------------------------------------------------------------------------


DIFFERENCES = {
    "the result differs": {"result": "x" * 64},
    "there is no result": {"result": ""},
    "it did not say that it was done": {"done": False},
    "a step ends otherwise": {"digests": {step: digests(step, of="a" if step < 9 else "b") for step in range(5, 13)}},
    "a step is skipped": {"digests": {step: digests(step) for step in range(5, 13) if step != 5}},
    "it ends early": {"final_step": 11},
    "a save holds something else": {"saves": (SaveSeen(step=8, digests=digests(8, of="b")), SaveSeen(step=12))},
}


@pytest.mark.parametrize("difference", DIFFERENCES.values(), ids=DIFFERENCES)
def test_any_difference_from_the_uninterrupted_run_is_invalid(difference: dict[str, Any]) -> None:
    assert outcome(judged(recovery(4, **difference)), "completes-as-uninterrupted") is INVALID


def test_the_first_step_that_differs_is_told() -> None:
    assert (
        says(judged(recovery(4, **DIFFERENCES["a step ends otherwise"])), "completes-as-uninterrupted")
        == "params is b9 after step 9, and a9 in the uninterrupted run"
    )


def test_a_job_that_does_not_repeat_itself_is_unknown_and_never_tolerated() -> None:
    judgement = judged(recovery(4, result="x" * 64), golden_differs="the result differs")

    assert outcome(judgement, "completes-as-uninterrupted") is UNKNOWN


def test_where_it_does_not_repeat_itself_that_nothing_could_be_compared_is_not_told_too() -> None:
    silent = Recovery(exit_code=0)
    judgement = judged(silent, golden=silent, at=BEFORE_ANY, golden_differs="the result differs")

    assert [broken.outcome for broken in judgement.broken] == [UNKNOWN]
    assert "the result differs" in judgement.broken[0].says


def test_an_uninterrupted_run_that_failed_proves_nothing() -> None:
    judgement = judged(recovery(4), golden=FAILURES["a hang"])

    assert outcome(judgement, "completes-as-uninterrupted") is UNKNOWN
    assert "did not end" in says(judgement, "completes-as-uninterrupted")


def test_that_it_left_with_0_is_no_proof() -> None:
    silent = Recovery(exit_code=0)
    judgement = judged(silent, golden=silent, at=BEFORE_ANY)

    assert [(broken.outcome, broken.says) for broken in judgement.broken] == [(UNKNOWN, NOTHING_COMPARED)]
    assert judgement.checked == ("recovers",)


def test_a_result_alone_is_enough_to_be_compared() -> None:
    silent = Recovery(exit_code=0, result="r" * 64)

    assert judged(silent, golden=silent, at=BEFORE_ANY).broken == ()


def test_nothing_left_to_do_is_no_difference() -> None:
    assert outcome(judged(recovery(12)), "completes-as-uninterrupted") is VALID


# ---- saves at its cadence --------------------------------------------------------------------------------------------


def test_a_save_that_is_left_out_after_the_restored_step_is_invalid() -> None:
    wrong = judged(recovery(4, saves=(SaveSeen(step=12),)))

    assert outcome(wrong, "saves-at-its-cadence") is INVALID
    assert says(wrong, "saves-at-its-cadence") == "after step 4 it saved steps 12; owed were steps 8, 12"


def test_a_checkpoint_that_stands_need_not_be_saved_again() -> None:
    made = {8: frozenset({Piece(path="8", kind="directory")})}
    tried = Tried(state="s", first=recovery(4, saves=(SaveSeen(step=12),)))
    expected = expect(LOG, GOLDEN, made=made)

    assert outcome(judge(tried, expected, at=AFTER_FIRST, pieces=tuple(made[8])), "saves-at-its-cadence") is VALID
    assert outcome(judge(tried, expected, at=AFTER_FIRST), "saves-at-its-cadence") is INVALID


def test_what_was_not_heard_may_have_been_the_save() -> None:
    assert outcome(judged(recovery(4, saves=(), unheard="3 lines")), "saves-at-its-cadence") is UNKNOWN


def test_nothing_is_owed_where_nothing_was_left_to_save_or_no_step_is_known() -> None:
    assert outcome(judged(recovery(12), at=AFTER_SECOND), "saves-at-its-cadence") is None
    assert outcome(judged(recovery(-1)), "saves-at-its-cadence") is None


# ---- keeps the last good checkpoint ----------------------------------------------------------------------------------


def test_a_recovery_that_deletes_the_good_one_and_keeps_the_torn_one_is_invalid() -> None:
    failed = Recovery(exit_code=1, chosen_step=8)
    lost = judged(failed, recovery(0))

    assert outcome(lost, "keeps-the-last-good-checkpoint") is INVALID
    assert says(lost, "keeps-the-last-good-checkpoint") == "step 4 was good, and after recovery the next one started from scratch"
    assert outcome(judged(failed, recovery(4)), "keeps-the-last-good-checkpoint") is VALID


@pytest.mark.parametrize(("after", "expected"), [(12, VALID), (4, VALID), (0, INVALID), (-1, INVALID)])
def test_what_inspection_found_good_before_is_found_afterwards(after: int, expected: Outcome) -> None:
    assert outcome(judged(recovery(4, inspected_before=4, inspected_after=after)), "keeps-the-last-good-checkpoint") is expected


def test_a_second_recovery_that_does_steps_again_has_not_found_what_it_says() -> None:
    assert outcome(judged(recovery(4), recovery(12, digests={9: {}})), "keeps-the-last-good-checkpoint") is INVALID


def test_a_silent_second_recovery_that_begins_again_has_found_nothing() -> None:
    assert outcome(judged(recovery(4), recovery(-1, digests={1: {}})), "keeps-the-last-good-checkpoint") is INVALID
    assert outcome(judged(recovery(4), recovery(-1, digests={})), "keeps-the-last-good-checkpoint") is None


def test_nobody_owes_a_checkpoint_once_the_job_is_complete_where_it_keeps_none_anyway() -> None:
    assert outcome(judged(recovery(4), recovery(0)), "keeps-the-last-good-checkpoint") is INVALID
    assert outcome(judged(recovery(4), recovery(0), golden_again=recovery(0)), "keeps-the-last-good-checkpoint") is None


def test_without_a_second_recovery_or_an_inspection_nothing_is_said() -> None:
    assert outcome(judged(recovery(4)), "keeps-the-last-good-checkpoint") is None


# ---- recovers twice alike --------------------------------------------------------------------------------------------


TWICE = {
    "it fails": FAILURES["a traceback"],
    "another result": recovery(12, result="x" * 64),
    "another end": recovery(8, last=11),
    "another state": recovery(12, restored_digests=digests(12, of="b")),
}


@pytest.mark.parametrize("second", TWICE.values(), ids=TWICE)
def test_a_second_recovery_that_does_otherwise_is_invalid(second: Recovery) -> None:
    assert outcome(judged(recovery(4), second), "recovers-twice-alike") is INVALID


def test_a_second_recovery_is_not_judged_after_a_failed_one_or_where_there_is_none() -> None:
    assert outcome(judged(FAILURES["a signal"], recovery(4)), "recovers-twice-alike") is None
    assert outcome(judged(recovery(4)), "recovers-twice-alike") is None


def test_a_second_recovery_that_says_nothing_is_no_proof() -> None:
    silent = Recovery(exit_code=0)

    assert outcome(judged(silent, silent, golden=silent), "recovers-twice-alike") is None


# ---- survives a crash in recovery ------------------------------------------------------------------------------------


def of_recovery(first: Recovery) -> Judgement:
    return judged(first, at=BEFORE_ANY, is_of_recovery=True, kept_before=4)


def test_a_crash_in_recovery_must_lose_nothing_that_was_acknowledged_before() -> None:
    assert outcome(of_recovery(recovery(4)), "survives-a-crash-in-recovery") is VALID
    assert outcome(of_recovery(recovery(0)), "survives-a-crash-in-recovery") is INVALID
    assert outcome(of_recovery(FAILURES["a traceback"]), "survives-a-crash-in-recovery") is INVALID
    assert outcome(of_recovery(recovery(0)), "keeps-what-was-acknowledged") is None


def test_a_crash_in_a_first_run_says_nothing_of_crashes_in_recovery() -> None:
    assert outcome(judged(recovery(4)), "survives-a-crash-in-recovery") is None
