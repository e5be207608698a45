"""Trees share what they have in common, and a fork of a file system changes nothing of the other."""

import pytest

from harness.explore.content import EMPTY
from harness.explore.data_file import DataFile
from harness.explore.file_system import ROOT, Age, Drop, FileSystem, Make, Put, Resize, Write
from harness.explore.states import Directory, File, Link
from harness.explore.trees import DIRECTORY, HASHED_BYTES_MAX, ORDERED_MAX, BranchTree, digest_of, order_of


@pytest.fixture
def system() -> FileSystem:
    """``left/a``, ``right/b`` and a link."""
    made = FileSystem()
    made.apply([Make(1, DIRECTORY), Put(ROOT, "left", 1), Make(2, DIRECTORY), Put(ROOT, "right", 2)])
    made.apply([Make(3, File(EMPTY)), Put(1, "a", 3), Make(4, File(EMPTY)), Put(2, "b", 4), Make(5, Link("left")), Put(ROOT, "link", 5)])
    return made


def test_a_tree_is_a_mapping_of_paths_with_parents_first(system) -> None:
    tree = BranchTree(system.tree())

    assert list(tree) == ["left", "link", "right", "left/a", "right/b"]
    assert len(tree) == 5
    assert tree["left"] == Directory()
    assert tree["left/a"] == File(EMPTY)
    assert tree["link"] == Link("left")
    for absent in ("no", "left/no", "left/a/no", "link/a"):
        assert absent not in tree


def test_a_change_makes_only_the_directories_above_it_anew(system) -> None:
    before = system.tree()
    system.apply([Write(3, 0, (0, 1))])
    after = system.tree()

    assert after.children["right"] is before.children["right"]
    assert after.children["left"] is not before.children["left"]
    assert BranchTree(before)["left/a"] == File(EMPTY)
    assert system.tree() is after


def test_a_fork_and_its_origin_do_not_see_each_other(system) -> None:
    fork = system.fork()
    fork.apply([Drop(ROOT, "left"), Resize(4, 3), Put(2, "c", 3)])
    system.apply([Make(6, DIRECTORY), Put(1, "d", 6)])

    assert set(BranchTree(fork.tree())) == {"right", "right/b", "right/c", "link"}
    assert set(BranchTree(system.tree())) == {"left", "left/a", "left/d", "right", "right/b", "link"}
    assert BranchTree(system.tree())["right/b"] == File(EMPTY)


def test_a_directory_that_moves_takes_what_is_below_it_and_knows_its_path(system) -> None:
    system.apply([Put(2, "moved", 1)])

    assert set(BranchTree(system.tree())) == {"right", "right/b", "right/moved", "right/moved/a", "link"}
    assert system.path_of(3) == "right/moved/a"
    assert system.path_of(ROOT) == "."


def test_a_change_below_a_directory_without_a_way_up_changes_no_tree(system) -> None:
    system.apply([Drop(ROOT, "left")])
    before = system.tree()
    system.apply([Write(3, 0, (0, 1))])

    assert system.tree() is before
    assert system.path_of(3) is None


def test_no_edits_can_make_a_circle(system) -> None:
    system.apply([Put(ROOT, "a", 3)])  # a file with two names, which a log that is wrong then calls a directory
    system.apply([Make(3, DIRECTORY), Put(3, "x", 1)])
    assert set(BranchTree(system.tree())) == {"link", "right", "right/b"}
    system.apply([Put(1, "y", 3), Put(3, "z", 3), Put(1, "root", ROOT)])

    assert set(BranchTree(system.tree())) == {"link", "right", "right/b"}


def test_the_digest_tells_names_kinds_and_bytes_and_not_where_bytes_came_from(tmp_path, system) -> None:
    (tmp_path / "data").write_bytes(b"xyxz")
    with DataFile(tmp_path / "data") as data:
        digests = [digest_of(system.tree(), data)]
        for edit in (Write(3, 0, (0, 1)), Write(3, 0, (3, 1)), Drop(ROOT, "link"), Put(1, "b", 3), Make(4, Link(""))):
            system.apply([edit])
            digests.append(digest_of(system.tree(), data))
        assert len(set(digests)) == 6

        one, other = system.fork(), system.fork()
        one.apply([Write(3, 0, (0, 1))])
        other.apply([Write(3, 0, (2, 1))])
        assert digest_of(one.tree(), data) == digest_of(other.tree(), data)


def test_a_large_file_is_not_read_to_tell_states_apart(tmp_path, system) -> None:
    (tmp_path / "data").write_bytes(b"")
    with DataFile(tmp_path / "data") as data:
        system.apply([Write(3, 0, (0, HASHED_BYTES_MAX + 1))])
        first = digest_of(system.tree(), data)
        system.apply([Write(3, 0, (1, 1))])
        assert digest_of(system.tree(), data) != first


def test_the_order_of_times_is_told_where_it_is_another_than_that_of_the_paths(system) -> None:
    assert order_of(system.tree()) == ()

    system.apply([Write(3, 0, (0, 1)), Write(4, 0, (0, 1))])  # the only ones of their directories and names
    assert order_of(system.tree()) == ()

    system.apply([Make(6, File(EMPTY)), Put(2, "a", 6)])
    assert order_of(system.tree()) == (("right/b", "right/a"),)

    system.apply([Resize(3, 0)])
    assert order_of(system.tree()) == (("right/a", "left/a"), ("right/b", "right/a"))

    system.apply([Drop(1, "a")])  # so that the first of two directories was changed last
    assert order_of(system.tree()) == (("right", "left"), ("right/b", "right/a"))


def test_of_many_files_no_order_is_told() -> None:
    system = FileSystem()
    for number in range(ORDERED_MAX + 1):
        assert bool(order_of(system.tree())) is (number > 1)
        system.apply([Make(number + 1, File(EMPTY)), Put(ROOT, f"{9999 - number}", number + 1)])

    assert order_of(system.tree()) == ()


def test_what_is_older_than_another_comes_right_before_it(system) -> None:
    system.apply([Resize(4, 1), Make(6, File(EMPTY)), Put(1, "z", 6), Age(6, 4)])

    paths = BranchTree(system.tree()).by_change()

    assert paths.index("right/b") == paths.index("left/z") + 1
