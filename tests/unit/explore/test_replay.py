"""A log that contradicts itself is played as far as it goes, and told; nothing in it can lead in circles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.explore.enumeration import Enumeration
from harness.explore.models import MODELS
from harness.explore.operations import (
    Closed,
    Created,
    Extent,
    Item,
    Linked,
    MadeDirectory,
    MovedIn,
    MovedOut,
    Opened,
    RemovedDirectory,
    Renamed,
    Symlinked,
    Synced,
    Truncated,
    Unlinked,
    Wrote,
)
from tests.unit.explore.recordings import Recording

PATHS = st.sampled_from(["a", "b", "a/a", "a/b", "b/a", "a/a/a", "."])
NODES = st.integers(0, 3)
ITEMS = st.builds(
    Item, path=PATHS, node=NODES, kind=st.sampled_from(["file", "directory", "link"]), data=st.just(Extent(0, 2)), older_than=NODES
)


def entries(kind, **fields):
    return st.builds(kind, index=st.just(0), t_s=st.just(0.0), **fields)


ANYTHING = st.one_of(
    entries(Created, path=PATHS | st.just(""), node=NODES, handle=NODES),
    entries(Opened, path=PATHS, node=NODES, handle=NODES, truncates=st.booleans()),
    entries(Wrote, node=NODES, handle=NODES, offset=st.integers(0, 4), data=st.just(Extent(0, 2))),
    entries(Truncated, node=NODES, size=st.integers(0, 4)),
    entries(Synced, node=NODES, scope=st.sampled_from(["file", "data", "all"])),
    entries(Closed, node=NODES, handle=NODES),
    entries(MadeDirectory, path=PATHS, node=NODES),
    entries(Renamed, path=PATHS, to=PATHS, node=NODES, exchanges=st.booleans()),
    entries(MovedIn, to=PATHS, items=st.lists(ITEMS, max_size=3).map(tuple)),
    entries(MovedOut, path=PATHS, node=NODES),
    entries(Linked, to=PATHS, node=NODES),
    entries(Symlinked, path=PATHS, node=NODES, target=PATHS),
    entries(Unlinked, path=PATHS, node=NODES),
    entries(RemovedDirectory, path=PATHS, node=NODES),
)


@given(noted=st.lists(ANYTHING, min_size=3, max_size=15))
def test_any_log_is_enumerated_under_every_model(tmp_path_factory, noted) -> None:
    import msgspec

    recording = Recording(tmp_path_factory.mktemp("log") / "log", data=bytearray(b"xy"))
    recording.entries = [msgspec.structs.replace(entry, index=index) for index, entry in enumerate(noted, start=1)]
    played = recording.replay()

    with recording.open_data() as data:
        for model in MODELS.values():
            for scope in model.scopes:
                for found in Enumeration(played, data, model=model.name, scope=scope):
                    assert all(path.rpartition("/")[0] in {"", *found.crash.tree} for path in found.crash.tree)
                    assert "." not in found.crash.tree


@pytest.mark.parametrize(
    ("entry", "gap"),
    [
        (Created(index=1, t_s=1.0, path="there", node=9), "creates 'there', which is there"),
        (Created(index=1, t_s=1.0, path="no/a", node=9), "is in 'no', which nobody made"),
        (Created(index=1, t_s=1.0, path="a", node=1), "a node that is known"),
        (Opened(index=1, t_s=1.0, path="a", node=9, handle=1), "is about 'a', which nobody made"),
        (Wrote(index=1, t_s=1.0, node=9, handle=1, offset=0, data=Extent(0, 0)), "which nobody made"),
        (Unlinked(index=1, t_s=1.0, path="there", node=9), "is about 'there', which is not what it was"),
        (Renamed(index=1, t_s=1.0, path="gone", to="a", node=9), "is about 'gone', which is not what it was"),
        (Closed(index=1, t_s=1.0, node=9, handle=1), "is about node 9, which nobody made"),
    ],
)
def test_what_does_not_fit_is_told_with_its_entry(tmp_path, entry, gap) -> None:
    recording = Recording(tmp_path / "log", entries=[entry])
    recording.there("there", b"1")

    assert [each for each in recording.replay().gaps if gap in each and each.startswith("entry 1 ")]


def test_a_file_that_nobody_made_is_there_from_the_operation_on_that_names_it(tmp_path) -> None:
    recording = Recording(tmp_path / "log", entries=[Opened(index=1, t_s=1.0, path="a", node=9, handle=1)])

    assert recording.shown(_last_tree(recording)) == {"a": b""}


def test_a_job_may_take_the_checkpoint_directory_away_and_make_it_again(tmp_path) -> None:
    recording = Recording(tmp_path / "log")
    recording.there("old", b"1")
    recording.move_out(".")
    recording.nodes["."] = 0
    recording.entries.append(MadeDirectory(index=2, t_s=2.0, path=".", node=0))
    recording.create("a")

    assert recording.replay().gaps == ()
    assert recording.trees("posix", "process") == [{"old": b"1"}, {}, {"a": b""}]


def test_two_names_of_one_file_stay_when_one_is_renamed_to_the_other(tmp_path) -> None:
    """Source: rename(2)."""
    recording = Recording(tmp_path / "log")
    recording.save_file("a", b"1")
    recording.link("a", "b")
    recording.rename("a", "b", does_nothing=True)

    assert recording.shown(_last_tree(recording)) == {"a": b"1", "b": b"1"}
    assert recording.replay().gaps == ()


def test_a_file_without_a_name_gets_its_content_to_its_first_name(tmp_path) -> None:
    recording = Recording(tmp_path / "log", data=bytearray(b"xy"))
    recording.entries = [
        Created(index=1, t_s=1.0, path="", node=5, handle=1),
        Wrote(index=2, t_s=2.0, node=5, handle=1, offset=0, data=Extent(0, 2)),
        Linked(index=3, t_s=3.0, to="a", node=5),
    ]

    assert recording.shown(_last_tree(recording)) == {"a": b"xy"}
    assert recording.replay().gaps == ()


def _last_tree(recording):
    from harness.explore.trees import BranchTree

    *_, last = MODELS["posix"].whole(recording.replay(), "process")
    return BranchTree(last.system.tree())
