"""What each storage can leave: told by small recordings, and by what holds for any recording."""

import pytest
from hypothesis import given

from harness.explore.models import MODELS
from harness.explore.operations import MovedIn
from tests.unit.explore.jobs import ACTIONS, orbax_like, perform
from tests.unit.explore.recordings import Recording
from tests.unit.explore.weak_disk import left_by


@pytest.fixture
def recording(tmp_path) -> Recording:
    return Recording(tmp_path / "log")


def causes(recording: Recording, model, scope, kind: str, **options) -> list[tuple[int, str]]:
    """(operation, part) of all states of a kind that no simpler cause leaves."""
    _, found = recording.enumerate(model, scope, **options)
    return [(each.crash.cause.operation, each.crash.cause.part) for each in found if each.crash.cause.kind == kind]


def names_of(recording: Recording, model, scope) -> set[str]:
    """Names of all states."""
    _, found = recording.enumerate(model, scope)
    with recording.open_data() as data:
        return {each.task(data, root="/").state for each in found}


# posix


def test_posix_leaves_each_prefix_and_nothing_else(recording) -> None:
    recording.save_file("a", b"12")
    recording.rename("a", "b")

    expected = [{}, {"a": b""}, {"a": b"12"}, {"b": b"12"}]
    assert recording.trees("posix", "process") == expected
    assert recording.trees("posix", "node") == expected


def test_posix_knows_links_exchanges_and_what_comes_and_goes(recording) -> None:
    recording.there("old")
    recording.there("old/x", b"1")
    recording.move_in("new", {"x": b"2"})
    recording.rename("old", "new", exchanges=True)
    recording.link("new/x", "again")
    recording.symlink("latest", "new")
    recording.move_out("old")
    recording.open("new/x", truncates=True)

    final = recording.trees("posix", "process")
    assert {"old": "/", "old/x": b"2", "new": "/", "new/x": b"1"} in final
    assert {"new": "/", "new/x": b"1", "again": b"1", "latest": "-> new"} in final
    assert {"new": "/", "new/x": b"", "again": b"", "latest": "-> new"} in final


PAGES = b"1" * 4096 + b"2" * 4096 + b"3" * 4096 + b"4" * 4096 + b"5" * 10
"""A write of five pages."""


@pytest.mark.parametrize("scope", ["process", "node"])
def test_a_write_of_several_pages_may_be_cut_between_them(recording, scope) -> None:
    recording.there("a", b"0" * 20000)
    recording.open("a")
    recording.write("a", PAGES)

    _, found = recording.enumerate("posix", scope)
    cut = {each.crash.cause.part: recording.shown(each.crash.tree)["a"] for each in found if each.crash.cause.kind == "torn"}

    sizes = {"half of its pages": 2 * 4096, "its first page": 4096, "all but its last page": 4 * 4096}
    assert cut == {part: PAGES[:size] + b"0" * (20000 - size) for part, size in sizes.items()}
    assert {(each.crash.at, each.crash.point.part) for each in found if each.crash.cause.kind == "torn"} == {(2, part) for part in sizes}


def test_pages_are_those_of_the_file_and_one_of_them_is_not_cut(recording) -> None:
    recording.create("a")
    recording.write("a", b"1" * 4096)
    recording.write("a", b"2" * 100, 4096)
    recording.write("a", b"3" * 4000, 4196)

    assert causes(recording, "posix", "process", "torn") == [(4, "its first page")]
    assert {"a": b"1" * 4096 + b"2" * 100 + b"3" * 3996} in recording.trees("posix", "process")


def test_a_cut_write_is_left_by_a_weak_disk_and_by_a_client_that_uploads_whole_objects_never(recording) -> None:
    recording.create("a")
    recording.write("a", PAGES)

    assert names_of(recording, "posix", "process") == names_of(recording, "posix-weak", "process")
    assert names_of(recording, "posix", "process") <= names_of(recording, "posix-weak", "node")
    assert recording.trees("object-store", "process") == [{}]


# posix-weak


def test_a_write_that_was_not_synced_may_be_missing_or_torn_after_the_rename(recording) -> None:
    recording.there("a", b"old")
    recording.save_file("a.tmp", b"newer")
    recording.rename("a.tmp", "a")

    left = [tree["a"] for tree in recording.trees("posix-weak", "node") if "a.tmp" not in tree]
    assert sorted(left) == sorted([b"old", b"newer", b"", b"\0" * 5, b"ne"])


def test_a_write_that_was_synced_is_there_and_its_name_may_be_missing(recording) -> None:
    recording.save_file("a", b"1", syncs=True)
    recording.say("save.end", step=1)

    _, found = recording.enumerate("posix-weak", "node")
    acknowledged = [recording.shown(each.crash.tree) for each in found if each.saves]

    assert {"a": b"1"} in acknowledged
    assert {} in acknowledged
    assert {"a": b""} not in acknowledged


def test_a_synced_directory_keeps_its_names(recording) -> None:
    recording.save_file("a", b"1", syncs=True)
    recording.sync(".")
    recording.say("save.end", step=1)

    _, found = recording.enumerate("posix-weak", "node")

    assert [recording.shown(each.crash.tree) for each in found if each.saves] == [{"a": b"1"}]


def test_a_rename_is_there_or_not_as_a_whole_until_one_directory_is_synced(recording) -> None:
    recording.there("from")
    recording.there("to")
    recording.there("from/a", b"1")
    recording.rename("from/a", "to/a")
    recording.say("one")
    recording.create("other")
    recording.sync("to")
    recording.create("last")

    trees = recording.trees("posix-weak", "node")
    assert {"from": "/", "from/a": b"1", "to": "/", "other": b""} in trees
    assert {"from": "/", "from/a": b"1", "to": "/", "other": b"", "last": b""} not in trees
    assert all(("from/a" in tree) != ("to/a" in tree) for tree in trees)


def test_a_rename_may_be_missing_until_each_of_its_names_stands_for_something_else(recording) -> None:
    recording.there("model", b"1")
    recording.there("meta", b"1")
    for name in ("model", "meta"):
        recording.save_file("tmp", b"2", syncs=True)
        recording.rename("tmp", name)
    recording.sync(".")

    trees = recording.trees("posix-weak", "node")
    assert {"model": b"1", "meta": b"2"} in trees
    assert trees == [tree for tree in trees if tree.keys() <= {"model", "meta", "tmp"}]


def test_a_rename_into_a_directory_that_was_not_synced_may_be_missing_though_the_one_it_came_from_is_gone(recording) -> None:
    recording.there("from")
    recording.there("from/a", b"1")
    recording.there("to")
    recording.rename("from/a", "to/a")
    recording.rmdir("from")
    recording.sync(".")
    recording.create("last")

    assert {"to": "/", "last": b""} in recording.trees("posix-weak", "node")


def test_the_bytes_of_a_file_that_came_from_outside_may_be_missing_when_they_were_not_synced(recording) -> None:
    recording.there("a", b"old")
    recording.move_file_in("a", b"newer", unsynced=True)
    recording.sync(".")
    recording.say("save.end", step=1)

    left = {tree["a"] for tree in recording.trees("posix-weak", "node")}
    assert left == {b"old", b"newer", b"", b"\0" * 5, b"ne"}
    assert sorted(tree["a"] for tree in _acknowledged(recording, missing_max=1)) == sorted([b"newer", b"", b"\0" * 5, b"ne"])


@pytest.mark.parametrize("seen", ["before", "after"])
def test_the_bytes_of_a_file_that_came_from_outside_are_there_when_they_were_synced(recording, seen) -> None:
    recording.there("a", b"old")
    recording.move_file_in("a", b"newer", unsynced=seen == "after")
    if seen == "after":
        recording.sync("a")
    recording.say("save.end", step=1)

    assert sorted(tree["a"] for tree in _acknowledged(recording, missing_max=1)) == [b"newer", b"old"]


def test_of_a_directory_that_came_from_outside_each_file_may_be_torn(recording) -> None:
    recording.move_in("new", {"x": b"11", "y": b"22"}, unsynced=True)
    recording.sync(".")
    recording.create("last")

    trees = recording.trees("posix-weak", "node")
    assert {"new": "/", "new/x": b"", "new/y": b"22", "last": b""} in trees
    assert {"new": "/", "new/x": b"11", "new/y": b"2", "last": b""} in trees
    assert ("new/x" in trees[-1]) is ("new/y" in trees[-1])


def test_a_file_that_came_from_outside_is_a_whole_object(recording) -> None:
    recording.move_file_in("a", b"newer", unsynced=True)

    for model in ("gcsfuse-flat", "object-store"):
        assert recording.trees(model, "node") == [{}, {"a": b"newer"}]


def test_an_unlink_may_be_missing_and_the_directory_of_a_new_directory_too(recording) -> None:
    recording.there("a", b"1")
    recording.unlink("a")
    recording.mkdir("d")
    recording.save_file("d/b", b"2", syncs=True)
    recording.sync("d")
    recording.say("save.end", step=1)

    _, found = recording.enumerate("posix-weak", "node")
    acknowledged = [recording.shown(each.crash.tree) for each in found if each.saves]

    assert {"a": b"1", "d": "/", "d/b": b"2"} in acknowledged
    assert {} in acknowledged


def test_a_name_that_is_missing_takes_nothing_from_another_name_of_the_file(recording) -> None:
    recording.save_file("a", b"1", syncs=True)
    recording.link("a", "b")

    assert {"b": b"1"} in recording.trees("posix-weak", "node")


def test_a_killed_process_leaves_prefixes_under_posix_weak_too(recording) -> None:
    recording.save_file("a", b"12")

    assert recording.trees("posix-weak", "process") == recording.trees("posix", "process")


def test_two_operations_may_be_missing_when_asked_for(recording) -> None:
    recording.save_file("a", b"1")
    recording.save_file("b", b"2")
    recording.say("save.end", step=1)

    assert {"a": b"", "b": b""} not in _acknowledged(recording, missing_max=1)
    assert {"a": b"", "b": b""} in _acknowledged(recording, missing_max=2)


def test_nothing_that_was_not_synced_may_be_there(recording) -> None:
    for name in ("a", "b"):
        recording.save_file(name, b"1")
    recording.sync("b")
    recording.say("save.end", step=1)
    recording.sync(".")

    acknowledged = _acknowledged(recording, missing_max=1)
    assert {} in acknowledged
    assert {"a": b"", "b": b"1"} in acknowledged
    assert {"a": b"", "b": b""} not in acknowledged


def _acknowledged(recording, *, missing_max):
    _, found = recording.enumerate("posix-weak", "node", missing_max=missing_max)
    return [recording.shown(each.crash.tree) for each in found if each.saves]


def test_an_overwrite_in_place_may_be_torn(recording) -> None:
    recording.there("a", b"old!")
    recording.open("a")
    recording.write("a", b"NEW?+")

    left = [tree["a"] for tree in recording.trees("posix-weak", "node")]
    assert sorted(left) == sorted([b"old!", b"NEW?+", b"old!\0", b"\0" * 5, b"NEd!"])


def test_files_that_are_never_synced_are_torn_after_the_rename_and_the_acknowledgement(tmp_path) -> None:
    """The shape of F10: a file is empty although the step has its final name and was acknowledged."""
    recording = orbax_like(tmp_path / "log", files=3)

    _, found = recording.enumerate("posix-weak", "node")
    torn = [each for each in found if each.saves and recording.shown(each.crash.tree).get("1/part-01") == b""]

    assert [each.crash.cause.kind for each in torn] == ["omitted"]
    assert torn[0].crash.assumed == ("unordered-until-synced",)
    assert torn[0].crash.point.marker == "save.end"


# gcsfuse


def test_an_open_file_is_published_truncated_by_a_kill_and_vanishes_with_the_node(recording) -> None:
    recording.there("a", b"old")
    recording.create("b")
    recording.write("b", b"half")
    recording.sync("b")

    assert recording.trees("gcsfuse-flat", "process")[-1] == {"a": b"old", "b": b"half"}
    assert recording.trees("gcsfuse-flat", "node") == [{"a": b"old"}]
    assert causes(recording, "gcsfuse-flat", "process", "truncated") == [(1, ""), (1, "")]


def test_a_file_that_was_closed_is_whole_or_not_there(recording) -> None:
    recording.create("a")
    recording.write("a", b"12")
    recording.write("a", b"34", 2)
    recording.close("a")

    assert recording.trees("gcsfuse-hns", "node") == [{}, {"a": b"1234"}]


def test_a_file_that_is_modified_is_the_object_of_its_last_sync(recording) -> None:
    recording.there("a", b"old")
    recording.open("a")
    recording.write("a", b"1")
    recording.sync("a")
    recording.write("a", b"2", 1)

    assert recording.trees("gcsfuse-flat", "node") == [{"a": b"old"}, {"a": b"1ld"}]


def test_a_write_out_of_order_publishes_what_was_streamed(recording) -> None:
    recording.create("a")
    recording.write("a", b"12")
    recording.write("a", b"9", 0)

    _, found = recording.enumerate("gcsfuse-flat", "node")

    assert [recording.shown(each.crash.tree) for each in found] == [{}, {"a": b"12"}]
    assert found[-1].crash.assumed == ("out-of-order-publishes",)


def test_a_file_that_is_renamed_while_it_is_written_is_published_and_then_staged(recording) -> None:
    recording.create("a")
    recording.write("a", b"12")
    recording.rename("a", "b")
    recording.write("b", b"34", 2)
    recording.sync("b")

    assert recording.trees("gcsfuse-flat", "node") == [{}, {"b": b"12"}, {"b": b"1234"}]


def test_a_rename_of_a_directory_of_14_objects_stops_at_15_places(tmp_path) -> None:
    """The shape of F6: the new directory's object alone, then one object of fourteen after the other."""
    recording = orbax_like(tmp_path / "log", files=14)
    rename = next(entry.index for entry in recording.entries if entry.__struct_config__.tag == "rename")

    torn = causes(recording, "gcsfuse-flat", "node", "renaming")

    assert sorted(torn, key=lambda each: int(each[1].split()[1])) == [(rename, f"object {number} of 14") for number in range(15)]
    assert causes(recording, "gcsfuse-hns", "node", "renaming") == []
    assert causes(recording, "gcsfuse-flat", "process", "renaming") == []


def test_objects_move_in_the_order_of_a_listing_with_those_of_directories(recording) -> None:
    recording.mkdir("old")
    recording.save_file("old/b-c", b"3")
    recording.mkdir("old/b")
    recording.save_file("old/b/x", b"2")
    recording.save_file("old/a", b"1")
    recording.rename("old", "new")

    _, found = recording.enumerate("gcsfuse-flat", "node")
    torn = {each.crash.cause.part: recording.shown(each.crash.tree) for each in found if each.crash.cause.kind == "renaming"}

    before, after = {"old": "/", "new": "/"}, {"new/a": b"1", "new/b-c": b"3"}
    assert torn == {
        "object 0 of 4": before | {"old/a": b"1", "old/b-c": b"3", "old/b": "/", "old/b/x": b"2"},
        "object 1 of 4": before | {"new/a": b"1", "old/b-c": b"3", "old/b": "/", "old/b/x": b"2"},
        "object 2 of 4": before | after | {"old/b": "/", "old/b/x": b"2"},
        "object 3 of 4": before | after | {"new/b": "/", "old/b": "/", "old/b/x": b"2"},
        "object 4 of 4": before | after | {"new/b": "/", "new/b/x": b"2"},
    }


def test_a_torn_rename_names_the_rows_that_nobody_has_confirmed(recording) -> None:
    recording.mkdir("a")
    recording.save_file("a/x", b"1")
    recording.rename("a", "b")

    _, found = recording.enumerate("gcsfuse-flat", "node")
    torn = next(each for each in found if each.crash.cause.kind == "renaming")

    assert torn.crash.assumed == ("directories-are-implied", "directory-rename-order", "rename-limit-suffices")
    assert torn.crash.point.part == "object 0 of 1"


def test_what_the_mount_would_have_refused_is_named_from_then_on(recording) -> None:
    recording.mkdir("a")
    recording.create("a/x")
    recording.rename("a", "b")
    recording.close("b/x")

    _, found = recording.enumerate("gcsfuse-hns", "node")

    assert [each.crash.assumed for each in found] == [(), (), ("refused-by-mount",), ("refused-by-mount",)]
    assert recording.shown(found[-1].crash.tree) == {"b": "/", "b/x": b""}


def test_the_mount_alone_leaves_what_the_node_leaves_and_the_row_is_assumed(recording) -> None:
    recording.mkdir("a")
    recording.save_file("a/x", b"1")
    recording.rename("a", "b")
    recording.create("c")

    for model in ("gcsfuse-flat", "gcsfuse-hns"):
        node, _ = recording.enumerate(model, "node")
        sidecar, found = recording.enumerate(model, "sidecar")
        assert sidecar.leaves_the_same_as(node)
        assert "sidecar-loses-open-files" in found[-1].crash.assumed


def assumed_last(recording: Recording, model, scope) -> tuple[str, ...]:
    """What the last moment rests on that nobody has confirmed."""
    _, found = recording.enumerate(model, scope)
    return max((moment for each in found for moment in each.moments), key=lambda moment: moment.at).assumed


def test_what_comes_after_a_directory_that_was_moved_in_rests_on_its_names_being_durable(recording) -> None:
    recording.save_file("first", b"a")
    recording.move_file_in("file", b"b")
    recording.move_in("step", {"state": b"c"})
    recording.create("last")

    row = "names-moved-in-are-durable"

    rests, rests_when_killed = (
        {moment.at: row in moment.assumed for each in recording.enumerate("posix-weak", scope)[1] for moment in each.moments}
        for scope in ("node", "process")
    )

    at = next(entry.index for entry in recording.entries if isinstance(entry, MovedIn) and len(entry.items) > 1)
    assert rests == {moment: moment >= at for moment in rests}
    assert max(rests) > at > min(rests)
    assert not any(rests_when_killed.values())


def test_a_stream_that_can_be_read_rests_on_its_not_being_read_until_it_is_closed(recording) -> None:
    recording.create("a", reads=True)
    recording.write("a", b"12")
    assert assumed_last(recording, "gcsfuse-flat", "node") == ("not-read-back",)

    recording.close("a")
    assert assumed_last(recording, "gcsfuse-flat", "node") == ()


def test_a_fifth_stream_at_once_rests_on_there_being_room_for_it(recording) -> None:
    for number in range(4):
        recording.create(f"a{number}")
    recording.sync("a3")
    assert assumed_last(recording, "gcsfuse-hns", "node") == ()

    recording.create("a4")
    recording.sync("a4")
    assert assumed_last(recording, "gcsfuse-hns", "node") == ("blocks-suffice",)


# object-store


@pytest.mark.parametrize("change", ["in place", "appended", "out of order", "cut"])
def test_an_object_that_is_not_written_from_its_beginning_to_its_end_rests_on_its_being_written_again(recording, change) -> None:
    recording.there("a", b"old")
    recording.create("b")
    recording.write("b", b"12")
    if change == "out of order":
        recording.write("b", b"9", 0)
    elif change == "cut":
        recording.truncate("b", 1)
    else:
        recording.open("a")
        recording.write("a", b"X", 0 if change == "in place" else 3)

    assert assumed_last(recording, "object-store", "node") == ("rewritten-as-a-whole",)


def test_an_object_that_is_written_anew_rests_on_nothing(recording) -> None:
    recording.there("a", b"old")
    recording.open("a", truncates=True)
    recording.write("a", b"1")
    recording.write("a", b"2", 1)
    recording.truncate("a", 0)
    recording.write("a", b"3")
    recording.close("a")

    assert assumed_last(recording, "object-store", "node") == ()
    assert recording.trees("object-store", "node")[-1] == {"a": b"3"}


def test_an_object_is_there_as_a_whole_at_close_whatever_dies(recording) -> None:
    recording.there("a", b"old")
    recording.mkdir("empty")
    recording.open("a", truncates=True)
    recording.write("a", b"new")
    recording.sync("a")
    recording.close("a")

    assert recording.trees("object-store", "process") == [{"a": b"old"}, {"a": b"new"}]
    assert recording.trees("object-store", "node") == [{"a": b"old"}, {"a": b"new"}]


def test_a_rename_is_a_copy_and_then_a_delete_object_by_object(recording) -> None:
    recording.there("d")
    recording.there("d/e")
    recording.there("d/a", b"1")
    recording.there("d/e/b", b"2")
    recording.rename("d", "n")

    _, found = recording.enumerate("object-store", "process")
    torn = {each.crash.cause.part: recording.shown(each.crash.tree) for each in found if each.crash.cause.kind == "renaming"}

    old = {"d": "/", "d/e": "/", "d/e/b": b"2"}
    assert torn == {
        "object 1 of 2 copied": {"d/a": b"1", "n": "/", "n/a": b"1"} | old,
        "object 1 of 2": {"n": "/", "n/a": b"1"} | old,
        "object 2 of 2 copied": {"n": "/", "n/a": b"1", "n/e": "/", "n/e/b": b"2"} | old,
    }


# any recording


@given(actions=ACTIONS)
def test_a_weak_disk_leaves_what_it_leaves_when_nothing_is_taken_for_moot(tmp_path_factory, actions) -> None:
    recording = perform(Recording(tmp_path_factory.mktemp("job") / "log"), actions)

    _, found = recording.enumerate("posix-weak", "node")

    assert {(frozenset(recording.shown(each.crash.tree).items()), len(each.saves)) for each in found} == left_by(recording)


@given(actions=ACTIONS)
def test_every_posix_state_is_a_posix_weak_state(tmp_path_factory, actions) -> None:
    recording = perform(Recording(tmp_path_factory.mktemp("job") / "log"), actions)

    assert names_of(recording, "posix", "process") <= names_of(recording, "posix-weak", "node")


@given(actions=ACTIONS)
def test_every_state_of_gcsfuse_hns_is_one_of_gcsfuse_flat(tmp_path_factory, actions) -> None:
    recording = perform(Recording(tmp_path_factory.mktemp("job") / "log"), actions)

    assert names_of(recording, "gcsfuse-hns", "node") <= names_of(recording, "gcsfuse-flat", "node")


@given(actions=ACTIONS)
def test_a_killed_process_leaves_on_a_mount_what_it_leaves_on_a_local_disk(tmp_path_factory, actions) -> None:
    recording = perform(Recording(tmp_path_factory.mktemp("job") / "log"), actions)

    assert names_of(recording, "gcsfuse-flat", "process") == names_of(recording, "posix", "process")


@given(actions=ACTIONS)
def test_a_job_that_syncs_everything_at_once_has_nothing_missing(tmp_path_factory, actions) -> None:
    recording = perform(Recording(tmp_path_factory.mktemp("job") / "log"), actions, syncs=True)

    _, found = recording.enumerate("posix-weak", "node", missing_max=2)

    differing = [moment for each in found for moment in each.moments if moment.cause.kind != "prefix"]
    assert all(moment.cause.kind == "torn" and moment.cause.operation == moment.at for moment in differing)


@given(actions=ACTIONS)
def test_the_same_recording_is_enumerated_the_same(tmp_path_factory, actions) -> None:
    recording = perform(Recording(tmp_path_factory.mktemp("job") / "log"), actions)

    for model in MODELS.values():
        first, second = (recording.enumerate(model.name, model.scopes[-1])[1] for _ in range(2))
        assert [each.moments for each in first] == [each.moments for each in second]
