"""A tree's digest stands for names, sizes and contents, and for nothing else."""

import os
import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.checkpoints.content import Budget, LimitReachedError
from harness.checkpoints.tree import Tree, read_tree, shown

NAMES = st.text(st.characters(exclude_characters="/\0", exclude_categories=["Cs"]), min_size=1, max_size=12).filter(
    lambda name: name not in (".", "..")
)
FILES = st.dictionaries(st.tuples(st.sampled_from(["", "a/", "b/c/"]), NAMES).map("".join), st.binary(max_size=40), min_size=1, max_size=6)


def build(top: Path, files: dict[str, bytes]) -> Tree:
    for name, data in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return read_tree(top, Budget())


def digest_of(files: dict[str, bytes]) -> str:
    with tempfile.TemporaryDirectory() as directory:
        return build(Path(directory), files).digest


def is_tree(files: dict[str, bytes]) -> bool:
    """No name is a file and a directory at once."""
    return not any(other.startswith(f"{name}/") for name in files for other in files)


@settings(deadline=None, max_examples=25)
@given(FILES.filter(is_tree), st.randoms())
def test_the_order_in_which_files_appear_does_not_matter(files: dict[str, bytes], random: Random) -> None:
    shuffled = list(files.items())
    random.shuffle(shuffled)

    assert digest_of(files) == digest_of(dict(shuffled))


@settings(deadline=None, max_examples=25)
@given(FILES.filter(is_tree), st.data())
def test_any_changed_byte_changes_the_digest(files: dict[str, bytes], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(files)))
    content = data.draw(st.binary(max_size=41).filter(lambda content: content != files[name]))

    assert digest_of(files) != digest_of(files | {name: content})


@settings(deadline=None, max_examples=25)
@given(FILES.filter(is_tree), st.data())
def test_any_changed_name_changes_the_digest(files: dict[str, bytes], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(files)))
    other = data.draw(NAMES.filter(lambda other: other not in files and other not in ("a", "b")))
    renamed = {other if key == name else key: content for key, content in files.items()}

    assert digest_of(files) != digest_of(renamed)


def test_the_same_checkpoint_under_another_name_has_the_same_digest(tmp_path: Path) -> None:
    before = build(tmp_path / "10.tmp", {"w": b"1", "d/x": b"2"})
    (tmp_path / "10.tmp").rename(tmp_path / "10")

    assert read_tree(tmp_path / "10", Budget()).digest == before.digest


def test_a_single_file_is_a_tree(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"123")

    tree = read_tree(tmp_path / "w", Budget())

    assert [file.path for file in tree.files] == ["."]
    assert tree.size_bytes == 3


def test_links_count_by_where_they_point_and_are_not_followed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"1")
    inside = tmp_path / "inside"
    inside.mkdir()
    (inside / "link").symlink_to("../outside")
    (inside / "loop").symlink_to(".")

    tree = read_tree(inside, Budget())
    (outside / "secret").write_bytes(b"2")
    unchanged = read_tree(inside, Budget())
    (inside / "link").unlink()
    (inside / "link").symlink_to("../elsewhere")

    assert [file.path for file in tree.files] == ["link", "loop"]
    assert not any(file.is_regular for file in tree.files)
    assert unchanged.digest == tree.digest
    assert read_tree(inside, Budget()).digest != tree.digest


def test_a_link_at_the_top_is_refused(tmp_path: Path) -> None:
    (tmp_path / "10").symlink_to("elsewhere")

    with pytest.raises(OSError, match="a symbolic link to elsewhere, which is not followed"):
        read_tree(tmp_path / "10", Budget())


def test_a_file_that_was_not_read_leaves_no_digest(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"12345")

    assert read_tree(tmp_path, Budget(bytes_left=1)).digest == ""


def test_a_partly_read_file_marks_the_digest(tmp_path: Path) -> None:
    (tmp_path / "w").write_bytes(b"12345")

    assert read_tree(tmp_path, Budget(hash_bytes_max=1)).digest.startswith("partial-")


def test_empty_directories_count_toward_the_limit(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / str(number)).mkdir()

    with pytest.raises(LimitReachedError):
        read_tree(tmp_path, Budget(entries_left=4))


def test_names_that_are_no_utf8_can_be_shown(tmp_path: Path) -> None:
    (tmp_path / os.fsdecode(b"w\xff")).write_bytes(b"1")

    tree = read_tree(tmp_path, Budget())

    assert len(tree.digest) == 64
    assert shown(tmp_path / tree.files[0].path, tmp_path) == "w\\xff"
