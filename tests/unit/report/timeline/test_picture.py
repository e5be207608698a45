"""Where things lie in the picture."""

import re

import pytest

from harness.history import CheckpointsSeen, HangCalled, SaveBegun
from harness.report.timeline import timeline_of
from harness.report.timeline.picture import Picture
from harness.report.timeline.progress import progress_of
from harness.report.timeline.shapes import LEFT_PX, RIGHT_PX, WIDTH_PX, Bar, Label, Mark, Path
from tests.unit.checkers.builders import SILENT, Run, resumed, uninterrupted
from tests.unit.checkers.cluster_builders import ClusterRun
from tests.unit.report.records import KILL, record_of

RIGHT = WIDTH_PX - RIGHT_PX


def picture(run: Run) -> Picture:
    whole = timeline_of(record_of(run, injections=(KILL,))).whole
    assert whole is not None
    return whole


def bars(of: Picture, kind: str) -> list[Bar]:
    return [shape for shape in of.shapes if isinstance(shape, Bar) and shape.kind == kind]


def marks(of: Picture, kind: str) -> list[Mark]:
    return [shape for shape in of.shapes if isinstance(shape, Mark) and shape.kind == kind]


def paths(of: Picture, kind: str) -> list[Path]:
    return [shape for shape in of.shapes if isinstance(shape, Path) and shape.kind == kind]


def texts(of: Picture) -> list[str]:
    return [shape.text for shape in of.shapes if isinstance(shape, Label)]


def ticks(path: Path) -> int:
    return path.d.count("M")


def numbers(d: str) -> list[float]:
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", d)]


def test_each_attempt_is_a_lane_and_later_ones_lie_below():
    first, second = bars(picture(resumed()), "life")

    assert first.y < second.y
    assert first.x + first.width <= second.x
    assert all(bar.x >= LEFT_PX and bar.x + bar.width <= RIGHT for bar in (first, second))


def test_every_step_has_a_tick_and_lost_ones_are_told_apart():
    found = picture(resumed())

    assert sum(map(ticks, paths(found, "step"))) == 5 + 15
    assert [ticks(path) for path in paths(found, "step lost")] == [2]
    (lost,) = bars(found, "lost")
    (loss,) = paths(found, "loss")
    assert "2 steps lost" in lost.title
    assert "2 steps lost" in loss.title


def test_only_work_is_lost_and_not_the_time_in_which_nobody_noticed_the_death():
    run = ClusterRun().submit().admit().node().pod()
    run.attempt(0).begin().steps(1, 7).request("1-lose-node", "lose-node").observe("1-lose-node").node(state="Deleted")
    run.t_s += 60
    run.pod(phase="Deleted").exit(signal=9, cause="fault").attempt(1).pod("pod-1").begin(5).steps(6, 20).complete()
    whole = timeline_of(record_of(run)).whole
    assert whole is not None
    (lost,) = bars(whole, "lost")
    (life, _) = bars(whole, "life")
    assert lost.width < 0.1 * life.width
    (loss,) = progress_of(run.evidence().lineage, 0, steps=20).losses
    assert loss.points[-1][0] < run.t_s - 60


def test_a_job_of_several_hosts_says_once_that_it_is_done():
    run = Run(SILENT).attempt(0).step(30).done(30).step(40).done(40).exit(0).finish()
    whole = timeline_of(record_of(run)).whole
    assert whole is not None
    (done,) = marks(whole, "done")
    assert "step 40" in done.title


def test_a_fault_is_requested_observed_and_its_moment_is_drawn_through():
    found = picture(resumed())
    (requested,), (observed,) = marks(found, "requested"), marks(found, "observed")

    assert requested.x < observed.x
    (guide,) = paths(found, "guide")
    assert guide.d.startswith(f"M{requested.x:.1f}".removesuffix(".0"))
    assert "1-kill" in texts(found)
    assert len(marks(found, "kill")) == 1


def test_a_fault_that_was_not_observed_says_so():
    run = uninterrupted()
    run.events = [event for event in resumed().events if type(event).__name__ not in ("FaultObserved", "FaultHealed")]

    found = picture(run)

    assert "1-kill: not observed" in texts(found)
    assert marks(found, "observed") == []


def test_saves_are_bars_and_one_that_was_cut_is_open():
    run = Run().attempt(0).begin().steps(1, 7).begin_save(7).killed()
    found = picture(run)

    assert [bar.title for bar in bars(found, "save open")] == [f"save of step 7 begun at {save_moment(run)} s and never acknowledged"]
    (save,) = bars(found, "save")
    assert save.title.startswith("save of step 5")


def save_moment(run: Run) -> str:
    return f"{[event.t_s for event in run.events if isinstance(event, SaveBegun)][-1]:.3f}"


def test_a_failed_save_is_over_when_the_next_one_begins():
    found = picture(Run().attempt(0).begin().begin_save(3).steps(4, 20).exit(0))

    (failed,) = bars(found, "save open")
    saves = bars(found, "save")
    assert failed.x + failed.width <= min(save.x for save in saves) + 0.1


def test_the_grace_period_reaches_to_its_end_where_that_is_inside():
    run = Run()
    run.attempt(0).begin().steps(1, 3).signal("SIGTERM").steps(4, 100).exit(signal=9, cause="grace")
    found = picture(run)

    (grace,) = bars(found, "grace")
    (end,) = paths(found, "grace-end")
    sent = next(event.t_s for event in run.events if type(event).__name__ == "SignalSent")
    scale = (RIGHT - LEFT_PX) / run.t_s
    assert grace.x == pytest.approx(LEFT_PX + sent * scale)
    assert grace.width == pytest.approx(10.0 * scale)
    assert numbers(end.d)[0] == pytest.approx(grace.x + grace.width, abs=0.1)
    assert "grace ends" in texts(found)


def test_a_grace_period_that_outlasts_the_run_ends_at_the_border_and_the_margin_is_said():
    found = picture(Run().attempt(0).begin().steps(1, 3).terminated(143, saves=3).attempt(1).begin(3).steps(4, 20).complete())

    (grace,) = bars(found, "grace")
    assert grace.x + grace.width == pytest.approx(RIGHT)
    assert paths(found, "grace-end") == []
    assert "exit 143, 9.40 s of 10 s grace left" in texts(found)


def test_a_gap_between_attempts_is_named():
    run = Run().attempt(0).begin().steps(1, 3).exit(1)
    run.t_s += 5
    found = picture(run.attempt(1).begin().steps(1, 3).exit(0))

    (gap,) = paths(found, "requeue")
    assert gap.title in texts(found)
    assert gap.title.startswith("between attempts 5.")


def test_an_attempt_held_for_dead_is_seen_to_run_on():
    run = Run().attempt(0).begin().steps(1, 3).abandon().attempt(1).begin().on(0).steps(4, 6).exit(1)

    (zombie,) = bars(picture(run), "zombie")
    assert "still running" in zombie.title


def test_a_process_that_stands_still_is_seen_to():
    run = Run().attempt(0).begin().signal("SIGSTOP").steps(1, 3).signal("SIGCONT").exit(0)

    (paused,) = bars(picture(run), "paused")
    assert paused.title == "stood still for 0.40 s"


def test_a_hang_is_drawn_on_the_rank_that_hung():
    run = Run().attempt(0).boot(0).boot(1).start(0).start(0, rank=1)
    run.t_s += 8
    run.here(HangCalled, ranks=(1,), quiet_s=7.0)
    found = picture(run)

    (hang,) = bars(found, "hang")
    assert hang.y == bars(found, "life")[1].y
    assert "no progress for 7.00 s" in texts(found)


def test_the_last_of_each_line_is_written_and_never_over_another():
    found = picture(Run().attempt(0).begin().steps(1, 16).exit(1))

    ends = [shape for shape in found.shapes if isinstance(shape, Label) and shape.text.endswith(("executed", "durable"))]
    assert sorted(label.text for label in ends) == ["15 durable", "16 executed"]
    assert abs(ends[0].y - ends[1].y) >= 12


def test_the_durable_line_is_a_stair():
    (durable,) = paths(picture(uninterrupted()), "durable")

    assert durable.d.count("V") == 4
    assert "L" not in durable.d


def test_a_strip_says_what_the_time_was():
    kinds = picture(resumed()).kinds

    assert {"time productive", "time lost", "time restore", "time provision"} <= kinds


@pytest.mark.parametrize("steps", [1, 40, 5_000])
def test_a_lane_of_many_steps_has_no_more_shapes_than_one_of_few(steps):
    run = Run(is_surveyed=False).attempt(0).begin()
    for step in range(1, steps + 1):
        run.step(step, digests={}, batch_ids=())
    found = picture(run.exit(0))

    assert len(found.shapes) < 40
    assert sum(len(shape.d) for shape in found.shapes if isinstance(shape, Path)) < 30_000


def test_steps_too_close_for_ticks_are_an_area():
    run = Run(is_surveyed=False).attempt(0).begin()
    for step in range(1, 2_000):
        run.step(step, digests={}, batch_ids=())
    found = picture(run.exit(0))

    assert len(paths(found, "many step")) == 1
    assert paths(found, "step") == []


def test_a_run_in_which_nothing_started_has_no_picture():
    assert timeline_of(record_of(Run())).whole is None


def test_storage_alone_makes_no_lane():
    run = Run()
    run.add(CheckpointsSeen, occasion="end", checkpoints=())

    assert timeline_of(record_of(run)).whole is None
