"""What a lock of a project says: who has it, and until when."""

import os
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from harness.errors import TargetUnavailableError
from harness.targets.gcp.advice import cleaning
from harness.undo import ProcessId, Seen, see

LEASE_S = 600.0
"""For how long it is ours without a word: longer than any call with its retries, shorter than a person waits for a harness that died."""

SKEW_S = 120.0
"""By how much the clocks of two machines may differ: it is taken over only after its expiry and this."""


class Stored(NamedTuple):
    """An object as it is now; ``updated`` by the clock of the service."""

    data: bytes
    generation: int
    updated: datetime


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """What the lock object says.

    Attributes:
        project: Which is locked.
        owner: User, machine and process, for a person.
        run_id: Of what is going on.
        nonce: Tells our own writing from another's, when an answer was lost.
        since: When it was taken.
        expires_at: When it is nobody's any more, by the clock of the owner.
        host: The owner's machine.
        process: The owner there, so that the same machine sees that it has died.
    """

    project: str
    owner: str
    run_id: str
    nonce: str
    since: datetime
    expires_at: datetime
    host: str = ""
    process: ProcessId | None = None

    @property
    def is_dead_here(self) -> bool:
        """Whether it is known that its process, of this machine, is gone: nobody renews it, or works under it, any more.

        Where the system tells no boots, nobody knows it, and the lease is waited for.
        """
        return (
            self.process is not None and bool(self.process.boot_id) and self.host == os.uname().nodename and see(self.process) is Seen.DEAD
        )


class LockedError(TargetUnavailableError):
    """Somebody else has the project."""

    def __init__(self, *, project: str, where: str, holder: Holder, until: datetime) -> None:
        self.holder = holder
        of = f" (run {holder.run_id})" if holder.run_id else ""
        free = f"its lock {where} can be taken over after {until:%Y-%m-%d %H:%M:%S} UTC"
        if holder.is_dead_here:
            reason = f"project {project} is locked by {holder.owner}{of}, who has died"
            advice = f"{cleaning()} finishes what that owes and frees it at once; else {free}"
        else:
            reason = f"project {project} is in use by {holder.owner}{of} since {holder.since:%H:%M:%S} UTC"
            advice = f"wait until that ends; if it has died, {free}"
        super().__init__(target="gcp", reason=reason, advice=advice)


class LockLostError(TargetUnavailableError):
    """The lock was ours, and is not any more."""

    def __init__(self, *, project: str, reason: str) -> None:
        advice = "end this run; nothing more is done to the project"
        super().__init__(target="gcp", reason=f"the lock of project {project} is not ours any more: {reason}", advice=advice)


class UnreadableLockError(TargetUnavailableError):
    """There is a lock that says nothing."""

    def __init__(self, *, project: str, where: str) -> None:
        advice = f"see who wrote {where}; when nobody uses the project, delete it"
        super().__init__(target="gcp", reason=f"the lock of project {project} is there, and no lock that we know", advice=advice)


def holder_in(stored: Stored) -> Holder | None:
    """Who is said to have it; None: it says nothing that we know."""
    try:
        return msgspec.json.decode(stored.data, type=Holder)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def takeover_at(holder: Holder, stored: Stored) -> datetime:
    """By the later of both clocks: one that is slow would give its owner no lease at all."""
    return max(holder.expires_at, stored.updated + timedelta(seconds=LEASE_S)) + timedelta(seconds=SKEW_S)
