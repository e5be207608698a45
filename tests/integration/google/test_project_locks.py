"""One harness on a project, whatever bucket, region or cluster each works with: by Google's own clients on the emulator."""

import dataclasses
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.cli.commands import run_app
from harness.clock import SystemClock
from harness.emulator import Emulator, InjectedFault
from harness.emulator.project import ProjectState
from harness.targets.gcp.calling import Caller
from harness.targets.gcp.connection import Clients, connect
from harness.targets.gcp.lock_holders import LockedError
from harness.targets.gcp.lock_places import ForeignLockError, UnseenLocksError
from harness.targets.gcp.place import Place
from harness.targets.gcp.plan import Permission
from harness.targets.gcp.project_holding import lock_of
from harness.targets.gcp.project_lock import RENEW_EVERY_S
from harness.targets.gcp.resolving import Resolved, Resolver
from harness.targets.gcp.secrets import Secrets
from tests.integration.google.conftest import Emulate

PROJECT = "our-project"
ONE = Place(project=PROJECT, region="europe-west4", bucket="bucket-one", job="train")
TWO = replace(ONE, bucket="bucket-two", region="us-central1")
CLUSTER = replace(ONE, bucket="bucket-two", job="", cluster="tpu", zone="us-east5-b")
ALLOWED = {"harness-chaos": "allowed"}


@pytest.fixture
def state() -> ProjectState:
    return ProjectState(name=PROJECT, number=123456789012)


@pytest.fixture
def emulator(emulate: Emulate, state: ProjectState) -> Emulator:
    return emulate(projects=[state, "their-project"])


@pytest.fixture
def clients(emulator: Emulator) -> Iterator[Clients]:
    with closing(connect(PROJECT, emulator.endpoints.environment(), Secrets())) as found:
        for name in ("bucket-one", "bucket-two", "bucket-of-locks"):
            make_bucket(found, name, ALLOWED)
        yield found


def make_bucket(clients: Clients, name: str, labels: dict[str, str], project: str = PROJECT) -> None:
    bucket = clients.storage.bucket(name)
    bucket.labels = labels
    clients.storage.create_bucket(bucket, project=project)


def forbid_listing(state: ProjectState) -> None:
    state.granted = frozenset(
        ("run.jobs.get", "storage.buckets.get", *(f"storage.objects.{verb}" for verb in ("create", "delete", "get", "list")))
    )


@pytest.mark.parametrize("other", [TWO, CLUSTER], ids=["another region", "a cluster"])
def test_who_works_with_another_bucket_keeps_all_others_out(clients, caller, other):
    first = lock_of(other, clients, caller)
    first.take("run-1")
    with pytest.raises(LockedError, match="gs://bucket-two/harness/locks/our-project"):
        lock_of(ONE, clients, caller).take("run-2")
    assert not clients.storage.bucket("bucket-one").blob("harness/locks/our-project.json").exists()
    first.free()
    lock_of(ONE, clients, caller).take("run-2")


class Ahead(SystemClock):
    """A clock that a test moves."""

    ahead_s = 0.0

    def monotonic_s(self) -> float:
        return super().monotonic_s() + self.ahead_s


def test_a_lock_whose_last_renewal_got_no_answer_is_freed(emulator, clients, caller):
    clock = Ahead()
    lock = lock_of(ONE, clients, dataclasses.replace(caller, clock=clock))
    lock.take("run-1")
    clock.ahead_s = RENEW_EVERY_S + 1.0
    emulator.world.injections.add(InjectedFault(method="storage.objects.insert", drop="after"))
    lock.keep()
    lock.free()
    assert not clients.storage.bucket("bucket-one").blob("harness/locks/our-project.json").exists()


def test_a_bucket_that_its_owner_does_not_allow_is_not_looked_into(clients, caller):
    lock_of(TWO, clients, caller).take("run-1")
    bucket = clients.storage.get_bucket("bucket-two")
    bucket.labels = {}
    bucket.patch()
    lock_of(ONE, clients, caller).take("run-2")


def test_where_buckets_may_not_be_listed_nothing_begins_unless_one_is_named_for_locks(clients, caller, state):
    forbid_listing(state)
    with pytest.raises(UnseenLocksError, match=r"grant storage\.buckets\.list on the project, or name a bucket for the locks"):
        lock_of(ONE, clients, caller).take("run-1")
    lock_of(replace(TWO, lock_bucket="bucket-of-locks"), clients, caller).take("run-1")
    with pytest.raises(LockedError, match="gs://bucket-of-locks/"):
        lock_of(replace(ONE, lock_bucket="bucket-of-locks"), clients, caller).take("run-2")


def test_a_lock_in_another_projects_bucket_is_none(clients, caller):
    make_bucket(clients, "their-bucket", ALLOWED, project="their-project")
    far = replace(ONE, bucket="their-bucket")
    with pytest.raises(ForeignLockError, match="bucket their-bucket is none of project our-project"):
        lock_of(far, clients, caller).take("run-1")
    lock_of(replace(far, lock_bucket="bucket-of-locks"), clients, caller).take("run-1")


def test_cleaning_with_another_bucket_leaves_a_project_alone_that_is_in_use(emulator, clients, caller, tmp_path: Path, capsys):
    lock_of(TWO, clients, caller).take("run-1")
    before = emulator.world.calls.writes()
    place = ["--project", PROJECT, "--region", ONE.region, "--bucket", ONE.bucket]
    assert run_app(["clean", "--target", "gcp", "--runs-dir", str(tmp_path / "runs"), *place, "--run", "0123456789ab"]) == 0
    assert "left alone: target 'gcp' is not available: project our-project is in use" in capsys.readouterr().out
    assert emulator.world.calls.writes() == before


def test_cleaning_writes_no_lock_where_nobody_allows_it(emulator, clients, tmp_path: Path, capsys):
    make_bucket(clients, "not-allowed", {})
    before = emulator.world.calls.writes()
    place = ["--project", PROJECT, "--region", ONE.region, "--bucket", ONE.bucket, "--lock-bucket", "not-allowed"]
    assert run_app(["clean", "--target", "gcp", "--runs-dir", str(tmp_path / "runs"), *place]) == 0
    assert "bucket not-allowed is not labelled harness-chaos=allowed" in capsys.readouterr().out
    assert emulator.world.calls.writes() == before


def resolved(clients: Clients, caller: Caller, place: Place) -> tuple[Resolved, Permission]:
    found = Resolver(clients, caller, place).resolve()
    return found, next(each for each in found.permissions if each.name == "storage.buckets.list")


def test_a_plan_tells_whether_others_would_be_seen(clients, caller, state):
    found, listing = resolved(clients, caller, ONE)
    assert (found.problems, listing.is_held) == ((), True)
    forbid_listing(state)
    found, listing = resolved(clients, caller, ONE)
    assert listing.is_held is False
    assert "whether somebody else uses project our-project cannot be seen" in found.problems[0]
    found, listing = resolved(clients, caller, replace(ONE, lock_bucket="bucket-of-locks"))
    assert (found.problems, listing.is_held, listing.why) == (
        (),
        None,
        "buckets may not be listed, so only a lock in bucket-of-locks is seen",
    )


def test_the_bucket_of_locks_is_a_resource_of_the_plan(clients, caller):
    found, _ = resolved(clients, caller, replace(ONE, lock_bucket="bucket-of-locks"))
    assert [each.name for each in found.resources if each.kind == "bucket"] == ["bucket-one", "bucket-of-locks"]
    assert all(each.facts["labels.harness-chaos"] == "allowed" for each in found.resources if each.kind == "bucket")
