"""Each state once, with every moment that leads to it; the most telling first; nothing made that nobody asked for."""

from collections.abc import Iterator

import pytest
from hypothesis import given

from harness.explore.enumeration import ORDERS_MAX, Enumeration, Found, rests_on, same_as
from harness.explore.models import MODELS, Candidate
from harness.explore.result import Moment
from harness.explore.states import KillPoint
from tests.unit.explore.jobs import ACTIONS, orbax_like, perform
from tests.unit.explore.recordings import ROOT, Recording


@pytest.fixture
def recording(tmp_path) -> Recording:
    return Recording(tmp_path / "log")


def test_a_tree_that_comes_again_is_one_state_with_all_its_moments(recording) -> None:
    recording.save_file("a", b"1")
    recording.sync(".")
    recording.unlink("a")

    enumeration, found = recording.enumerate("posix", "process")

    at = [sorted(moment.at for moment in each.moments) for each in found]
    assert sorted(at) == [[0, 5], [1], [2, 3, 4]]
    assert enumeration.coverage.kill_points == 6
    assert enumeration.coverage.candidates == 6
    assert enumeration.coverage.states == 3
    assert enumeration.coverage.is_complete


def test_the_same_bytes_written_in_other_pieces_are_the_same_state(recording) -> None:
    recording.there("b", b"12")
    recording.create("a")
    recording.write("a", b"12")
    recording.unlink("a")
    recording.create("a")
    recording.write("a", b"1")
    recording.write("a", b"2", 1)

    _, found = recording.enumerate("posix", "process")

    twice = next(each for each in found if recording.shown(each.crash.tree).get("a") == b"12")
    assert sorted(moment.at for moment in twice.moments) == [2, 6]


def test_an_acknowledgement_makes_another_state_of_the_same_tree(recording) -> None:
    recording.save_file("a", b"1")
    recording.say("step", step=1)
    recording.say("save.end", step=1, digests={"params": "ab"})

    _, found = recording.enumerate("posix", "process")

    last = [each for each in found if recording.shown(each.crash.tree) == {"a": b"1"}]
    assert [[save.step for save in each.saves] for each in last] == [[], [1]]
    assert last[1].saves[0].digests == {"params": "ab"}
    with recording.open_data() as data:
        assert len({each.task(data, root=ROOT).state for each in last}) == 1
    assert last[1].crash.point == KillPoint(marker="save.end", marker_nth=1, operation="", path_class="", nth=0)


def states_of(recording: Recording, found: list[Found]) -> dict[str, list[str]]:
    """By state, its paths in the order of their times."""
    with recording.open_data() as data:
        tasks = [each.task(data, root=ROOT) for each in found]
    return {task.state: [task.pieces[index].path for index in task.changed] for task in tasks}


def test_the_same_files_in_another_order_of_times_are_another_state(recording) -> None:
    for name in ("a", "b", "a", "a"):
        recording.save_file("tmp", b"done")
        recording.rename("tmp", name)

    _, found = recording.enumerate("posix", "process")

    same = [each for each in found if recording.shown(each.crash.tree) == {"a": b"done", "b": b"done"}]
    assert list(states_of(recording, same).values()) == [["a", "b"], ["b", "a"]]
    assert [len(each.moments) for each in same] == [1, 2]


def test_of_many_orders_of_times_some_are_looked_at(recording) -> None:
    names = [*"abcdefg"]
    for name in names:
        recording.save_file(name, b"x")
    for name in names * 3:
        recording.open(name, truncates=True)
        recording.write(name, b"x")
        recording.close(name)

    _, found = recording.enumerate("posix", "process")
    same = [
        each
        for each in found
        if all(content == b"x" for content in recording.shown(each.crash.tree).values()) and len(each.crash.tree) == 7
    ]

    assert len(same) == len(states_of(recording, same)) == ORDERS_MAX - 1


def test_a_kill_point_is_counted_from_the_last_word_of_the_job(recording) -> None:
    for step in (1, 2):
        recording.say("save.begin", step=step)
        recording.mkdir(f"step_{step}")
        recording.save_file(f"step_{step}/a0", b"1")
        recording.save_file(f"step_{step}/a1", b"2")

    _, found = recording.enumerate("posix", "process")
    by_index = {moment.at: moment.point for each in found for moment in each.moments}

    assert by_index[0] == KillPoint(marker="start", marker_nth=0, operation="", path_class="", nth=0)
    assert by_index[7] == KillPoint(marker="save.begin", marker_nth=1, operation="write", path_class="step_*/a*", nth=2)
    assert by_index[15] == KillPoint(marker="save.begin", marker_nth=2, operation="write", path_class="step_*/a*", nth=2)


def test_a_state_that_a_mere_prefix_leaves_is_told_as_that(recording) -> None:
    recording.create("a")
    recording.create("b")

    _, found = recording.enumerate("posix-weak", "node")

    assert {each.crash.cause.kind for each in found if recording.shown(each.crash.tree).keys() <= {"a"}} == {"prefix"}
    assert [each.crash.cause.operation for each in found if recording.shown(each.crash.tree) == {"b": b""}] == [1]


def test_a_state_that_is_found_before_the_prefix_that_leaves_it_is_told_as_the_prefix(recording) -> None:
    recording.create("p0")
    recording.sync(".")
    recording.unlink("p0")
    recording.create("p1")
    recording.create("p2")
    recording.unlink("p1")

    _, found = recording.enumerate("posix-weak", "node")
    state = next(each for each in found if recording.shown(each.crash.tree) == {"p2": b""})

    assert found.index(state) < next(
        number for number, each in enumerate(found) if recording.shown(each.crash.tree) == {"p1": b"", "p2": b""}
    )
    assert (state.crash.at, state.crash.cause.kind) == (6, "prefix")
    assert [(moment.at, moment.cause.kind) for moment in state.moments] == [(6, "prefix"), (5, "omitted")]


def test_one_state_of_each_kind_comes_before_the_second_of_any(tmp_path) -> None:
    recording = orbax_like(tmp_path / "log", files=12)

    _, found = recording.enumerate("posix-weak", "node")

    def group(moment: Moment) -> tuple[str, ...]:
        operation = (
            recording.entries[moment.cause.operation - 1].__struct_config__.tag if moment.cause.operation else moment.point.operation
        )
        return (moment.cause.kind, str(operation), moment.point.marker)

    first = [group(each.moments[0]) for each in found[:30]]
    assert {("omitted", "write", "save.end"), ("omitted", "rename", "save.end"), ("torn", "write", "save.end")} <= set(first)
    assert len(found) > 300


def test_what_is_missing_after_a_rename_and_at_the_end_is_most_telling_of_a_job_that_says_nothing(recording) -> None:
    for step in (5, 10, 15):
        recording.save_file("tmp", b"%d" % step)
        recording.rename("tmp", "checkpoint")
    recording.save_file("final", b"x")

    _, found = recording.enumerate("posix-weak", "node")

    telling = [recording.shown(each.crash.tree) for each in found if each.rank == 0]
    assert {"checkpoint": b""} in telling
    assert {"checkpoint": b"", "final": b"x"} in telling
    assert {"checkpoint": b"10", "tmp": b"15", "final": b"x"} in telling


def test_of_the_cuts_of_long_writes_one_of_a_kind_is_most_telling(recording) -> None:
    for number in range(3):
        recording.save_file(f"part-{number}", bytes([number]) * 20000)
    recording.say("save.end", step=1)

    _, found = recording.enumerate("posix", "process")

    cuts = [(each.rank, each.crash.cause.part, each.crash.cause.operation) for each in found if each.crash.cause.kind == "torn"]
    assert [cut for cut in cuts if cut[0] == 0] == [(0, "half of its pages", 2)]
    assert len(cuts) == 9


def test_nothing_is_made_that_nobody_asks_for(tmp_path, monkeypatch) -> None:
    recording = orbax_like(tmp_path / "log", files=20)
    made = 0

    def count(replay, scope, missing_max, demand) -> Iterator[Candidate]:
        nonlocal made
        for candidate in real(replay, scope, missing_max, demand):
            made += 1
            yield candidate

    real = MODELS["posix-weak"].partial
    monkeypatch.setitem(MODELS, "posix-weak", _with_partial(count))
    played = recording.replay()
    with recording.open_data() as data:
        enumeration = Enumeration(played, data, model="posix-weak", scope="node")
        taken = [found for found, _ in zip(enumeration, range(5), strict=False)]

    assert len(taken) == 5
    assert made < 10
    assert not enumeration.coverage.is_complete


class Everything:
    """Wants every candidate."""

    turns = None

    def wants(self, cause, at) -> bool:
        return True


@given(actions=ACTIONS)
def test_each_candidate_is_looked_at_once_whatever_its_rank(tmp_path_factory, actions) -> None:
    recording = perform(Recording(tmp_path_factory.mktemp("job") / "log"), actions)
    played = recording.replay()

    for model in MODELS.values():
        for scope in model.scopes:
            candidates = [*model.whole(played, scope), *model.partial(played, scope, 2, Everything())]
            ways = [(each.at, each.cause) for each in candidates]
            enumeration, found = recording.enumerate(model.name, scope, missing_max=2)
            assert len(set(ways)) == len(ways) == enumeration.coverage.candidates
            assert sorted((moment.at, moment.cause) for each in found for moment in each.moments) == sorted(ways)


def _with_partial(partial):
    from dataclasses import replace

    return replace(MODELS["posix-weak"], partial=partial)


def test_scopes_that_leave_the_same_are_told(recording) -> None:
    recording.save_file("a", b"1")

    assert same_as("posix", "node") == "process"
    assert same_as("gcsfuse-flat", "sidecar") == "node"
    assert same_as("gcsfuse-flat", "process") == ""
    process, node = (recording.enumerate("posix-weak", scope)[0] for scope in ("process", "node"))
    assert not process.leaves_the_same_as(node)
    assert all(
        recording.enumerate(model.name, scope)[0].leaves_the_same_as(recording.enumerate(model.name, other)[0])
        for model in MODELS.values()
        for scope, other in model.same.items()
    )


def test_what_all_of_a_scope_rests_on_is_told() -> None:
    assert rests_on("posix", "node") == ("durable-at-once",)
    assert rests_on("gcsfuse-hns", "sidecar") == ("sidecar-loses-open-files",)
    assert rests_on("gcsfuse-flat", "node") == rests_on("gcsfuse-hns", "node") == ("closed-once",)
    assert rests_on("posix", "process") == rests_on("posix-weak", "node") == ()


def test_a_scope_that_a_model_does_not_have_is_refused(recording) -> None:
    with pytest.raises(ValueError, match="posix has no scope 'sidecar'"):
        recording.enumerate("posix", "sidecar")


def test_a_line_that_is_no_event_is_no_marker_and_acknowledges_nothing(recording) -> None:
    recording.say("save.end", step="three")
    recording.say("", step=1)
    for entry in recording.entries[:1]:
        recording.entries.append(type(entry)(index=3, t_s=3.0, line="not json"))
    recording.create("a")

    _, found = recording.enumerate("posix", "process")

    assert [each.saves for each in found] == [(), ()]
    assert found[-1].crash.point.marker == "save.end"


def test_a_job_without_events_is_heard_by_what_it_prints(recording) -> None:
    from harness.explore.judgement import SaveSeen
    from harness.explore.operations import Printed
    from harness.explore.replay import replay

    recording.create("a")
    recording.print("saved step 3")
    played = replay(recording.log(), lambda entry: SaveSeen(step=3) if isinstance(entry, Printed) else None)

    with recording.open_data() as data:
        found = list(Enumeration(played, data, model="posix", scope="process"))

    assert [[save.step for save in each.saves] for each in found] == [[], [], [3]]
