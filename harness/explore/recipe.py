"""What it takes to try recovery anywhere: the recipe of a job and the states, as documents that travel."""

from collections.abc import Iterator, Sequence
from typing import Literal, Protocol

import msgspec

from harness.explore.judgement import Recovery


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """How recovery is tried.

    Attributes:
        command: Program and arguments; ``{checkpoint_dir}`` is replaced by the copy. Run where there is no ``recover``.
        recover: ``module:function`` without arguments, called in a warm process whose environment names the copy (``CHECKPOINT_DIR``,
            ``HARNESS_EVENTS``); it restores, goes on and saves like the job itself. Empty: the command is run.
        directory: Where the command runs, absolute; also the first entry of the import path of ``recover``.
        environment: Variables on top of the caller's; ``{checkpoint_dir}`` is replaced.
        speaks_protocol: Whether it writes ``HARNESS_EVENTS``.
        patterns: Else, regular expressions on its output by event: ``step``, ``saved``, ``resumed``, ``done`` (``scenario.LogPatterns``).
        inspect: A command that prints ``{"step": N}`` of a checkpoint directory, what else it prints there is not read; empty: none.
        result: The result file, a path that begins with ``{checkpoint_dir}/``; empty: none.
        timeout_s: After so long a recovery is ended, with all its processes.
        recovery_timeout_s: The same where the caller has said it: then one that takes longer is wrong. 0: the rehearsal reckons it.
        checkpoints: Where the copies must lie, absolute, for a job that knows one place only; then there is one worker. Empty: anywhere.
    """

    command: tuple[str, ...]
    recover: str = ""
    directory: str = "."
    environment: dict[str, str] = {}
    speaks_protocol: bool = True
    patterns: dict[str, str] = {}
    inspect: tuple[str, ...] = ()
    result: str = ""
    timeout_s: float = 60.0
    recovery_timeout_s: float = 0.0
    checkpoints: str = ""


class Piece(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One path of a state: ``content`` is the SHA-256 of a file's blob, or the target of a link.

    Blobs lie in one directory, which an executor is made with: each content once, as a file named by its SHA-256 in hexadecimal that nobody
    changes. ``blobs.BlobStore`` makes the tree of a state from them.
    """

    path: str
    kind: Literal["file", "directory", "link"]
    content: str = ""


class StateTask(msgspec.Struct, frozen=True, kw_only=True):
    """A state to be tried.

    Attributes:
        state: SHA-256 of the pieces, and of the order of their times: the same tree has the same name whatever it came from.
        pieces: All that is in it, parents first.
        changed: Indexes of pieces in the order in which they were changed last: times of modification are made in it. Empty: any order.
        links: Indexes of pieces that are names of one file, those of each.
        again: Whether recovery is tried a second time on what the first one left.
        attempt: The platform's number of the first try: 0 of an uninterrupted run, a recovery comes after that.
        fresh: Whether a warm process must not have served another state before: what an earlier one left in it cannot be why.
        keeps: Where what each recovery leaves is copied to, in their order, paths of the machine that tries it; empty: it goes away.
    """

    state: str
    pieces: tuple[Piece, ...]
    changed: tuple[int, ...] = ()
    links: tuple[tuple[int, ...], ...] = ()
    again: bool = False
    attempt: int = 1
    fresh: bool = False
    keeps: tuple[str, ...] = ()


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """What came of a task. ``second`` is the recovery on what the first one left; ``lost``: why nothing can be said."""

    state: str
    first: Recovery | None = None
    second: Recovery | None = None
    lost: str = ""


class Executor(Protocol):
    """Where recoveries are tried. States are independent: any order, any number at once; each task is answered exactly once.

    Attributes:
        replaced: Why warm processes did not serve another state, or recoveries were tried alone: a sentence for each time.
    """

    replaced: list[str]

    def try_all(self, tasks: Sequence[StateTask], recipe: Recipe, *, deadline_s: float) -> Iterator[Tried]:
        """Try recovery from each state, in the given order as far as it can be kept, and yield what came of it as it comes.

        Args:
            tasks: The states, most telling first.
            recipe: How.
            deadline_s: On the monotonic clock; what has not begun by then is not begun, and not yielded.
        """
        ...

    def close(self) -> None:
        """End all its processes; nothing is left behind."""
        ...
