"""The training job under test, as data: a black box that speaks the protocol of workloads/protocol.md or nothing at all."""

import re
from pathlib import PurePosixPath
from typing import Literal

import msgspec

from harness.scenario.rules import positive, regular_expression, require

Layout = Literal["text-file", "step-directories", "orbax", "ray-train", "files"]
"""How the job lays out its checkpoints (``harness.checkpoints``): a text file a task, ``step_N/`` with a manifest, Orbax, Ray Train, or
unknown files."""

_STEP = re.compile(r"\(\?P<step>")


class LogPatterns(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Regular expressions that turn lines of a silent job's log into events; a line is searched in its first 4,096 characters.

    All but ``sigterm`` and ``done`` need a group ``(?P<step>...)``.

    Attributes:
        step: A step was done.
        saved: A checkpoint was saved.
        resumed: A checkpoint was restored.
        sigterm: The job noticed SIGTERM.
        done: The job says it is complete.
    """

    step: str = ""
    saved: str = ""
    resumed: str = ""
    sigterm: str = ""
    done: str = ""

    def __post_init__(self) -> None:
        for field in ("step", "saved", "resumed", "sigterm", "done"):
            pattern: str = getattr(self, field)
            regular_expression(field, pattern)
            if pattern and field in ("step", "saved", "resumed"):
                require(bool(_STEP.search(pattern)), field, pattern, "needs a group (?P<step>\\d+) that holds the step")


class Outside(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a job is judged from outside.

    Attributes:
        logs: Patterns of its log.
        inspect: A command that prints ``{"step": n, "digests": {...}}`` for the checkpoint directory; ``{checkpoint_dir}`` is replaced.
        inspect_timeout_s: Seconds the inspection may take.
        recovery_timeout_s: Seconds one recovery may take where kill points are tried; 0: 30, or ten times as long as the job takes.
        result: A file that must equal the uninterrupted run's: below ``{checkpoint_dir}``, for anywhere else it may be another run's.
    """

    logs: LogPatterns = LogPatterns()
    inspect: tuple[str, ...] = ()
    inspect_timeout_s: float = 60.0
    recovery_timeout_s: float = 0.0
    result: str = ""

    def __post_init__(self) -> None:
        positive("inspect_timeout_s", self.inspect_timeout_s)
        positive("recovery_timeout_s", self.recovery_timeout_s, zero_allowed=True)
        where = "a path that begins with {checkpoint_dir}: elsewhere the file of an earlier run would be taken for this run's"
        is_below = self.result.startswith("{checkpoint_dir}/") and ".." not in PurePosixPath(self.result).parts
        require(not self.result or is_below, "result", self.result, where)


class Workload(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A job and how to read it.

    Attributes:
        name: Kebab-case; also ``CLOUD_RUN_JOB``.
        command: Program and arguments. ``{python}`` is this interpreter, or that of the image; ``{checkpoint_dir}`` the mounted directory.
        steps: The final step; 0 when unknown (then only ``done`` or the result tells completion).
        save_every: Steps between periodic saves; 0 when unknown.
        environment: Variables on top of the caller's.
        layout: How its checkpoints lie.
        checkpoints: Where in the mounted directory they lie: jobs like to make a directory of their own for a run.
        speaks_protocol: Whether it writes events and keeps the barrier.
        ranks: Processes that train together inside one task.
        sources: Files and directories whose content decides whether a golden run is still that of this job; relative to ``directory``.
        directory: Where the command runs; relative to the catalogue's root.
        outside: How it is judged where it does not speak.
        image: What its containers are made of, on targets that have containers; empty: the target's own image.
    """

    name: str
    command: tuple[str, ...]
    steps: int = 0
    save_every: int = 0
    environment: dict[str, str] = {}
    layout: Layout = "files"
    checkpoints: str = "."
    speaks_protocol: bool = True
    ranks: int = 1
    sources: tuple[str, ...] = ()
    directory: str = "."
    outside: Outside = Outside()
    image: str = ""

    @property
    def ranks_heard(self) -> int:
        """Ranks whose words tell them apart: events that are read from a log know of one only."""
        return self.ranks if self.speaks_protocol else 1

    @property
    def words_in(self) -> tuple[Literal["events", "logs"], ...]:
        """What its words are read from: what is lost of that may have been one of them."""
        is_read = any(msgspec.structs.astuple(self.outside.logs))
        return ("events", "logs") if is_read or not self.speaks_protocol else ("events",)

    def __post_init__(self) -> None:
        require(
            bool(re.fullmatch(r"[a-z][a-z0-9-]{0,62}", self.name)),
            "name",
            self.name,
            "kebab-case, at most 63 characters, as a Cloud Run job",
        )
        require(bool(self.command) and all(self.command), "command", self.command, "a program and its arguments, none of them empty")
        require("\0" not in self.directory, "directory", self.directory, "a path, which holds no NUL character")
        path = PurePosixPath(self.checkpoints)
        require(not path.is_absolute() and ".." not in path.parts, "checkpoints", self.checkpoints, "a path below the mounted directory")
        require(self.steps >= 0, "steps", self.steps, "a number >= 0")
        require(self.save_every >= 0, "save_every", self.save_every, "a number >= 0")
        require(1 <= self.ranks <= 1024, "ranks", self.ranks, "1 to 1024")
        for name in self.environment:
            require(bool(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name)), "environment", name, "not a name of an environment variable")
            require(not name.startswith(("HARNESS_", "CLOUD_RUN_")), "environment", name, "reserved: the harness and the platform set it")
