"""Files are known by their inode while they exist, and by their number for ever."""

from harness.supervision.recorder.nodes import ROOT, Nodes


def made() -> Nodes:
    nodes = Nodes((1, 1), b"root")
    nodes.make((1, 2), "directory", (nodes.above, b"root"))
    return nodes


def root_of(nodes: Nodes):
    assert nodes.root is not None
    return nodes.root


def test_the_directory_itself_is_node_0_and_a_dot() -> None:
    nodes = made()
    root = root_of(nodes)

    assert (root.number, nodes.path_of(root)) == (ROOT, b".")


def test_a_renamed_directory_takes_all_below_it_along() -> None:
    nodes = made()
    root = root_of(nodes)
    directory = nodes.make((1, 3), "directory", (root, b"a"))
    file = nodes.make((1, 4), "file", (directory, b"f"))
    nodes.move(root, b"a", (root, b"b"))

    assert nodes.path_of(file) == b"b/f"
    assert nodes.path(directory, b"g") == b"b/g"


def test_a_file_that_is_replaced_is_forgotten_and_its_number_is_not_used_again() -> None:
    nodes = made()
    root = root_of(nodes)
    old = nodes.make((1, 3), "file", (root, b"old"))
    nodes.make((1, 4), "file", (root, b"new"))
    nodes.move(root, b"new", (root, b"old"))
    again = nodes.make((1, 3), "file", (root, b"other"))

    assert again.number not in {old.number, ROOT}
    assert nodes.find((1, 3)) is again
    assert old.names == []


def test_a_file_without_a_name_is_known_while_somebody_writes_to_it() -> None:
    nodes = made()
    root = root_of(nodes)
    file = nodes.make((1, 3), "file", (root, b"f"))
    file.handles = 1
    nodes.remove(root, b"f")

    assert nodes.find((1, 3)) is file
    assert (nodes.path_of(file), file.was) == (b"", b"f")
    file.handles = 0
    nodes.release(file)
    assert nodes.find((1, 3)) is None


def test_a_second_name_keeps_a_file() -> None:
    nodes = made()
    root = root_of(nodes)
    file = nodes.make((1, 3), "file", (root, b"f"))
    nodes.put(file, root, b"g")
    nodes.remove(root, b"f")

    assert nodes.find((1, 3)) is file
    assert nodes.path_of(file) == b"g"


def test_a_removed_tree_is_forgotten_whole_but_for_files_with_another_name() -> None:
    nodes = made()
    root = root_of(nodes)
    directory = nodes.make((1, 3), "directory", (root, b"d"))
    nodes.make((1, 4), "file", (directory, b"f"))
    kept = nodes.make((1, 5), "file", (directory, b"g"))
    nodes.put(kept, root, b"g")
    nodes.remove(root, b"d")

    assert [nodes.find((1, inode)) for inode in (3, 4, 5)] == [None, None, kept]
    assert kept.names == [(root, b"g")]


def test_exchanged_names_stand_for_each_other() -> None:
    nodes = made()
    root = root_of(nodes)
    directory = nodes.make((1, 3), "directory", (root, b"d"))
    inner = nodes.make((1, 4), "file", (directory, b"f"))
    file = nodes.make((1, 5), "file", (root, b"f"))
    nodes.exchange((root, b"d"), (root, b"f"))

    assert (nodes.path_of(directory), nodes.path_of(file), nodes.path_of(inner)) == (b"f", b"d", b"f/f")
