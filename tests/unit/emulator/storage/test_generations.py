"""Generations from files: monotone, and none for what did not change."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.clock import ManualClock
from harness.emulator.failures import ApiError
from harness.emulator.storage.generations import FileIdentity, is_settled, next_generation
from harness.emulator.storage.objects import BucketObjects
from harness.emulator.storage.preconditions import Preconditions
from harness.emulator.storage.records import ObjectMetadata

TICK_NS = 4_000_000


@given(st.lists(st.integers(min_value=0, max_value=2**53), min_size=1))
def test_generations_of_a_name_only_rise_however_the_clock_goes(moments):
    generations = []
    for moment_us in moments:
        generations.append(next_generation(generations[-1] if generations else 0, moment_us))

    assert generations == sorted(set(generations))
    assert generations[0] >= 1


@pytest.mark.parametrize(("change_ns", "settled"), [(TICK_NS - 1, True), (TICK_NS, False), (TICK_NS + 1, False)])
def test_what_changed_within_the_tick_of_the_look_is_not_settled(change_ns, settled):
    identity = FileIdentity(device=1, inode=1, size=1, change_ns=change_ns)

    assert is_settled(identity, TICK_NS) is settled


@pytest.fixture
def objects(tmp_path):
    return BucketObjects("bucket", tmp_path, ManualClock())


def write(objects, name, content, **metadata):
    with objects.staging.stage([content]) as staged:
        return objects.write(name, staged, ObjectMetadata(**metadata))


def test_a_look_changes_no_generation(objects):
    written = write(objects, "a", b"1", content_type="text/plain")
    looks = [objects.get("a") for _ in range(5)]

    assert {look.generation for look in looks} == {written.generation}
    assert looks[-1].metadata.content_type == "text/plain"


def test_two_contents_of_one_size_within_one_tick_are_two_generations(objects, monkeypatch):
    """The file system is made to have one tick for ever: identities cannot tell the two apart."""
    path = objects.directory / "a"
    real = os.fstat

    def frozen(descriptor):
        status = real(descriptor)
        return SimpleNamespace(
            st_dev=status.st_dev, st_ino=status.st_ino, st_size=status.st_size, st_mode=status.st_mode, st_ctime_ns=5, st_mtime_ns=5
        )

    monkeypatch.setattr("harness.emulator.storage.versions.os.fstat", frozen)
    monkeypatch.setattr(objects.staging, "tick_ns", lambda: 5)
    path.write_text("1")
    first = objects.get("a")
    path.write_text("2")
    second = objects.get("a")

    assert second.generation > first.generation
    assert second.crc32c != first.crc32c


def test_a_settled_file_is_not_read_again(objects, monkeypatch):
    (objects.directory / "a").write_text("1")
    tick_ns = objects.staging.tick_ns
    monkeypatch.setattr(objects.staging, "tick_ns", lambda: tick_ns() + 10**9)
    first = objects.get("a")
    monkeypatch.setattr("harness.emulator.storage.versions.sum_up", None)  # would fail if it were called

    assert objects.get("a") == first


def test_a_name_that_is_deleted_and_written_again_goes_on_rising(objects):
    first = write(objects, "a", b"1")
    objects.delete("a")
    with pytest.raises(ApiError, match="No such object"):
        objects.get("a", first.generation)
    second = write(objects, "a", b"1")
    (objects.directory / "a").unlink()
    third = write(objects, "a", b"1")

    assert first.generation < second.generation < third.generation


def test_a_change_of_metadata_keeps_the_generation(objects):
    first = write(objects, "a", b"1")
    changed = objects.patch("a", lambda _: ObjectMetadata(content_type="text/plain"))

    assert (changed.generation, changed.metageneration) == (first.generation, 2)
    assert objects.get("a") == changed


def test_of_many_writers_that_want_no_version_to_be_there_one_wins(objects):
    interval_s = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for number in range(20):
            outcomes = _race(lambda name=f"lock-{number}": write_if_absent(objects, name))
            assert sorted(outcomes) == [200] + [412] * 7
    finally:
        sys.setswitchinterval(interval_s)


def write_if_absent(objects, name):
    try:
        with objects.staging.stage([b"x"]) as staged:
            objects.write(name, staged, ObjectMetadata(), conditions=Preconditions(generation_match=0))
    except ApiError as error:
        return error.http_status
    return 200


def _race(act):
    barrier = threading.Barrier(8)

    def run(_):
        barrier.wait()
        return act()

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(run, range(8)))


def test_a_reader_keeps_the_content_that_it_has_opened(objects):
    write(objects, "a", b"old")
    with objects.read("a") as (record, descriptor):
        write(objects, "a", b"new")
        assert os.pread(descriptor, 10, 0) == b"old"
    assert objects.get("a").generation > record.generation
