"""What recovery from one crash state did, and what is said of it: the documents between executors, criteria and the report."""

import msgspec

from harness.verdict import Outcome


class SaveSeen(msgspec.Struct, frozen=True, kw_only=True):
    """A save that a recovery acknowledged."""

    step: int
    digests: dict[str, str] = {}


class Recovery(msgspec.Struct, frozen=True, kw_only=True):
    """What was seen of one recovery: the job was started on a copy of the state and let go on.

    Attributes:
        exit_code: Of the process; of a recovery function that returned, as a console script's: 0 for nothing, else its number. None when it
            had to be ended, or a signal ended it.
        signal: The signal that ended it, when one did.
        timed_out: Whether it had to be ended.
        slept: Whether it had to be ended and had used no processor time for the last half of its time.
        seconds: How long it took.
        detail: The end of what it printed, or the traceback, where it failed; the copy's path is ``{checkpoint_dir}``, as it differs.
        chosen_step: The step that it chose to restore (``restore.begin``); -1: not said.
        restored_step: The step that it restored; 0: from scratch; -1: not said.
        restored_digests: Of the state in memory after restoring.
        final_step: The last step that it did; -1: not said.
        digests: By step, of the state in memory after the step: the newest value of each. All steps that it said are in it, empty where it
            said no digests.
        saves: What it saved, in order.
        done: Whether it said that it is complete.
        result: SHA-256 of the result file; empty: there was none, or none was asked for.
        inspected_before: What ``inspect`` said of another copy before recovery: its step, -1 when it failed, None when not asked.
        inspected_after: The same after recovery.
        left: Paths that recovery left behind, sorted, directories with a closing slash.
        tree_digest: Of all of the directory afterwards: the name of the state that it is.
        unheard: What it said and could not be read, in words: what is missing may have been said.
    """

    exit_code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    slept: bool = False
    seconds: float = 0.0
    detail: str = ""
    chosen_step: int = -1
    restored_step: int = -1
    restored_digests: dict[str, str] = {}
    final_step: int = -1
    digests: dict[int, dict[str, str]] = {}
    saves: tuple[SaveSeen, ...] = ()
    done: bool = False
    result: str = ""
    inspected_before: int | None = None
    inspected_after: int | None = None
    left: tuple[str, ...] = ()
    tree_digest: str = ""
    unheard: str = ""


class Broken(msgspec.Struct, frozen=True, kw_only=True, order=True):
    """One promise that recovery from a state broke, or of which nothing can be said.

    Attributes:
        promise: Its name: ``recovers``, ``restores-what-was-saved``, ``keeps-what-was-acknowledged``, ``completes-as-uninterrupted``,
            ``saves-at-its-cadence``, ``keeps-the-last-good-checkpoint``, ``recovers-twice-alike``, ``survives-a-crash-in-recovery``.
        says: One sentence with the values.
        outcome: ``invalid`` or ``unknown``.
    """

    promise: str
    says: str
    outcome: Outcome = Outcome.INVALID


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What is said of one crash state; ``broken`` empty is valid, ``checked`` names the promises that were looked at."""

    state: str
    recovery: Recovery
    broken: tuple[Broken, ...] = ()
    checked: tuple[str, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """The worst that is said."""
        said = {broken.outcome for broken in self.broken}
        return Outcome.INVALID if Outcome.INVALID in said else Outcome.UNKNOWN if said else Outcome.VALID
