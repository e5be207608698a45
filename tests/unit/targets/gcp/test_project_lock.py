"""The lock of a project: one holder, whoever dies, whatever answer is lost."""

import subprocess
import threading
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec
import pytest

from harness.clock import ManualClock
from harness.targets.gcp.failures import CallError, Failure, PreconditionError, ResourceMissingError, UnreachableError
from harness.targets.gcp.lock_holders import LEASE_S, SKEW_S, LockedError, LockLostError, Stored, UnreadableLockError
from harness.targets.gcp.project_lock import RENEW_EVERY_S, ProjectLock
from harness.undo import identify


def refused(kind: type[CallError], code: str, *, may_be_done: bool = False) -> CallError:
    return kind(
        service="storage",
        method="objects.insert",
        resource="gs://b/lock",
        failure=Failure(code=code, message="as told"),
        may_be_done=may_be_done,
    )


class Bucket:
    """One object with generations and preconditions, as Cloud Storage has it."""

    where = "gs://our-bucket/lock"

    def __init__(self, clock: ManualClock) -> None:
        self.clock, self.stored, self.next = clock, None, 1
        self.writes = 0
        self._guard = threading.Lock()
        self.after_write: Callable[[], None] = lambda: None
        self.before_write: Callable[[], None] = lambda: None
        self.after_read: Callable[[], None] = lambda: None

    def read(self) -> Stored | None:
        found = self.stored
        self.after_read()
        return found

    def write(self, data: bytes, *, if_generation: int) -> int:
        self.before_write()
        with self._guard:
            if if_generation != (self.stored.generation if self.stored else 0):
                raise refused(PreconditionError, "FAILED_PRECONDITION")
            self.stored = Stored(data, self.next, self.clock.utc())
            self.next += 1
            self.writes += 1
            generation = self.stored.generation
        self.after_write()
        return generation

    def delete(self, *, if_generation: int) -> None:
        with self._guard:
            if self.stored is None:
                raise refused(ResourceMissingError, "NOT_FOUND")
            if self.stored.generation != if_generation:
                raise refused(PreconditionError, "FAILED_PRECONDITION")
            self.stored = None


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def bucket(clock) -> Bucket:
    return Bucket(clock)


def lock_of(bucket: Bucket, owner: str = "ann@one", clock: ManualClock | None = None) -> ProjectLock:
    return ProjectLock(bucket, project="our-project", owner=owner, clock=clock or bucket.clock)


def lost_answer() -> None:
    raise refused(UnreachableError, "UNAVAILABLE", may_be_done=True)


def test_whoever_comes_second_is_told_who_has_it(bucket):
    lock_of(bucket).take("run-1")
    with pytest.raises(LockedError, match=r"in use by ann@one \(run run-1\)") as caught:
        lock_of(bucket, "bob@two").take("run-2")
    assert caught.value.holder.run_id == "run-1"


def test_the_lock_of_a_process_that_has_died_here_says_what_frees_it(bucket, monkeypatch):
    lock_of(bucket).take("")
    monkeypatch.setattr("harness.undo.find", lambda _process: None)
    with pytest.raises(LockedError, match=r"locked by ann@one, who has died; `harness clean --target gcp` with the same --config"):
        lock_of(bucket, "bob@two").take("run-2")


def race(bucket: Bucket) -> None:
    """Bob takes it between the moment when ann sees that it is free and the one when she writes."""
    ann, bob, before = lock_of(bucket), lock_of(bucket, "bob@two"), bucket.writes

    def meanwhile() -> None:
        bucket.after_read = lambda: None
        bob.take("run-2")

    bucket.after_read = meanwhile
    with pytest.raises(LockedError, match="bob@two"):
        ann.take("run-1")
    assert (ann.is_held, bob.is_held, bucket.writes - before) == (False, True, 1)


def test_of_two_that_saw_it_free_one_gets_it(bucket):
    race(bucket)


def test_of_many_at_once_exactly_one_gets_it(bucket):
    together = threading.Barrier(8)
    bucket.before_write = lambda: together.wait(timeout=30)  # all have seen that it is free
    locks = [lock_of(bucket, f"owner-{index}") for index in range(8)]
    refusals: list[LockedError] = []

    def take(lock: ProjectLock) -> None:
        try:
            lock.take("run")
        except LockedError as error:
            refusals.append(error)

    threads = [threading.Thread(target=take, args=(lock,)) for lock in locks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)
    assert [lock.is_held for lock in locks].count(True) == 1
    assert len(refusals) == 7


def test_of_two_that_take_over_one_gets_it(bucket, clock):
    lock_of(bucket, "dead@three").take("run-0")
    clock.advance(LEASE_S + SKEW_S)
    race(bucket)


@pytest.mark.parametrize("after_s", [0.0, LEASE_S - 1, LEASE_S + SKEW_S - 1])
def test_it_is_not_taken_over_before_it_has_expired_on_every_clock(bucket, clock, after_s):
    lock_of(bucket).take("run-1")
    clock.advance(after_s)
    with pytest.raises(LockedError):
        lock_of(bucket, "bob@two").take("run-2")


def test_one_that_has_expired_is_taken_over(bucket, clock):
    dead = lock_of(bucket)
    dead.take("run-1")
    clock.advance(LEASE_S + SKEW_S)
    lock_of(bucket, "bob@two").take("run-2")
    assert not dead.is_held
    with pytest.raises(LockLostError, match="another has taken it over"):
        dead.keep()
    dead.free()  # what is another's is left alone
    assert bucket.stored is not None


def test_a_clock_that_is_slow_does_not_cost_its_owner_the_lease(bucket, clock):
    slow = ManualClock(utc=clock.utc() - timedelta(hours=3))
    lock_of(bucket, clock=slow).take("run-1")
    with pytest.raises(LockedError):
        lock_of(bucket, "bob@two").take("run-2")


def test_a_clock_that_is_a_little_fast_does_not_take_what_is_held(bucket, clock):
    lock_of(bucket).take("run-1")
    clock.advance(LEASE_S - 1)
    fast = ManualClock(utc=clock.utc() + timedelta(seconds=SKEW_S))
    with pytest.raises(LockedError):
        lock_of(bucket, "bob@two", clock=fast).take("run-2")


def test_it_is_kept_by_renewing_it(bucket, clock):
    lock = lock_of(bucket)
    lock.take("run-1")
    for _ in range(30):
        clock.advance(RENEW_EVERY_S)
        lock.keep()
    with pytest.raises(LockedError):
        lock_of(bucket, "bob@two").take("run-2")
    lock.keep()
    assert bucket.writes == 31


def test_what_was_freed_is_free(bucket):
    lock = lock_of(bucket)
    lock.take("run-1")
    lock.free()
    lock.free()
    assert not lock.is_held
    lock_of(bucket, "bob@two").take("run-2")


def test_a_lock_whose_answer_was_lost_is_ours(bucket):
    lock = lock_of(bucket)
    bucket.after_write = lost_answer
    lock.take("run-1")
    assert lock.is_held
    bucket.after_write = lambda: None
    lock.free()
    assert bucket.stored is None


def test_a_renewal_whose_answer_was_lost_is_one(bucket, clock):
    lock = lock_of(bucket)
    lock.take("run-1")
    clock.advance(RENEW_EVERY_S)
    bucket.after_write = lost_answer
    lock.keep()  # it is still ours for a while, and asks again
    bucket.after_write = lambda: None
    lock.keep()
    assert lock.is_held
    clock.advance(LEASE_S - 1)
    assert lock.is_held


def test_one_that_cannot_be_renewed_is_lost_when_its_lease_is_over(bucket, clock):
    lock = lock_of(bucket)
    lock.take("run-1")
    bucket.before_write = lost_answer
    clock.advance(RENEW_EVERY_S)
    lock.keep()
    assert lock.is_held
    clock.advance(LEASE_S)
    with pytest.raises(LockLostError, match="could not be renewed"):
        lock.keep()


def test_a_bucket_that_refuses_is_told_as_it_says(bucket):
    bucket.before_write = lambda: (_ for _ in ()).throw(refused(CallError, "PERMISSION_DENIED"))
    with pytest.raises(CallError, match="PERMISSION_DENIED"):
        lock_of(bucket).take("run-1")


@pytest.mark.parametrize("data", [b"", b"{}", b"\xff\xfe", b"[1]"])
def test_a_lock_that_nobody_can_read_is_not_taken(bucket, clock, data):
    bucket.stored = Stored(data, 5, clock.utc() - timedelta(days=300))
    with pytest.raises(UnreadableLockError, match="see who wrote gs://our-bucket/lock"):
        lock_of(bucket).take("run-1")


def test_whoever_waits_gets_it_when_it_is_freed_and_says_for_whom(bucket, clock):
    ann, bob = lock_of(bucket), lock_of(bucket, "bob@two")
    ann.take("run-1")
    said: list[str] = []
    sleeps: list[float] = []

    def sleep(seconds: float) -> None:
        sleeps.append(seconds)
        ManualClock.advance(clock, seconds)
        if len(sleeps) == 3:
            ann.free()

    clock.sleep = sleep
    assert bob.wait("run-2", patience_s=600, say=said.append) == sum(sleeps)
    assert bob.is_held
    assert len(said) == 1
    assert "ann@one" in said[0]


def test_patience_has_an_end(bucket, clock):
    lock_of(bucket).take("run-1")
    with pytest.raises(LockedError):
        lock_of(bucket, "bob@two").wait("run-2", patience_s=45, say=lambda _: None)
    assert clock.monotonic_s() <= 45


def test_who_has_it_is_told(bucket, clock):
    lock = lock_of(bucket)
    assert lock.holder() is None
    lock_of(bucket, "bob@two").take("run-2")
    assert lock.holder().run_id == "run-2"
    clock.advance(LEASE_S + SKEW_S)
    assert lock.holder() is None


def test_a_lock_of_a_dead_process_is_taken_over_by_whoever_asks_for_that(bucket):
    lock_of(bucket).take("run-1")
    bob = lock_of(bucket, "bob@two")
    with pytest.raises(LockedError):
        bob.take("run-2", over_dead=True)  # who has it lives
    bury(bucket)
    with pytest.raises(LockedError):
        bob.take("run-2")
    bob.take("run-2", over_dead=True)
    assert lock_of(bucket).holder().run_id == "run-2"


def bury(bucket: Bucket) -> None:
    """Whoever has it has died."""
    with subprocess.Popen(["sleep", "600"]) as process:
        gone = identify([process.pid])[0]
        process.kill()
    said = msgspec.json.decode(bucket.stored.data) | {"process": msgspec.to_builtins(gone)}
    bucket.stored = bucket.stored._replace(data=msgspec.json.encode(said))


# ---- with another bucket ---------------------------------------------------------------------------------------------


@pytest.fixture
def far(clock) -> Bucket:
    found = Bucket(clock)
    found.where = "gs://far-bucket/lock"
    return found


def lock_with(bucket: Bucket, *others: Bucket, owner: str = "ann@one") -> ProjectLock:
    return ProjectLock(bucket, project="our-project", owner=owner, clock=bucket.clock, elsewhere=lambda: others)


def test_who_has_it_with_another_bucket_is_told_and_nothing_is_written(bucket, far):
    lock_of(far, "bob@two").take("run-1")
    with pytest.raises(LockedError, match=r"in use by bob@two \(run run-1\).*gs://far-bucket/lock"):
        lock_with(bucket, far).take("run-2")
    assert (bucket.writes, bucket.stored) == (0, None)


def test_of_two_at_once_with_two_buckets_not_both_have_it(bucket, far):
    """Bob writes his between our look and our writing."""
    bob = lock_with(far, bucket, owner="bob@two")
    bucket.before_write = lambda: bob.take("run-1")
    with pytest.raises(LockedError):
        lock_with(bucket, far).take("run-2")
    assert bucket.stored is None
    bob.keep()
    assert bob.is_held


def test_of_two_at_once_with_two_buckets_both_may_see_the_other_and_then_neither_has_it(bucket, far):
    bob = lock_with(far, bucket, owner="bob@two")

    def at_once() -> None:
        bucket.after_write = lambda: None
        with pytest.raises(LockedError):
            bob.take("run-1")

    bucket.after_write = at_once
    lock_with(bucket, far).take("run-2")  # he has given way already
    assert far.stored is None


def test_one_that_has_expired_elsewhere_is_nobodys(bucket, far, clock):
    lock_of(far, "bob@two").take("run-1")
    clock.sleep(LEASE_S + SKEW_S)
    lock_with(bucket, far).take("run-2")


def test_one_elsewhere_that_nobody_can_read_keeps_all_others_out(bucket, far, clock):
    far.stored = Stored(b"{}", 1, clock.utc())
    with pytest.raises(UnreadableLockError, match="see who wrote gs://far-bucket/lock"):
        lock_with(bucket, far).take("run-2")


def test_one_that_was_taken_is_freed_when_others_cannot_be_looked_for(bucket, far):
    looks = iter([(), None])

    def elsewhere() -> tuple[Bucket, ...]:
        found = next(looks)
        if found is None:
            raise refused(UnreachableError, "UNAVAILABLE")
        return found

    with pytest.raises(UnreachableError):
        ProjectLock(bucket, project="our-project", owner="ann@one", clock=bucket.clock, elsewhere=elsewhere).take("run-2")
    assert bucket.stored is None


def test_a_dead_one_elsewhere_is_passed_over_by_whoever_asks_for_that(bucket, far):
    lock_of(far, "bob@two").take("run-1")
    bury(far)
    with pytest.raises(LockedError):
        lock_with(bucket, far).take("run-2")
    lock_with(bucket, far).take("run-2", over_dead=True)


def test_a_living_process_and_one_of_another_machine_pass_for_no_dead_one(bucket):
    lock_of(bucket).take("run-1")
    holder = lock_of(bucket).written()
    assert not holder.is_dead_here
    with subprocess.Popen(["sleep", "600"]) as process:
        gone = identify([process.pid])[0]
        process.kill()
    assert msgspec.structs.replace(holder, process=gone).is_dead_here
    assert not msgspec.structs.replace(holder, process=gone, host="elsewhere").is_dead_here
    assert not msgspec.structs.replace(holder, process=None).is_dead_here


def test_a_machine_or_a_container_of_the_same_name_passes_for_no_dead_one(bucket, monkeypatch):
    monkeypatch.setattr("harness.undo.machine", lambda: "ours")
    lock_of(bucket).take("run-1")
    holder = lock_of(bucket).written()

    def is_dead(**fields: str) -> bool:
        there = msgspec.structs.replace(holder.process, pid=2**22 + 1, **fields)
        return msgspec.structs.replace(holder, process=there).is_dead_here

    assert is_dead(), "of this boot, and not there"
    assert is_dead(boot_id="the boot before", machine="ours")
    assert not is_dead(boot_id="another boot", machine="another"), "another machine of the same name"
    assert not is_dead(boot_id="another boot", machine=""), "a container on another machine, or an older version"
    assert not is_dead(pid_namespace="pid:[1]"), "another container on this machine"
    assert not is_dead(boot_id=""), "nobody knows which boot that was"


class Asleep:
    """A machine whose monotonic clock stands still while it sleeps."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock, self.slept_s = clock, 0.0

    def monotonic_s(self) -> float:
        return self._clock.monotonic_s()

    def utc(self) -> datetime:
        return self._clock.utc() + timedelta(seconds=self.slept_s)

    def sleep(self, seconds: float) -> None:
        self._clock.sleep(seconds)


def test_a_machine_that_has_slept_through_its_lease_does_not_have_the_project(bucket, clock):
    asleep = Asleep(clock)
    lock = lock_of(bucket, clock=asleep)
    lock.take("run-1")
    asleep.slept_s = LEASE_S + SKEW_S + 1
    assert not lock.is_held
    bob = Asleep(clock)
    bob.slept_s = asleep.slept_s
    lock_of(bucket, "bob@two", clock=bob).take("run-2")
    with pytest.raises(LockLostError):
        lock.keep()
