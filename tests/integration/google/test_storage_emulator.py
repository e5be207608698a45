"""The emulator's Cloud Storage, spoken with the unmodified client of Google."""

import errno
import http.client
import io
import os
import signal
import subprocess
import sys
import textwrap

import pytest
from google.api_core import exceptions
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage
from google.cloud.storage.exceptions import InvalidResponse

from harness.clock import SystemClock
from harness.emulator import ApiError, InjectedFault
from harness.emulator.operations import Operations
from harness.emulator.project import Projects, ProjectState
from harness.emulator.storage.buckets import BucketSettings, StoredBuckets
from harness.emulator.storage.listing import ListQuery
from harness.emulator.storage.service import StorageService
from harness.emulator.wire.servers import Servers
from harness.emulator.world import World
from harness.errors import StoreError

PROJECT = "storage-project"
MEBIBYTE = 1 << 20


class NoLog:
    def append(self, entries):
        raise AssertionError("storage writes no log entries")


@pytest.fixture
def state():
    return ProjectState(name=PROJECT, number=77)


@pytest.fixture
def world(tmp_path, state):
    clock = SystemClock()
    return World(
        clock=clock,
        root=tmp_path,
        projects=Projects([state]),
        log=NoLog(),
        buckets=StoredBuckets(tmp_path / "buckets", clock),
        operations=Operations(clock),
    )


@pytest.fixture
def emulator(world):
    with Servers(world, [StorageService(world, world.buckets)]) as running:
        yield running


@pytest.fixture
def client(emulator):
    endpoint = f"http://{emulator.endpoints.http}"
    with storage.Client(project=PROJECT, credentials=AnonymousCredentials(), client_options={"api_endpoint": endpoint}) as made:
        yield made


@pytest.fixture
def bucket(client):
    return client.create_bucket("checkpoints", location="us-central1")


@pytest.fixture
def mount(world, bucket):
    return world.buckets.directory(bucket.name)


def names(client, bucket, **query):
    return [blob.name for blob in client.list_blobs(bucket, **query)]


def test_a_bucket_is_made_listed_changed_and_removed(client):
    made = client.create_bucket("one", location="us-central1")
    client.create_bucket("two")

    assert made.exists()
    assert (made.location, made.storage_class, made.project_number) == ("US-CENTRAL1", "STANDARD", 77)
    assert [found.name for found in client.list_buckets(page_size=1)] == ["one", "two"]

    made.labels = {"harness-chaos": "allowed"}
    made.patch()
    again = client.get_bucket("one")
    assert (again.labels, again.metageneration) == ({"harness-chaos": "allowed"}, 2)

    made.delete()
    assert client.lookup_bucket("one") is None


def test_a_bucket_is_made_once_and_removed_only_empty(client, bucket):
    with pytest.raises(exceptions.Conflict, match="you already own it"):
        client.create_bucket(bucket.name)
    bucket.blob("a").upload_from_string("1")
    with pytest.raises(exceptions.Conflict, match="not empty"):
        bucket.delete()
    with pytest.raises(exceptions.NotFound, match=r"The specified bucket does not exist\."):
        client.get_bucket("nowhere")
    with pytest.raises(exceptions.BadRequest, match="Invalid bucket name"):
        client.create_bucket("Not_A-Name", location="US")


def test_an_unknown_project_is_not_told_from_one_without_permission(client):
    with pytest.raises(exceptions.Forbidden, match=r"Permission 'storage\.buckets\.create' denied"):
        client.create_bucket("one", project="another")


def test_permissions_are_told_and_missing_ones_refuse_the_call(client, bucket, state):
    state.granted = frozenset({"storage.buckets.get", "storage.objects.get", "storage.objects.list"})

    held = bucket.test_iam_permissions(["storage.objects.get", "storage.objects.create"])

    assert held == ["storage.objects.get"]
    with pytest.raises(exceptions.Forbidden, match=r"storage\.objects\.create"):
        bucket.blob("a").upload_from_string("1")


def test_what_is_uploaded_at_once_is_a_file_and_comes_back(bucket, mount):
    blob = bucket.blob("run/0/checkpoint.txt")
    blob.metadata = {"step": "5"}
    blob.upload_from_string("5", content_type="text/plain")

    assert (mount / "run/0/checkpoint.txt").read_text() == "5"
    found = bucket.get_blob("run/0/checkpoint.txt")
    assert (found.size, found.content_type, found.metadata, found.metageneration) == (1, "text/plain", {"step": "5"}, 1)
    assert (found.md5_hash, found.crc32c) == ("5No7f7vOI0XXdysGdKMY1Q==", blob.crc32c)
    assert found.updated.utcoffset().total_seconds() == 0
    assert found.download_as_bytes() == b"5"
    assert bucket.get_blob("run/0/checkpoint.txt", generation=found.generation).etag == found.etag


def test_what_a_process_writes_below_the_mount_is_an_object_and_each_rewrite_a_new_generation(client, bucket, mount):
    path = mount / "train-task-0-checkpoint.txt"
    path.write_text("5")
    first = bucket.get_blob(path.name)
    temporary = path.with_name("x.tmp")
    temporary.write_text("9")
    temporary.rename(path)
    second = bucket.get_blob(path.name)
    path.write_text("8")  # in place, within the same tick of the file system or not
    third = bucket.get_blob(path.name)

    assert first.generation < second.generation < third.generation
    assert [second.size, third.download_as_bytes(), third.content_type] == [1, b"8", "application/octet-stream"]
    assert bucket.get_blob(path.name).generation == third.generation
    path.unlink()
    assert bucket.get_blob(path.name) is None
    assert names(client, bucket) == []
    bucket.blob(path.name).upload_from_string("10")
    assert bucket.get_blob(path.name).generation > third.generation


def test_a_rewrite_by_a_process_forgets_what_a_caller_had_set(bucket, mount):
    blob = bucket.blob("a")
    blob.metadata = {"owner": "caller"}
    blob.upload_from_string("1", content_type="text/plain")
    (mount / "a").write_text("2")

    found = bucket.get_blob("a")
    assert (found.metadata, found.content_type, found.metageneration) == (None, "application/octet-stream", 1)


def test_a_lock_object_is_made_by_one_only(bucket):
    bucket.blob("lock").upload_from_string("me", if_generation_match=0)
    with pytest.raises(exceptions.PreconditionFailed, match="At least one of the pre-conditions you specified did not hold"):
        bucket.blob("lock").upload_from_string("you", if_generation_match=0)
    held = bucket.get_blob("lock")
    assert held.download_as_bytes() == b"me"

    with pytest.raises(exceptions.PreconditionFailed):
        held.delete(if_generation_match=held.generation + 1)
    held.delete(if_generation_match=held.generation)
    with pytest.raises(exceptions.NotFound, match="No such object: checkpoints/lock"):
        held.delete(if_generation_match=held.generation)


def test_of_many_that_want_a_lock_at_once_one_gets_it(client, bucket):
    from concurrent.futures import ThreadPoolExecutor

    def take(number):
        try:
            bucket.blob("lock").upload_from_string(str(number), if_generation_match=0)
        except exceptions.PreconditionFailed:
            return None
        return number

    with ThreadPoolExecutor(8) as pool:
        winners = [number for number in pool.map(take, range(16)) if number is not None]

    assert len(winners) == 1
    assert bucket.blob("lock").download_as_bytes() == str(winners[0]).encode()


def test_conditions_on_reads_and_metadata_are_answered_as_google_does(bucket):
    blob = bucket.blob("a")
    blob.upload_from_string("1")
    blob.metadata = {"k": "v"}
    blob.patch(if_metageneration_match=1)

    assert blob.metageneration == 2
    with pytest.raises(exceptions.PreconditionFailed):
        blob.patch(if_metageneration_match=1)
    with pytest.raises(exceptions.NotModified):
        blob.reload(if_generation_not_match=blob.generation)
    with pytest.raises(exceptions.NotModified):
        blob.reload(if_metageneration_not_match=2)
    with pytest.raises(exceptions.PreconditionFailed):
        blob.download_as_bytes(if_generation_match=blob.generation + 1)
    with pytest.raises(exceptions.PreconditionFailed):
        blob.upload_from_string("2", if_generation_not_match=blob.generation)
    assert bucket.get_blob("a", generation=blob.generation + 1) is None
    blob.metadata = None
    blob.update()
    assert bucket.get_blob("a").metadata is None


def test_a_list_has_prefixes_offsets_and_pages(client, bucket, mount):
    for name in ("a", "run/1/x", "run/1/y", "run/2/x", "run/3", "z"):
        bucket.blob(name).upload_from_string(name)
    (mount / "run/4").mkdir()

    assert names(client, bucket) == ["a", "run/1/x", "run/1/y", "run/2/x", "run/3", "z"]
    assert names(client, bucket, page_size=2) == ["a", "run/1/x", "run/1/y", "run/2/x", "run/3", "z"]
    assert names(client, bucket, prefix="run/1/") == ["run/1/x", "run/1/y"]
    assert names(client, bucket, start_offset="run/1/y", end_offset="run/3") == ["run/1/y", "run/2/x"]
    found = client.list_blobs(bucket, prefix="run/", delimiter="/", page_size=1)
    assert [blob.name for blob in found] == ["run/3"]
    assert found.prefixes == {"run/1/", "run/2/"}
    with pytest.raises(exceptions.MethodNotImplemented, match="matchGlob"):
        names(client, bucket, match_glob="**")


def test_a_folder_placeholder_is_a_directory(client, bucket, mount):
    bucket.blob("folder/").upload_from_string(b"")

    assert (mount / "folder").is_dir()
    assert names(client, bucket) == ["folder/"]
    bucket.blob("folder/").delete()
    assert names(client, bucket) == []
    assert not (mount / "folder").exists()


def test_ranges_and_large_contents_come_back_exactly(bucket, tmp_path):
    content = os.urandom(9 * MEBIBYTE + 17)
    blob = bucket.blob("big")
    blob.upload_from_file(io.BytesIO(content), size=len(content), rewind=True)

    assert blob.download_as_bytes() == content
    assert blob.download_as_bytes(start=5, end=9) == content[5:10]
    assert blob.download_as_bytes(start=len(content) - 3) == content[-3:]
    with pytest.raises(exceptions.RequestRangeNotSatisfiable):
        blob.download_as_bytes(start=len(content))
    chunked = bucket.blob("big", chunk_size=4 * MEBIBYTE)
    chunked.download_to_filename(str(tmp_path / "big"))
    assert (tmp_path / "big").read_bytes() == content


def test_a_resumable_upload_goes_piece_by_piece_and_shows_nothing_before_its_end(client, bucket):
    content = os.urandom(MEBIBYTE + 5)
    blob = bucket.blob("pieces", chunk_size=MEBIBYTE // 4)
    with blob.open("wb", content_type="text/plain") as file:
        file.write(content)
        assert names(client, bucket) == []

    assert blob.download_as_bytes() == content
    bucket.blob("empty", chunk_size=MEBIBYTE // 4).upload_from_file(io.BytesIO(b""))
    assert bucket.blob("empty").download_as_bytes() == b""


def test_a_resumable_upload_goes_on_where_a_dropped_connection_left_it(world, bucket):
    content = os.urandom(MEBIBYTE)
    world.injections.add(InjectedFault(method="storage.objects.insert", nth=3, drop="after"))
    world.injections.add(
        InjectedFault(method="storage.objects.insert", nth=5, error=ApiError("UNAVAILABLE", "backend error", reason="backendError"))
    )
    blob = bucket.blob("pieces", chunk_size=MEBIBYTE // 4)
    blob.upload_from_file(io.BytesIO(content), size=len(content), if_generation_match=0)

    assert blob.download_as_bytes() == content


def test_a_resumable_upload_meets_its_conditions_at_its_end_too(bucket):
    blob = bucket.blob("pieces", chunk_size=MEBIBYTE // 4)
    writer = blob.open("wb", if_generation_match=0)
    writer.write(b"x" * MEBIBYTE)
    bucket.blob("pieces").upload_from_string("another was first")
    with pytest.raises(InvalidResponse, match="412"):  # the client's own way to tell it here
        writer.close()
    assert bucket.blob("pieces").download_as_bytes() == b"another was first"


def test_copies_rewrites_and_compositions(bucket):
    first = bucket.blob("first")
    first.metadata = {"k": "v"}
    first.upload_from_string("12", content_type="text/plain")
    bucket.blob("second").upload_from_string("34")

    copied = bucket.copy_blob(first, bucket, "copied", if_source_generation_match=first.generation)
    assert (copied.download_as_bytes(), copied.metadata) == (b"12", {"k": "v"})
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.copy_blob(first, bucket, "copied", if_source_generation_match=first.generation + 1)
    with pytest.raises(exceptions.PreconditionFailed):
        bucket.copy_blob(first, bucket, "copied", if_generation_match=0)
    rewritten = bucket.blob("rewritten")
    assert rewritten.rewrite(first) == (None, 2, 2)
    composed = bucket.blob("composed")
    composed.compose([first, bucket.blob("second"), first])
    assert (composed.download_as_bytes(), composed.component_count, composed.md5_hash) == (b"123412", 3, None)


@pytest.mark.parametrize(
    "name", ["../escaped", "a/../../escaped", "/absolute", "a//b", "a/./b", "nul\0in", ".", "..", "x\ny", "a" * 1025, "a" * 300]
)
def test_a_name_that_no_file_can_have_is_refused_and_nothing_is_written(bucket, tmp_path, name):
    bucket.blob("good").upload_from_string("x")
    assert bucket.get_blob("good")
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(exceptions.BadRequest, match=r"Invalid object name|the emulator keeps objects as files"):
        bucket.blob(name).upload_from_string("x")
    with pytest.raises((exceptions.BadRequest, exceptions.NotFound)):
        bucket.blob(name).download_as_bytes()
    assert sorted(tmp_path.rglob("*")) == before


def test_an_object_below_an_object_is_refused_with_the_reason(bucket):
    bucket.blob("a").upload_from_string("1")
    bucket.blob("d/e").upload_from_string("1")
    with pytest.raises(exceptions.BadRequest, match="one of its folders is an object"):
        bucket.blob("a/b").upload_from_string("2")
    with pytest.raises(exceptions.BadRequest, match="it is a directory already"):
        bucket.blob("d").upload_from_string("2")


def test_no_link_that_a_job_leaves_leads_out_of_the_bucket(client, bucket, mount, tmp_path):
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/secret").write_text("secret")
    (mount / "link").symlink_to(tmp_path / "outside")
    (mount / "file").symlink_to(tmp_path / "outside/secret")

    assert names(client, bucket) == []
    assert bucket.get_blob("link/secret") is None
    assert bucket.get_blob("file") is None
    with pytest.raises(exceptions.BadRequest, match="a link"):
        bucket.blob("link/secret").upload_from_string("overwritten")
    bucket.blob("file").upload_from_string("mine")
    assert (tmp_path / "outside/secret").read_text() == "secret"


def test_damaged_content_is_refused(bucket):
    blob = bucket.blob("a")
    blob.md5_hash = "AAAAAAAAAAAAAAAAAAAAAA=="
    with pytest.raises(exceptions.BadRequest, match="doesn't match calculated MD5"):
        blob.upload_from_string("x")
    assert bucket.get_blob("a") is None


def test_buckets_objects_and_generations_survive_the_emulator(tmp_path, bucket):
    blob = bucket.blob("a")
    blob.metadata = {"k": "v"}
    blob.upload_from_string("1")
    generation = blob.generation

    again = StoredBuckets(tmp_path / "buckets", SystemClock()).objects(bucket.name)

    record = again.get("a")
    assert (record.generation, record.metadata.metadata) == (generation, {"k": "v"})


REWRITER = """
    import os, sys
    for version in range(300):
        with open("x.tmp", "w") as file:
            file.write(f"{version} " * 1000)
        os.rename("x.tmp", "checkpoint")
"""


def test_a_generation_has_one_content_while_a_process_rewrites_the_object(bucket, mount):
    (mount / "checkpoint").write_text("first " * 1000)
    first = bucket.get_blob("checkpoint")
    seen = {first.generation: first.download_as_bytes().decode()}
    with subprocess.Popen([sys.executable, "-c", textwrap.dedent(REWRITER)], cwd=mount) as process:
        while process.poll() is None:
            found = bucket.get_blob("checkpoint")
            try:
                content = found.download_as_bytes().decode()
            except exceptions.NotFound:
                continue  # of this generation: it was rewritten between the two calls
            assert len(set(content.split())) == 1
            assert seen.setdefault(found.generation, content) == content
    last = bucket.get_blob("checkpoint")

    assert process.returncode == 0
    assert last.download_as_bytes().startswith(b"299 ")
    assert last.generation >= max(seen)
    versions = [content.split()[0] for _, content in sorted(seen.items())]
    assert versions == sorted(versions, key=lambda version: -1 if version == "first" else int(version))


def test_a_full_disk_is_an_answer_and_leaves_nothing(bucket, mount, monkeypatch):
    def fail(self, pieces):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("harness.emulator.storage.staging.Staging.stage", fail)
    with pytest.raises(exceptions.InternalServerError, match="No space left on device"):
        bucket.blob("a").upload_from_string("x", retry=None)
    assert list(mount.iterdir()) == []


def test_a_document_that_is_none_of_ours_is_named(tmp_path, bucket):
    document = tmp_path / "buckets" / bucket.name / "bucket.json"
    document.write_text("{")
    with pytest.raises(StoreError, match=str(document)):
        StoredBuckets(tmp_path / "buckets", SystemClock()).get(bucket.name)


KILLED = """
    import os, sys
    from pathlib import Path
    from harness.clock import SystemClock
    from harness.emulator.storage.buckets import BucketSettings, StoredBuckets
    from harness.emulator.storage.records import ObjectMetadata
    from harness.emulator.storage import object_files

    buckets = StoredBuckets(Path(sys.argv[1]), SystemClock())
    buckets.create("killed", project="p", project_number=1, settings=BucketSettings())
    objects = buckets.objects("killed")

    def pieces():
        yield b"x" * 100_000
        if sys.argv[2] == "in the content":
            os.kill(os.getpid(), 9)

    place = object_files.ObjectFiles.place

    def place_and_die(*arguments):
        place(*arguments)
        if sys.argv[2] == "after the rename":
            os.kill(os.getpid(), 9)

    object_files.ObjectFiles.place = place_and_die
    with objects.staging.stage(pieces()) as staged:
        objects.write("a", staged, ObjectMetadata(content_type="text/plain"))
"""


@pytest.mark.parametrize(("moment", "is_there"), [("in the content", False), ("after the rename", True)])
def test_a_killed_upload_is_whole_with_its_metadata_or_not_there(tmp_path, moment, is_there):
    killed = subprocess.run([sys.executable, "-c", textwrap.dedent(KILLED), tmp_path / "b", moment], timeout=60)
    assert killed.returncode == -signal.SIGKILL

    objects = StoredBuckets(tmp_path / "b", SystemClock()).objects("killed")

    record = objects.find("a")
    found = record and (record.size, record.metadata.content_type)
    assert found == ((100_000, "text/plain") if is_there else None)
    assert list((tmp_path / "b/killed/staging").iterdir()) == []


def test_every_call_is_journalled_and_reads_are_no_writes(world, client, bucket):
    before = len(world.calls.writes())
    client.list_buckets().next_page_token  # noqa: B018 - a property
    names(client, bucket)
    bucket.get_blob("a")
    bucket.test_iam_permissions(["storage.objects.get"])

    assert len(world.calls.writes()) == before
    bucket.blob("a").upload_from_string("1")
    assert [call.method for call in world.calls.writes()[before:]] == ["storage.objects.insert"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("retention_period", 100),
        ("default_event_based_hold", True),
        ("lifecycle_rules", [{"action": {"type": "Delete"}, "condition": {"age": 3}}]),
    ],
)
def test_a_setting_that_decides_how_long_objects_are_kept_is_refused_and_not_dropped(bucket, name, value):
    setattr(bucket, name, value)

    with pytest.raises(exceptions.MethodNotImplemented, match="does not cover"):
        bucket.patch()


def test_a_bucket_with_a_lifecycle_is_not_made(client):
    bucket = client.bucket("lifecycle")
    bucket.add_lifecycle_delete_rule(age=3)

    with pytest.raises(exceptions.MethodNotImplemented, match="lifecycle"):
        bucket.create()
    assert not bucket.exists()


# ---- versions --------------------------------------------------------------------------------------------------------


@pytest.fixture
def versioned(bucket):
    bucket.versioning_enabled = True
    bucket.patch()
    return bucket


def versions_of(client, bucket, prefix: str = "") -> list[tuple[str, int, bool]]:
    found = client.list_blobs(bucket.name, prefix=prefix, versions=True)
    return [(blob.name, blob.generation, blob.time_deleted is None) for blob in found]


def test_what_was_written_over_and_deleted_is_kept_by_generation(client, versioned):
    generations = []
    for content in (b"one", b"two"):
        blob = versioned.blob("a")
        blob.upload_from_string(content)
        generations.append(blob.generation)
    first, second = generations
    assert versions_of(client, versioned) == [("a", first, False), ("a", second, True)]
    assert versioned.blob("a", generation=first).download_as_bytes() == b"one"
    versioned.blob("a").delete()
    assert versions_of(client, versioned) == [("a", first, False), ("a", second, False)]
    assert [blob.name for blob in client.list_blobs(versioned.name)] == []
    assert versioned.blob("a", generation=second).download_as_bytes() == b"two"
    assert not versioned.blob("a").exists()


def test_a_version_that_is_named_is_gone_for_good_and_only_that(client, versioned):
    for content in (b"one", b"two"):
        versioned.blob("a").upload_from_string(content)
    (_, first, _), (_, second, _) = versions_of(client, versioned)
    versioned.blob("a", generation=second).delete()  # the live one
    assert versions_of(client, versioned) == [("a", first, False)]
    versioned.blob("a", generation=first).delete()
    assert versions_of(client, versioned) == []
    with pytest.raises(exceptions.NotFound):
        versioned.blob("a", generation=first).delete()
    versioned.delete()


def test_a_bucket_that_keeps_a_version_is_not_empty(versioned):
    versioned.blob("a").upload_from_string(b"x")
    versioned.blob("a").delete()
    with pytest.raises(exceptions.Conflict, match="not empty"):
        versioned.delete()


def test_what_a_process_writes_over_or_removes_is_listed_and_its_content_is_not_there(client, world, versioned):
    versioned.blob("a").upload_from_string(b"one")
    path = world.buckets.directory(versioned.name) / "a"
    path.write_bytes(b"two, by a process")
    (_, first, is_first_live), (_, second, is_second_live) = versions_of(client, versioned)
    assert (is_first_live, is_second_live) == (False, True)
    with pytest.raises(exceptions.MethodNotImplemented, match="a process has written over"):
        versioned.blob("a", generation=first).download_as_bytes()
    path.unlink()
    assert versions_of(client, versioned) == [("a", first, False), ("a", second, False)]


def test_versions_are_there_again_when_the_emulator_is(client, tmp_path, versioned):
    for content in (b"one", b"two"):
        versioned.blob("a").upload_from_string(content)
    again = StoredBuckets(tmp_path / "buckets", SystemClock()).objects(versioned.name)
    (old, deleted), (live, is_live) = again.page_of_versions(ListQuery())[0]
    assert (old.generation < live.generation, bool(deleted), is_live) == (True, True, "")


def test_without_versioning_nothing_is_kept(client, bucket):
    for content in (b"one", b"two"):
        bucket.blob("a").upload_from_string(content)
    assert len(versions_of(client, bucket)) == 1
    bucket.blob("a").delete()
    assert versions_of(client, bucket) == []


def test_soft_deletion_may_be_off_and_nothing_else(bucket):
    bucket.soft_delete_policy.retention_duration_seconds = 0
    bucket.patch()
    bucket.soft_delete_policy.retention_duration_seconds = 604_800

    with pytest.raises(exceptions.MethodNotImplemented, match="softDeletePolicy"):
        bucket.patch()


@pytest.mark.parametrize("name", ["temporary_hold", "event_based_hold"])
def test_an_object_is_not_held_and_says_so(bucket, name):
    blob = bucket.blob("a")
    blob.upload_from_string(b"x")
    setattr(blob, name, True)

    with pytest.raises(exceptions.MethodNotImplemented, match="of objects"):
        blob.patch()
    setattr(blob, name, False)
    blob.patch()


@pytest.mark.parametrize("name", ["temporaryHold", "eventBasedHold"])
def test_an_upload_under_a_hold_is_refused(emulator, bucket, name):
    body = f'--x\r\nContent-Type: application/json\r\n\r\n{{"name": "held", "{name}": true}}\r\n--x\r\n\r\nx\r\n--x--'
    connection = http.client.HTTPConnection(emulator.endpoints.http, timeout=60)
    path = f"/upload/storage/v1/b/{bucket.name}/o?uploadType=multipart"
    connection.request("POST", path, body=body.encode(), headers={"Content-Type": "multipart/related; boundary=x"})

    assert b"does not cover" in connection.getresponse().read()
    connection.close()
    assert not bucket.blob("held").exists()


def test_objects_that_were_deleted_softly_are_asked_for_in_vain(client, bucket):
    bucket.blob("a").upload_from_string(b"x")

    with pytest.raises(exceptions.MethodNotImplemented, match="deleted softly"):
        list(client.list_blobs(bucket, soft_deleted=True))


def test_the_name_of_a_bucket_of_another_project_is_taken(world, client):
    world.buckets.create("theirs", project="another", project_number=78, settings=BucketSettings())

    with pytest.raises(exceptions.Conflict, match="shared by all users"):
        client.create_bucket("theirs")
