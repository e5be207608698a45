"""Every second of a task's wall time is in exactly one span, and what each was follows from what the job said."""

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.history import (
    AttemptAbandoned,
    AttemptExited,
    AttemptStarted,
    Booted,
    Done,
    Event,
    FaultHealed,
    FaultRequested,
    JobEvent,
    Marked,
    RestoreBegun,
    Restored,
    SaveBegun,
    SaveEnded,
    SigtermSeen,
    Started,
    StepDone,
)
from harness.ledger import CATEGORIES, Ledger, keep
from harness.lineage import trace
from tests.unit.checkers.builders import JOB, SILENT, Run, resumed, uninterrupted


def kept(run: Run, task: int = 0) -> Ledger:
    ledger = keep(run.evidence().lineage, task)
    assert ledger is not None
    return ledger


def told(ledger: Ledger) -> list[tuple[str, float]]:
    """Spans as category and length, neighbours of one category together."""
    rows: list[tuple[str, float]] = []
    for span in ledger.spans:
        if rows and rows[-1][0] == span.category:
            rows[-1] = (span.category, round(rows[-1][1] + span.seconds, 6))
        elif span.seconds > 0:
            rows.append((span.category, round(span.seconds, 6)))
    return rows


def unsurveyed() -> Run:
    """A builder whose time passes with words only."""
    return Run(is_surveyed=False)


def test_an_uninterrupted_run_is_told_span_by_span():
    run = unsurveyed().attempt(0).boot().start(0).step(1).step(2).begin_save(2).here(SaveEnded, step=2).step(3).done().exit(0)
    assert told(kept(run)) == [
        ("provision", 0.1),
        ("start", 0.1),
        ("productive", 0.3),
        ("save", 0.1),
        ("productive", 0.1),
        ("wind-down", 0.2),
    ]
    assert kept(run).goodput == pytest.approx(4 / 9)


def test_a_kill_costs_what_was_not_retained_and_the_way_back():
    run = unsurveyed().attempt(0).boot().start(0).step(1).save(1).step(2).exit(signal=9)
    run.attempt(1).boot().restore(1).start(1).step(2).step(3).done().exit(0)
    ledger = kept(run)
    assert told(ledger) == [
        ("provision", 0.1),
        ("start", 0.1),
        ("productive", 0.2),
        ("save", 0.1),
        ("lost", 0.2),
        ("requeue", 0.1),
        ("provision", 0.1),
        ("start", 0.1),
        ("restore", 0.1),
        ("start", 0.1),
        ("productive", 0.2),
        ("wind-down", 0.2),
    ]


def test_a_second_try_to_restore_is_still_restoring():
    run = unsurveyed().attempt(0).boot().here(RestoreBegun, step=10).here(RestoreBegun, step=5).here(Restored, step=5).start(5).exit(0)
    assert told(kept(run)) == [("provision", 0.1), ("start", 0.1), ("restore", 0.2), ("start", 0.1), ("wind-down", 0.1)]


@pytest.mark.parametrize(
    ("last", "category"),
    [("attempt", "provision"), ("boot", "start"), ("restore.begin", "restore"), ("restore", "start"), ("start", "lost"), ("step", "lost")],
)
def test_a_death_loses_what_it_interrupts(last: str, category: str):
    run = unsurveyed().attempt(0)
    acts = {
        "boot": run.boot,
        "restore.begin": lambda: run.here(RestoreBegun, step=5),
        "restore": lambda: run.here(Restored, step=5),
        "start": lambda: run.start(5),
        "step": lambda: run.step(6),
    }
    for name, act in acts.items():
        if last == "attempt":
            break
        act()
        if name == last:
            break
    assert told(kept(run.exit(signal=9)))[-1] == (category, 0.1)


def test_a_step_that_a_notice_interrupts_and_that_is_finished_is_no_loss():
    run = unsurveyed().attempt(0).boot().start(0).step(1).here(SigtermSeen).step(2).save(2).exit(143, cause="fault").attempt(1)
    run.begin(2).step(3).done().exit(0)
    assert told(kept(run))[2:5] == [("productive", 0.3), ("wind-down", 0.1), ("save", 0.1)]


def test_a_step_that_is_given_up_for_a_notice_is_lost():
    run = unsurveyed().attempt(0).boot().start(0).step(1).here(SigtermSeen).save(1).exit(143, cause="fault")
    assert told(kept(run))[2:] == [("productive", 0.1), ("lost", 0.1), ("wind-down", 0.1), ("save", 0.1), ("wind-down", 0.1)]


def test_a_notice_in_a_save_or_in_a_restore_is_part_of_it():
    save = unsurveyed().attempt(0).boot().start(0).step(1).begin_save(1).here(SigtermSeen).here(SaveEnded, step=1).exit(143)
    assert told(kept(save))[3:] == [("save", 0.2), ("wind-down", 0.1)]
    restore = unsurveyed().attempt(0).boot().here(RestoreBegun, step=1).here(SigtermSeen).here(Restored, step=1).exit(143)
    assert told(kept(restore))[2:] == [("restore", 0.2), ("wind-down", 0.1)]


def test_an_asynchronous_save_is_no_standstill_where_training_goes_on():
    run = unsurveyed().attempt(0).boot().start(0).step(1).begin_save(1).step(2).here(SaveEnded, step=1).step(3).done().exit(0)
    ledger = kept(run)
    assert ledger.total("save") == 0.0
    assert ledger.total("productive") == pytest.approx(0.5)
    assert ledger.save_s == pytest.approx((0.0,))


def test_a_save_that_waits_for_an_earlier_one_is_its_own():
    run = unsurveyed().attempt(0).boot().start(0).step(1).begin_save(1).step(2).begin_save(2)
    run.here(SaveEnded, step=1).here(SaveEnded, step=2).step(3).done().exit(0)
    assert kept(run).total("save") == pytest.approx(0.2)


def test_each_save_is_measured_once_however_often_its_step_is_saved():
    run = (
        unsurveyed()
        .attempt(0)
        .boot()
        .start(0)
        .step(1)
        .save(1)
        .here(SigtermSeen)
        .begin_save(1)
        .mark("slow")
        .here(SaveEnded, step=1)
        .exit(143)
    )
    assert kept(run).save_s == pytest.approx((0.1, 0.2))


def test_what_an_asynchronous_save_costs_is_what_the_next_step_takes_longer():
    run = unsurveyed().attempt(0).boot().start(0)
    for step in range(1, 6):
        run.step(step)
    run.begin_save(5).mark("copying").mark("copying").step(6).here(SaveEnded, step=5).step(7).step(8).done().exit(0)
    assert kept(run).save_s == pytest.approx((0.2,))


def test_the_first_step_of_a_life_gives_what_it_takes_longer_to_compiling():
    run = unsurveyed().attempt(0).boot().start(0).mark("compile").mark("compile").step(1).step(2).step(3).done().exit(0)
    ledger = kept(run)
    assert ledger.total("compile") == pytest.approx(0.2)
    assert ledger.total("productive") == pytest.approx(0.3)
    assert [span.step for span in ledger.spans if span.step > 0] == [1, 2, 3]
    short = unsurveyed().attempt(0).boot().start(0).mark("compile").step(1).step(2).done().exit(0)
    assert kept(short).total("compile") == 0.0


def test_time_between_two_lives_of_one_attempt_is_neither_s():
    run = unsurveyed().attempt(0).boot().start(0).step(1).save(1).step(2)
    run.request("1-kill", "kill-ray-process").mark("nobody", 0)
    run.events.pop()  # time passes, nobody speaks
    run.begin(1).step(2).step(3).done().exit(0)
    assert told(kept(run))[4:7] == [("lost", 0.2), ("requeue", 0.2), ("start", 0.1)]
    silent = unsurveyed().attempt(0).boot().start(0).step(1).step(2).begin(0).step(1).done().exit(0)
    assert ("requeue", 0.1) in told(kept(silent))


def test_a_zombie_s_time_beside_its_successor_counts_once():
    run = unsurveyed().attempt(0).boot().start(0).step(1).save(1).here(AttemptAbandoned).attempt(1).boot()
    run.on(0).step(2).step(3).on(1).restore(1).start(1).on(0).exit(75).on(1).step(2).done().exit(0)
    ledger = kept(run)
    assert ledger.unaccounted_s == pytest.approx(0.0)
    assert ledger.wall_s == pytest.approx(run.events[-1].t_s - 0.3)
    assert sum(span.step == 2 for span in ledger.spans) == 1


def test_only_rank_0_is_followed_and_a_rank_that_boots_late_changes_nothing():
    pair = msgspec.structs.replace(JOB, ranks=2)
    run = Run(pair, is_surveyed=False).attempt(0).boot().start(0).step(1).boot(1).start(0, rank=1).step(1, rank=1).step(2).done().exit(0)
    assert told(kept(run)) == [("provision", 0.1), ("start", 0.1), ("productive", 0.5), ("wind-down", 0.2)]


def test_a_silent_job_s_time_is_told_from_its_steps():
    run = Run(SILENT, is_surveyed=False).attempt(0).step(1).step(2).step(3).exit(signal=9).attempt(1)
    run.restore(1).start(1).step(2).step(3).step(4).exit(0)
    ledger = kept(run)
    assert ledger.total("lost") == pytest.approx(0.3)
    assert ledger.spans[-1].category == "wind-down"


def test_what_comes_before_the_first_step_of_a_silent_job_is_its_start_and_no_training():
    run = Run(SILENT, is_surveyed=False).attempt(0)
    run.t_s += 80
    for step in (1, 1, 30, 30, 40, 40):  # each of two hosts prints it, and Ray hands the lines on together
        run.here(StepDone, step=step)
        run.t_s += 3 if step == 30 else 0
    ledger = kept(run.exit(0))
    assert told(ledger)[0][0] == "start"
    assert (ledger.total("start"), ledger.total("productive")) == (pytest.approx(80), pytest.approx(6.6))
    every = Run(SILENT, is_surveyed=False).attempt(0)
    every.t_s += 80
    ledger = kept(every.step(1).step(2).step(3).step(4).exit(0))
    assert told(ledger)[0][0] == "start"
    assert (ledger.total("start"), ledger.total("productive"), ledger.total("compile")) == (pytest.approx(80), pytest.approx(0.4), 0)


def test_that_one_host_is_done_does_not_end_the_training_of_the_others():
    run = Run(SILENT, is_surveyed=False).attempt(0).step(1).step(2).step(3).here(Done, step=2)
    run.t_s += 5
    ledger = kept(run.step(4).here(Done, step=4).exit(0))
    assert (ledger.total("productive"), ledger.total("wind-down")) == (pytest.approx(5.5), pytest.approx(0.2))


def test_a_silent_job_of_one_step_has_no_time_that_could_be_told_from_its_start():
    run = Run(SILENT, is_surveyed=False).attempt(0)
    run.t_s += 10
    assert kept(run.step(1).exit(0)).total("productive") == 0


def test_what_was_never_retained_is_lost_though_nobody_went_back_behind_it():
    failed = Run().attempt(0).begin().steps(1, 7).exit(1, retried=False).finish(succeeded=False)
    assert [span.step for span in kept(failed).spans if span.category == "lost"] == [6, 7, -1]
    blind = unsurveyed().attempt(0).begin().steps(1, 7).exit(1)
    assert [span.step for span in kept(blind).spans if span.category == "lost"] == [-1]


def test_a_step_that_is_retained_is_productive_once():
    steps = [span.step for span in kept(resumed()).spans if span.category == "productive" and span.step > 0]
    assert steps == list(range(1, 21))


def test_tasks_have_ledgers_of_their_own():
    run = uninterrupted()
    run.attempt(0, task=3).boot().exit(1)
    assert kept(run, 3).total("start") > 0
    assert keep(run.evidence().lineage, 1) is None


def test_a_history_that_ends_early_is_accounted_for_to_its_last_word():
    run = unsurveyed().attempt(0).boot().start(0).step(1)
    assert kept(run).end_s == run.events[-1].t_s
    assert kept(unsurveyed().attempt(0)).wall_s == 0.0
    assert kept(unsurveyed().attempt(0)).goodput == 0.0


WORDS: dict[type[JobEvent], dict[str, object]] = {
    Booted: {},
    RestoreBegun: {"step": 1},
    Restored: {"step": 1},
    Started: {"restored_step": 1},
    StepDone: {"step": 2},
    SaveBegun: {"step": 2},
    SaveEnded: {"step": 2},
    SigtermSeen: {},
    Done: {"step": 2},
    Marked: {"name": "x"},
}


@st.composite
def histories(draw: st.DrawFn) -> list[Event]:
    """Words of one task in any order: attempts that overlap, lives that nobody began, exits that never came, clocks that jitter."""
    events: list[Event] = []
    for attempt in range(draw(st.integers(1, 3))):
        begin_s = draw(st.floats(0, 50))
        events.append(AttemptStarted(t_s=begin_s, attempt=attempt, pid=1))
        for kind in draw(st.lists(st.sampled_from(list(WORDS)), max_size=12)):
            t_s = begin_s + draw(st.floats(-0.5, 30))
            events.append(kind(t_s=t_s, attempt=attempt, rank=draw(st.integers(0, 1)), **WORDS[kind]))
        if draw(st.booleans()):
            events.append(FaultRequested(t_s=begin_s + draw(st.floats(0, 30)), attempt=attempt, injection="x", fault="kill"))
        if draw(st.booleans()):
            events.append(FaultHealed(t_s=begin_s + draw(st.floats(0, 30)), attempt=attempt, injection="x", evidence=""))
        if draw(st.booleans()):
            code = draw(st.sampled_from([0, 1, 143]))
            events.append(AttemptExited(t_s=begin_s + draw(st.floats(0, 40)), attempt=attempt, exit_code=code))
    return events


@given(histories())
def test_spans_cover_the_wall_time_exactly_and_never_overlap(events: list[Event]):
    ledger = keep(trace(events), 0)
    assert ledger is not None
    if not ledger.spans:
        assert ledger.wall_s == 0
        return
    assert ledger.spans[0].begin_s == ledger.begin_s
    assert ledger.spans[-1].end_s == ledger.end_s
    assert all(before.end_s == after.begin_s for before, after in pairwise(ledger.spans))
    assert all(span.begin_s <= span.end_s for span in ledger.spans)
    assert sum(ledger.total(category) for category in CATEGORIES) == pytest.approx(ledger.wall_s)
    assert ledger.unaccounted_s == pytest.approx(0.0, abs=1e-9)
    assert 0.0 <= ledger.goodput <= 1.0 + 1e-9


@given(kills=st.lists(st.integers(1, 9), max_size=4))
def test_each_step_of_a_right_job_is_productive_once_whatever_kills_it(kills: list[int]):
    run, durable = Run(JOB), 0
    for number, steps in enumerate(kills):
        run.attempt(number).begin(durable).steps(durable + 1, min(durable + steps, 19)).killed(f"{number}-kill")
        durable = min(durable + steps, 19) // 5 * 5
    run.attempt(len(kills)).begin(durable).steps(durable + 1, 20).complete()
    ledger = kept(run)
    assert [span.step for span in ledger.spans if span.category == "productive" and span.step > 0] == list(range(1, 21))
    assert ledger.interruptions == len(kills)
    assert not ledger.unrecovered_s
