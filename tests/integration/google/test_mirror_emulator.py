"""Checkpoints in a bucket of the emulator, as a job, a mount and the mirror see them."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import storage

from harness.clock import SystemClock
from harness.emulator import Emulator, InjectedFault
from harness.emulator.failures import unavailable
from harness.targets.gcp import bucket
from harness.targets.gcp.bucket import BucketPrefix, ObjectSeen
from harness.targets.gcp.calling import Caller
from harness.targets.gcp.failures import ServiceFailureError
from harness.targets.gcp.mirror import Mirror
from harness.targets.gcp.secrets import Secrets

BELOW = "harness/run/checkpoints"


@pytest.fixture
def emulator(tmp_path: Path) -> Iterator[Emulator]:
    with Emulator(tmp_path / "emulator", projects=("my-project",), buckets=("my-bucket",)) as running:
        yield running


@pytest.fixture
def mount(emulator: Emulator) -> Path:
    """Where the job writes."""
    return emulator.buckets.mount("my-bucket", BELOW)


@pytest.fixture
def mirror(emulator: Emulator, tmp_path: Path) -> Iterator[Mirror]:
    options = {"api_endpoint": f"http://{emulator.endpoints.http}"}
    with storage.Client("my-project", credentials=AnonymousCredentials(), client_options=options) as client:
        caller = Caller(clock=SystemClock(), secrets=Secrets(), renew=lambda: None)
        yield Mirror(BucketPrefix(client, caller, bucket="my-bucket", prefix=f"{BELOW}/"), tmp_path / "checkpoints")


def save(directory: Path, step: str) -> None:
    (directory / step / "state").mkdir(parents=True)
    (directory / step / "state/shard").write_text(step)


def paths(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*"))


def test_a_step_that_a_fault_removes_is_gone_for_the_job_with_its_directories(mirror: Mirror, mount: Path):
    for step in ("5", "10"):
        save(mount, step)
    mirror.pull()
    assert paths(mirror.directory) == paths(mount) == ["10", "10/state", "10/state/shard", "5", "5/state", "5/state/shard"]
    shutil.rmtree(mirror.directory / "5")

    pushed = mirror.push()

    assert pushed.lost == []
    assert paths(mirror.directory) == paths(mount) == ["10", "10/state", "10/state/shard"]
    assert (mirror.push().names, mirror.pull()) == ([], [])


def test_a_step_that_is_emptied_and_one_that_is_renamed_look_the_same_to_the_job(mirror: Mirror, mount: Path):
    for step in ("5", "10"):
        save(mount, step)
    mirror.pull()
    (mirror.directory / "5/state/shard").unlink()
    (mirror.directory / "10").rename(mirror.directory / "10.partial")

    assert mirror.push().lost == []

    assert paths(mirror.directory) == paths(mount) == ["10.partial", "10.partial/state", "10.partial/state/shard", "5", "5/state"]
    mirror.pull()
    assert paths(mirror.directory) == paths(mount)


def test_a_step_that_the_job_saves_anew_meanwhile_is_the_jobs(mirror: Mirror, mount: Path):
    save(mount, "5")
    mirror.pull()
    shutil.rmtree(mirror.directory / "5")
    shutil.rmtree(mount / "5")
    save(mount, "5")

    pushed = mirror.push()

    assert "5/state/shard" in [lost.partition(":")[0] for lost in pushed.lost]
    mirror.pull()
    assert paths(mirror.directory) == paths(mount) == ["5", "5/state", "5/state/shard"]


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> int:
    """So that a small object has several: an upload goes by a quarter of a MiB, or more of them."""
    monkeypatch.setattr(bucket, "CHUNK_BYTES", 256 << 10)
    return 256 << 10


LARGE = b"0123456789abcdef" * (1 << 16)
"""A MiB."""


def test_a_large_checkpoint_comes_chunk_by_chunk_and_goes_so(mirror: Mirror, mount: Path, emulator: Emulator, small_chunks: int):
    (mount / "large").write_bytes(LARGE)
    (mount / "empty").write_bytes(b"")
    mirror.pull()
    reads = [call for call in emulator.world.calls.all() if call.method == "storage.objects.get"]

    assert (mirror.directory / "large").read_bytes() == LARGE
    assert (mirror.directory / "empty").read_bytes() == b""
    assert len(reads) == 1 + len(LARGE) // small_chunks

    (mirror.directory / "large").write_bytes(LARGE[::-1])
    assert mirror.push().names == ["large"]
    assert (mount / "large").read_bytes() == LARGE[::-1]
    assert mirror.pull() == []


def test_an_object_that_the_job_writes_anew_between_two_chunks_is_never_half_of_each(mirror: Mirror, mount: Path, small_chunks: int):
    (mount / "large").write_bytes(LARGE)
    chunks = 0

    def write_anew() -> None:
        nonlocal chunks
        chunks += 1
        if chunks == 2:
            (mount / "large").write_bytes(LARGE[::-1])

    mirror._beat = write_anew

    assert mirror.pull() == []
    assert not (mirror.directory / "large").exists()
    assert mirror.pull() == ["large"]
    assert (mirror.directory / "large").read_bytes() == LARGE[::-1]


DISTURBED = {
    "a chunk cut short": {"is_partial": True},
    "a dropped connection": {"drop": "after"},
    "a connection that is not answered": {"drop": "before"},
    "a service that is away": {"error": unavailable()},
}


@pytest.mark.parametrize("disturbed", DISTURBED)
def test_a_download_that_is_disturbed_is_whole_in_the_end(
    mirror: Mirror, mount: Path, emulator: Emulator, small_chunks: int, disturbed: str
):
    (mount / "large").write_bytes(LARGE)
    emulator.world.injections.add(InjectedFault(method="storage.objects.get", nth=2, **DISTURBED[disturbed]))

    assert mirror.pull() == ["large"]
    assert (mirror.directory / "large").read_bytes() == LARGE


def test_a_slow_download_lets_others_look_between_its_chunks(mirror: Mirror, mount: Path, emulator: Emulator, small_chunks: int):
    (mount / "large").write_bytes(LARGE)
    beats: list[int] = []
    mirror._beat = lambda: beats.append(len(emulator.world.calls.all()))
    mirror.pull()

    assert len(beats) == len(set(beats)) == len(LARGE) // small_chunks


def test_content_that_is_not_what_its_checksum_says_is_refused_and_never_seen(mirror: Mirror, mount: Path, monkeypatch: pytest.MonkeyPatch):
    (mount / "large").write_bytes(LARGE)
    chunks = mirror._prefix._chunks
    reads: list[str] = []

    def damaged(seen: ObjectSeen) -> Iterator[bytes]:
        reads.append(seen.name)
        yield from (chunk[::-1] for chunk in chunks(seen))

    monkeypatch.setattr(mirror._prefix, "_chunks", damaged)
    with pytest.raises(ServiceFailureError, match="another checksum"):
        mirror.pull()

    assert len(reads) == bucket.READS_MAX
    assert not (mirror.directory / "large").exists()


@pytest.mark.parametrize("loss", ["before", "after"])
def test_damage_whose_answer_is_lost_is_written_once(mirror: Mirror, mount: Path, emulator: Emulator, loss: str):
    (mount / "large").write_bytes(LARGE)
    mirror.pull()
    (mirror.directory / "large").write_bytes(LARGE[::-1])
    emulator.world.injections.add(InjectedFault(method="storage.objects.insert", nth=1, drop=loss))

    assert mirror.push().lost == []
    assert (mount / "large").read_bytes() == LARGE[::-1]
    assert mirror.pull() == []
