"""One harness at a time on a project: a lock object in a bucket, written under generation preconditions, that expires.

Two that want it at once write under the same precondition, and the service lets one of them. Who dies without freeing it holds it until it
has expired. Who works with another bucket has a lock there: each looks for others' after having written its own, so of two at once one sees
the other, or both do.
"""

import contextlib
import os
import secrets as randomness
from collections.abc import Callable, Iterable
from datetime import timedelta

import msgspec

from harness.clock import Clock
from harness.errors import HarnessError
from harness.targets.gcp.failures import CallError, PreconditionError, ResourceMissingError
from harness.targets.gcp.lock_holders import (
    LEASE_S,
    Holder,
    LockedError,
    LockLostError,
    Stored,
    UnreadableLockError,
    holder_in,
    takeover_at,
)
from harness.targets.gcp.lock_objects import LockObject
from harness.undo import identify

RENEW_EVERY_S = 120.0
"""Several times within a lease, so that one renewal may fail."""

ASKED_EVERY_S = 10.0


class ProjectLock:
    """Ours, or another's.

    Args:
        place: The object.
        project: Which is locked.
        owner: Who we are, for a person.
        clock: For leases; its time of day is compared with that of others, with a margin.
        elsewhere: The objects in which others would have it.
    """

    def __init__(
        self, place: LockObject, *, project: str, owner: str, clock: Clock, elsewhere: Callable[[], Iterable[LockObject]] = tuple
    ) -> None:
        self._object, self._project, self._owner, self._clock = place, project, owner, clock
        self._elsewhere = elsewhere
        self._nonce = randomness.token_hex(8)
        self._generation = 0
        self._run_id = ""
        self._since = self._written_at = clock.utc()
        self._written_s = 0.0
        self._process = identify([os.getpid()])[0]

    @property
    def is_held(self) -> bool:
        """Whether it is ours, as far as we know, and has not expired: then another may have taken it."""
        return self._generation > 0 and self._age_s() < LEASE_S

    @property
    def nonce(self) -> str:
        """Tells our lock from every other: for processes that work for us."""
        return self._nonce

    def _age_s(self) -> float:
        """Since it was written, by the clock that has moved most: a machine that sleeps stops one of them."""
        return max(self._clock.monotonic_s() - self._written_s, (self._clock.utc() - self._written_at).total_seconds())

    def take(self, run_id: str, *, over_dead: bool = False) -> None:
        """Take it, if it is free, or its holder's lease is over; ``over_dead``: or its holder was of this machine, and has died.

        Raises:
            LockedError: When another has it.
            UnreadableLockError: When nobody can tell who has it.
            CallError: When a bucket does not answer, or refuses.
            TargetUnavailableError: When nobody can tell where others would have it.
        """
        stored = self.require_free(over_dead=over_dead)
        self._run_id, self._since = run_id, self._clock.utc()
        try:
            self._write(if_generation=stored.generation if stored is not None else 0)
        except CallError as error:
            self._settle(error)
        try:
            self._refuse_elsewhere(over_dead=over_dead)
        except BaseException:
            with contextlib.suppress(HarnessError):  # it expires then
                self.free()
            raise

    def require_free(self, *, over_dead: bool = False) -> Stored | None:
        """See that nobody else has it, as ``take`` does; what is there is returned, and nothing written.

        Raises:
            LockedError: When another has it.
            HarnessError: When nobody can tell.
        """
        self._refuse_elsewhere(over_dead=over_dead)
        stored = self._object.read()
        if stored is not None:
            self._refuse_held(self._object, stored, over_dead=over_dead)
        return stored

    def wait(self, run_id: str, *, patience_s: float, say: Callable[[str], None]) -> float:
        """Take it when it comes free, and return for how many seconds that took; ``say`` is told for whom we wait.

        Raises:
            LockedError: When it has not in ``patience_s``.
        """
        began_s, told = self._clock.monotonic_s(), ""
        while True:
            try:
                self.take(run_id)
            except LockedError as error:
                if self._clock.monotonic_s() - began_s + ASKED_EVERY_S > patience_s:
                    raise
                if error.holder.nonce != told:
                    told = error.holder.nonce
                    say(error.reason)
                self._clock.sleep(ASKED_EVERY_S)
            else:
                return self._clock.monotonic_s() - began_s

    def keep(self) -> None:
        """Renew it when it is time; called often.

        Raises:
            LockLostError: When it is not ours any more.
        """
        if self._generation <= 0:
            raise LockLostError(project=self._project, reason="it was never taken, or was freed")
        if self._age_s() < RENEW_EVERY_S:
            return
        try:
            self._write(if_generation=self._generation)
        except PreconditionError as error:
            if not self._is_ours_after_all():
                self._generation = 0
                raise LockLostError(project=self._project, reason="another has taken it over") from error
        except CallError as error:
            if not self.is_held:
                self._generation = 0
                raise LockLostError(project=self._project, reason=f"it could not be renewed: {error}") from error

    def free(self) -> None:
        """Give it back; what is not ours any more is left alone. Harmless twice.

        Raises:
            CallError: When it could not be; it expires then.
        """
        if self._generation <= 0:
            return
        generation, self._generation = self._generation, 0
        try:
            self._object.delete(if_generation=generation)
        except (PreconditionError, ResourceMissingError):
            return

    def holder(self) -> Holder | None:
        """Who has it just now, living as far as its lease tells; None: nobody."""
        stored = self._object.read()
        found = holder_in(stored) if stored is not None else None
        return found if stored is not None and found is not None and self._clock.utc() < takeover_at(found, stored) else None

    def written(self) -> Holder | None:
        """What a lock that is there says, whether its lease is over or not; None: there is none, or it says nothing."""
        stored = self._object.read()
        return holder_in(stored) if stored is not None else None

    def _refuse_elsewhere(self, *, over_dead: bool) -> None:
        for other in self._elsewhere():
            stored = other.read()
            if stored is not None:
                self._refuse_held(other, stored, over_dead=over_dead)

    def _refuse_held(self, place: LockObject, stored: Stored, *, over_dead: bool) -> None:
        found = holder_in(stored)
        if found is None:
            raise UnreadableLockError(project=self._project, where=place.where)
        until = takeover_at(found, stored)
        if found.nonce != self._nonce and self._clock.utc() < until and not (over_dead and found.is_dead_here):
            raise LockedError(project=self._project, where=place.where, holder=found, until=until)

    def _write(self, *, if_generation: int) -> None:
        now = self._clock.utc()
        began_s = self._clock.monotonic_s()
        content = Holder(
            project=self._project,
            owner=self._owner,
            run_id=self._run_id,
            nonce=self._nonce,
            since=self._since,
            expires_at=now + timedelta(seconds=LEASE_S),
            host=os.uname().nodename,
            process=self._process,
        )
        self._generation = self._object.write(msgspec.json.encode(content), if_generation=if_generation)
        self._written_s, self._written_at = began_s, now

    def _settle(self, error: CallError) -> None:
        """After a write that was refused, or whose answer was lost: see whose it is.

        Raises:
            LockedError: When it is another's.
            CallError: When nobody's; the error as it came.
        """
        stored = self._object.read()
        found = holder_in(stored) if stored is not None else None
        if stored is None or found is None:
            raise error
        if found.nonce != self._nonce:
            raise LockedError(project=self._project, where=self._object.where, holder=found, until=takeover_at(found, stored)) from error
        self._adopt(stored)

    def _is_ours_after_all(self) -> bool:
        """A renewal whose answer was lost makes the next one meet its own work."""
        stored = self._object.read()
        found = holder_in(stored) if stored is not None else None
        if stored is None or found is None or found.nonce != self._nonce:
            return False
        self._adopt(stored)
        return True

    def _adopt(self, stored: Stored) -> None:
        self._generation = stored.generation
        found = holder_in(stored)
        assert found is not None
        left_s = (found.expires_at - self._clock.utc()).total_seconds()
        gone_s = LEASE_S - min(LEASE_S, left_s)
        self._written_s, self._written_at = self._clock.monotonic_s() - gone_s, self._clock.utc() - timedelta(seconds=gone_s)
