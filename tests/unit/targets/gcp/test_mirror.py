"""A prefix of a bucket as a directory here."""

import shutil
from pathlib import Path

import pytest

from harness.targets.gcp.mirror import Mirror, problem_with
from tests.unit.targets.gcp.fake_bucket import FakePrefix


@pytest.fixture
def bucket() -> FakePrefix:
    return FakePrefix(prefix="harness/run/checkpoints/")


@pytest.fixture
def mirror(bucket: FakePrefix, tmp_path: Path) -> Mirror:
    return Mirror(bucket, tmp_path / "checkpoints")  # type: ignore[arg-type]


def content(mirror: Mirror) -> dict[str, bytes]:
    paths = [path for path in mirror.directory.rglob("*") if path.is_file()]
    return {path.relative_to(mirror.directory).as_posix(): path.read_bytes() for path in paths}


def objects(bucket: FakePrefix) -> dict[str, bytes]:
    return {name.removeprefix(bucket.prefix): data for name, (_, data) in bucket.objects.items()}


def test_a_pull_makes_the_directory_what_the_bucket_holds(bucket: FakePrefix, mirror: Mirror):
    bucket.put("", b"")
    bucket.put("a.txt", b"1")
    bucket.put("step_5/data", b"22")

    assert sorted(mirror.pull()) == ["a.txt", "step_5/data"]
    assert content(mirror) == {"a.txt": b"1", "step_5/data": b"22"}
    assert mirror.pull() == []


def test_what_changes_and_what_goes_is_followed(bucket: FakePrefix, mirror: Mirror):
    for name in ("a", "b", "step_5/data"):
        bucket.put(name, b"old")
    mirror.pull()
    bucket.put("a", b"new")
    bucket.delete("step_5/data")

    assert sorted(mirror.pull()) == ["a", "step_5/data"]
    assert content(mirror) == {"a": b"new", "b": b"old"}
    assert not (mirror.directory / "step_5").exists()


def test_a_file_that_becomes_a_directory_is_followed_both_ways(bucket: FakePrefix, mirror: Mirror):
    bucket.put("x", b"file")
    mirror.pull()
    bucket.delete("x")
    bucket.put("x/y", b"inside")
    mirror.pull()
    assert content(mirror) == {"x/y": b"inside"}
    bucket.delete("x/y")
    bucket.put("x", b"file again")
    mirror.pull()

    assert content(mirror) == {"x": b"file again"}


def test_an_object_that_changes_while_it_is_read_is_read_at_the_next_pull(bucket: FakePrefix, mirror: Mirror):
    bucket.put("a", b"1")

    def write_again(name: str) -> None:
        bucket.before_read = lambda _: None
        bucket.put(name, b"2")

    bucket.before_read = write_again
    assert mirror.pull() == []
    assert content(mirror) == {}

    assert mirror.pull() == ["a"]
    assert content(mirror) == {"a": b"2"}


@pytest.mark.parametrize("name", ["../escaped", "a/../../escaped", "/absolute", "a//b", "./a", "x" * 300, "back\\slash", "nul\0"])
def test_a_name_that_is_no_path_is_told_and_never_written(bucket: FakePrefix, mirror: Mirror, tmp_path: Path, name: str):
    bucket.put(name, b"?")
    bucket.put("good", b"1")
    mirror.pull()

    assert content(mirror) == {"good": b"1"}
    assert list(mirror.lost) == [name]
    assert {path.name for path in tmp_path.iterdir()} <= {"checkpoints"}
    assert problem_with(name)


def test_an_object_that_others_lie_below_is_told(bucket: FakePrefix, mirror: Mirror):
    bucket.put("x", b"file")
    bucket.put("x/y", b"inside")
    mirror.pull()

    assert content(mirror) == {"x/y": b"inside"}
    assert list(mirror.lost) == ["x"]


def test_empty_directories_are_seen(bucket: FakePrefix, mirror: Mirror):
    bucket.put("step_10/", b"")
    mirror.pull()

    assert (mirror.directory / "step_10").is_dir()


def test_a_directory_that_is_gone_here_leaves_no_object_that_stands_for_it(bucket: FakePrefix, mirror: Mirror):
    for name in ("5/", "5/deep/", "5/deep/state", "10/", "10/state"):
        bucket.put(name, b"")
    mirror.pull()
    shutil.rmtree(mirror.directory / "5")
    (mirror.directory / "10/state").unlink()

    pushed = mirror.push()

    assert (objects(bucket), pushed.lost) == ({"10/": b""}, [])
    assert pushed.names[-2:] == ["5/deep/", "5/"]
    assert (mirror.push().names, mirror.pull()) == ([], [])


def test_a_directory_that_the_job_has_made_anew_stays_and_is_told(bucket: FakePrefix, mirror: Mirror):
    bucket.put("5/", b"")
    mirror.pull()
    (mirror.directory / "5").rmdir()
    bucket.put("5/", b"")

    pushed = mirror.push()

    assert (objects(bucket), pushed.names) == ({"5/": b""}, [])
    assert [lost.split(":")[0] for lost in pushed.lost] == ["5/"]
    mirror.pull()
    assert (mirror.directory / "5").is_dir()


def test_damage_reaches_the_bucket(bucket: FakePrefix, mirror: Mirror):
    for name in ("flipped", "cut", "gone", "kept", "moved/1", "moved/2"):
        bucket.put(name, b"good content")
    mirror.pull()
    with (mirror.directory / "flipped").open("r+b") as file:
        file.write(b"G")
    (mirror.directory / "cut").write_bytes(b"")
    (mirror.directory / "gone").unlink()
    (mirror.directory / "torn").mkdir()
    (mirror.directory / "moved/2").rename(mirror.directory / "torn/2")
    (mirror.directory / "empty_step").mkdir()

    pushed = mirror.push()

    assert pushed.lost == []
    assert objects(bucket) == {
        "flipped": b"Good content",
        "cut": b"",
        "kept": b"good content",
        "moved/1": b"good content",
        "torn/2": b"good content",
        "empty_step/": b"",
    }
    assert mirror.push().names == []
    assert mirror.pull() == []


def test_what_the_job_has_written_since_stays_and_is_told(bucket: FakePrefix, mirror: Mirror):
    for name in ("changed", "deleted", "new"):
        bucket.put(name, b"old")
    bucket.delete("new")
    mirror.pull()
    (mirror.directory / "changed").write_bytes(b"damage")
    (mirror.directory / "deleted").unlink()
    (mirror.directory / "new").write_bytes(b"damage")
    for name in ("changed", "deleted", "new"):
        bucket.put(name, b"the job's")

    pushed = mirror.push()

    assert pushed.names == []
    assert sorted(lost.split(":")[0] for lost in pushed.lost) == ["changed", "deleted", "new"]
    assert set(objects(bucket).values()) == {b"the job's"}
    mirror.pull()
    assert set(content(mirror).values()) == {b"the job's"}


def test_what_is_only_here_is_not_taken_for_what_the_bucket_holds(bucket: FakePrefix, mirror: Mirror):
    bucket.put("a", b"1")
    mirror.pull()
    (mirror.directory / "stray").write_bytes(b"?")
    mirror.pull()

    assert content(mirror) == {"a": b"1"}
