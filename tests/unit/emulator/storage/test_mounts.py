"""Directories below a mount, as gcsfuse makes them in a flat bucket, and elsewhere."""

import shutil

import pytest

from harness.clock import ManualClock
from harness.emulator.failures import ApiError
from harness.emulator.storage.buckets import BucketSettings, StoredBuckets, Switch
from harness.emulator.storage.listing import ListQuery
from harness.emulator.storage.records import ObjectMetadata


@pytest.fixture
def buckets(tmp_path):
    made = StoredBuckets(tmp_path, ManualClock())
    made.create("flat", project="p", project_number=1, settings=BucketSettings())
    made.create("deep", project="p", project_number=1, settings=BucketSettings(hierarchical_namespace=Switch(enabled=True)))
    return made


@pytest.fixture
def objects(buckets):
    return buckets.objects("flat")


@pytest.fixture
def mount(buckets):
    return buckets.mount("flat", "harness/run/checkpoints")


def upload(objects, name, content=b"x"):
    with objects.staging.stage([content]) as staged:
        return objects.write(name, staged, ObjectMetadata())


def names(objects, prefix=""):
    return [record.name for record in objects.page(ListQuery(prefix=prefix))[0]]


STEP = "harness/run/checkpoints/5/"


def test_neither_the_root_of_a_mount_nor_what_is_above_it_is_an_object(objects, mount):
    assert mount == objects.directory / "harness/run/checkpoints"
    assert names(objects) == []


def test_a_directory_that_a_job_makes_is_an_empty_object(objects, mount):
    (mount / "5").mkdir()
    (mount / "5/state").write_text("x")

    assert names(objects) == names(objects, STEP) == [STEP, f"{STEP}state"]
    first = objects.get(STEP)
    assert (first.size, objects.get(STEP)) == (0, first)
    shutil.rmtree(mount / "5")
    assert names(objects) == []


def test_a_directory_that_only_leads_to_a_caller_s_object_is_none_and_goes_with_it(objects, mount):
    upload(objects, f"{STEP}a/state")

    assert names(objects) == [f"{STEP}a/state"]
    objects.delete(f"{STEP}a/state")
    assert not (mount / "5").exists()
    assert mount.exists()


def test_a_job_s_directory_goes_only_with_its_own_object(objects, mount):
    (mount / "5").mkdir()
    (mount / "5/state").write_text("x")

    objects.delete(f"{STEP}state")
    assert (mount / "5").is_dir()
    objects.delete(STEP)
    assert not (mount / "5").exists()
    assert mount.exists()


def test_all_objects_of_a_directory_can_be_deleted_in_any_order(objects, mount):
    (mount / "5").mkdir()
    (mount / "5/state").write_text("x")

    objects.delete(STEP)
    assert names(objects) == [f"{STEP}state"]
    assert (mount / "5/state").exists()
    objects.delete(f"{STEP}state")
    assert not (mount / "5").exists()


def test_outside_of_mounts_and_in_a_hierarchical_namespace_directories_are_folders(buckets):
    deep = buckets.objects("deep")
    mount = buckets.mount("deep")
    (mount / "job").mkdir()
    upload(deep, "5/state")
    deep.delete("5/state")

    assert names(deep) == []
    assert (mount / "5").is_dir()
    flat = buckets.objects("flat")
    (flat.directory / "job").mkdir()
    assert names(flat) == []


def test_what_a_restart_finds_is_as_it_was(buckets, tmp_path, objects, mount):
    (mount / "5").mkdir()
    upload(objects, "harness/run/checkpoints/6/state")
    before = [(record.name, record.generation) for record in objects.page(ListQuery())[0]]

    again = StoredBuckets(tmp_path, ManualClock())
    again.mount("flat", "harness/run/checkpoints")

    assert [(record.name, record.generation) for record in again.objects("flat").page(ListQuery())[0]] == before
    assert [name for name, _ in before] == [STEP, "harness/run/checkpoints/6/state"]


@pytest.mark.parametrize("below", ["../other", "a/../../b", "a//b", "a\0b"])
def test_a_prefix_that_leads_out_is_refused(buckets, below):
    with pytest.raises(ApiError, match="cannot keep"):
        buckets.mount("flat", below)
