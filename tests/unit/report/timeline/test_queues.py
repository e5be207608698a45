"""Where queues, pods and pools lie in the picture."""

from itertools import pairwise

from harness.history import PoolScaled
from harness.report.timeline import timeline_of
from harness.report.timeline.picture import Picture
from harness.report.timeline.queues import NODE_ROWS_MAX, POD_ROWS_MAX, QUEUES_MAX
from harness.report.timeline.shapes import LEFT_PX, RIGHT_PX, WIDTH_PX, Bar, Label, text_width
from harness.scenario import Platform
from tests.unit.checkers.builders import resumed
from tests.unit.checkers.cluster_builders import NO_QUOTA, STOCKOUT, ClusterRun, fallen_back
from tests.unit.report.records import record_of

RIGHT = WIDTH_PX - RIGHT_PX


def picture(run: ClusterRun) -> Picture:
    whole = timeline_of(record_of(run)).whole
    assert whole is not None
    return whole


def bars(of: Picture, kind: str) -> list[Bar]:
    return [shape for shape in of.shapes if isinstance(shape, Bar) and shape.kind == kind]


def labels(of: Picture) -> list[Label]:
    return [shape for shape in of.shapes if isinstance(shape, Label)]


def test_stays_follow_one_another_in_one_row_above_the_lanes():
    found = picture(fallen_back())
    stays = [shape for shape in found.shapes if isinstance(shape, Bar) and shape.kind.startswith("stay ")]
    assert [stay.kind.removeprefix("stay ") for stay in stays] == ["queued", "admitted", "evicting", "queued", "checking", "provisioned"]
    assert len({stay.y for stay in stays}) == 1
    assert all(before.x + before.width <= after.x + 2 for before, after in pairwise(stays))
    assert stays[0].y < bars(found, "life")[0].y
    assert STOCKOUT in stays[4].title


def test_what_holds_a_task_up_is_written_below_it():
    run = fallen_back()
    notes = [label for label in labels(picture(run)) if STOCKOUT[:30] in label.text]
    assert len(notes) == 1
    assert notes[0].x >= LEFT_PX
    assert notes[0].x + text_width(notes[0].text) <= WIDTH_PX


def test_what_is_said_at_each_of_several_evictions_is_written_once_and_above_the_pods():
    run = ClusterRun().submit()
    for number in range(3):
        run.admit().pod(f"pod-{number}")
        run.t_s += 5
        run.deactivate("Deactivated", "The workload is deactivated").pod(f"pod-{number}", phase="Deleted").reactivate()
    found = picture(run.admit().close())
    (note,) = [label for label in labels(found) if "The workload is deactivated" in label.text]
    assert note.y + 3 <= min(pod.y for pod in bars(found, "pod running"))


def test_a_legend_explains_only_what_can_be_seen():
    run = ClusterRun().submit().queued().admit()
    run.t_s += 600
    kinds = picture(run.close()).kinds
    assert "stay admitted" in kinds
    assert "stay queued" not in kinds


def test_a_pod_whose_node_is_gone_is_not_drawn_as_one_that_runs():
    run = ClusterRun().node().node("node-2").pod().pod("pod-1", rank=1, node="node-2")
    run.t_s += 5
    run.node(state="Deleted").node("node-2", state="Unknown").node()
    run.t_s += 5
    run.node("node-2")
    run.t_s += 5
    found = picture(run.pod(phase="Deleted").close())
    gone, silent = bars(found, "pod orphaned")
    assert "running by the API, its node gone or not ready" in gone.title
    assert len(bars(found, "pod running")) == 3  # the second pod is back with its node
    assert gone.width > silent.width


def test_notes_do_not_touch_and_the_check_comes_before_the_quota():
    run = ClusterRun().submit()
    for _ in range(6):
        run.queued(NO_QUOTA).reserve(said=STOCKOUT).admit("dws").evict()
    found = [
        label
        for label in labels(picture(run.close()))
        if label.kind == "quiet" and (STOCKOUT[:20] in label.text or NO_QUOTA[:20] in label.text)
    ]
    for one in found:
        for other in found:
            if one is not other and one.y == other.y:
                assert one.x + text_width(one.text) <= other.x or other.x + text_width(other.text) <= one.x
    assert any(STOCKOUT[:20] in label.text for label in found)


def test_every_pod_lies_in_the_row_of_its_rank():
    run = ClusterRun()
    run.pod().pod("pod-1", rank=1).pod(phase="Failed").pod("pod-0b").pod("pod-1", rank=1, phase="Failed").close()
    first, second, third = sorted(bars(picture(run), "pod running"), key=lambda bar: bar.title.split(":")[0])
    assert {first.y, second.y, third.y} == {first.y, third.y}
    assert "host 0" in first.title


def test_a_node_that_is_not_ready_and_one_that_is_gone_are_to_be_seen():
    run = ClusterRun().node().node(state="Unknown").node(state="Deleted")
    run.t_s += 10
    found = picture(run.node().add(PoolScaled, pool="on-demand-pool", nodes=1, why="a pod asked for it").close())
    assert len(bars(found, "node ready")) == 2
    (unready,) = bars(found, "node unready")
    assert unready.x + unready.width < RIGHT
    assert "1 node" in [label.text for label in labels(found)]


def test_more_than_a_screen_holds_is_counted_and_not_drawn():
    run = ClusterRun(platform=Platform(tasks=QUEUES_MAX + 2))
    for task in range(QUEUES_MAX + 2):
        run.submit(task=task).queued()
    run.task = 0
    for number in range(POD_ROWS_MAX + 3):
        run.pod(f"pod-{number}", rank=number)
    for number in range(NODE_ROWS_MAX + 2):
        run.node(f"node-{number}")
    record = record_of(run.close())
    texts = [label.text for label in labels(picture(run))]
    assert f"{POD_ROWS_MAX + 3} pods (+3)" in texts
    assert "on-demand-pool (+2)" in texts
    assert any("queues of 2 tasks more" in note for note in timeline_of(record).notes)


def test_a_run_that_never_got_beyond_the_queue_is_drawn():
    run = ClusterRun().submit().queued()
    run.t_s += 20
    found = picture(run.close("deadline"))
    (stay,) = bars(found, "stay queued")
    assert stay.x + stay.width > RIGHT - 10


def test_a_picture_without_a_cluster_has_none_of_it():
    whole = timeline_of(record_of(resumed())).whole
    assert whole is not None
    assert not [kind for kind in whole.kinds if kind.split()[0] in ("stay", "pod", "node")]
