"""What is explored: a job of the catalogue, of a ``harness.toml``, or a command line, as a recipe with a name."""

import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.errors import UsageError, WorkloadMissingError
from harness.explore.recipe import Recipe
from harness.runner.binding import fill
from harness.scenario import Workload

NAME_LENGTH_MAX = 40
"""Of the name of a command: part of a directory's."""

PLACEHOLDER = "{checkpoint_dir}"


class Subject(msgspec.Struct, frozen=True, kw_only=True):
    """A job to be explored.

    Attributes:
        name: Kebab-case.
        recipe: How it is run, and how recovery from a state is tried.
        speaks_protocol: Whether it writes ``HARNESS_EVENTS``; None: its recording tells.
    """

    name: str
    recipe: Recipe
    speaks_protocol: bool | None = None


def subject_of_workload(workload: Workload, *, root: Path, seed: int) -> Subject:
    """A job that was declared.

    Args:
        workload: The job.
        root: What its directory is relative to.
        seed: For ``{seed}``.

    Raises:
        UsageError: When its directory, its program or the one that inspects is not there.
    """
    outside = workload.outside
    logs = msgspec.structs.asdict(outside.logs)

    def filled(text: str) -> str:
        return fill(text, checkpoint_dir=PLACEHOLDER, seed=seed)

    recipe = Recipe(
        command=tuple(map(filled, workload.command)),
        directory=str((root / workload.directory).resolve()),
        environment={name: filled(value) for name, value in workload.environment.items()},
        speaks_protocol=workload.speaks_protocol,
        patterns={} if workload.speaks_protocol else {name: pattern for name, pattern in logs.items() if pattern},
        inspect=tuple(map(filled, outside.inspect)),
        result=outside.result,
        recovery_timeout_s=outside.recovery_timeout_s,
    )
    return _checked(Subject(name=workload.name, recipe=recipe, speaks_protocol=workload.speaks_protocol))


def subject_of_command(command: Sequence[str], *, directory: Path, seed: int) -> Subject:
    """A job that is only a command line; what it says, its recording tells.

    Raises:
        WorkloadMissingError: When its program is not there.
    """
    words = tuple(fill(word, checkpoint_dir=PLACEHOLDER, seed=seed) for word in command)
    return _checked(Subject(name=name_of(words), recipe=Recipe(command=words, directory=str(directory.resolve()))))


def name_of(command: Sequence[str]) -> str:
    """A name for a command: that of its module or script, else of its program."""
    words = [word for word in command[1:] if not word.startswith("-")]
    module = command[command.index("-m") + 1] if "-m" in command[:-1] else ""
    script = next((Path(word).stem for word in words if Path(word).suffix), "")
    plain = module.removesuffix(".train").rpartition(".")[2] or script or Path(command[0]).name
    return re.sub(r"[^a-z0-9]+", "-", plain.lower()).strip("-")[:NAME_LENGTH_MAX] or "job"


def with_options(
    subject: Subject,
    *,
    result: str = "",
    inspect: Sequence[str] = (),
    recover: str = "",
    checkpoints: Path | None = None,
    recovery_timeout_s: float = 0.0,
) -> Subject:
    """The same as the command line wants it.

    Raises:
        UsageError: When an option cannot be what is meant, or the program that inspects is not there.
    """
    changed: dict[str, object] = {}
    if result:
        changed["result"] = _below(result, checkpoints)
    if inspect:
        changed["inspect"] = tuple(inspect)
    if recover:
        if not re.fullmatch(r"[\w.]+:[\w.]+", recover):
            raise UsageError(f"--recover {recover!r} names no function; give it as module:function")
        changed["recover"] = recover
    if checkpoints is not None:
        changed["checkpoints"] = str(checkpoints.resolve())
    if recovery_timeout_s:
        changed["recovery_timeout_s"] = recovery_timeout_s
    return _checked(msgspec.structs.replace(subject, recipe=msgspec.structs.replace(subject.recipe, **changed))) if changed else subject


def _below(result: str, checkpoints: Path | None) -> str:
    """A result file as a path below the checkpoint directory: elsewhere recoveries from different states would share it."""
    path = Path(result)
    if result.startswith(f"{PLACEHOLDER}/") and ".." not in path.parts:
        return result
    if checkpoints is not None and path.resolve().is_relative_to(checkpoints.resolve()):
        return f"{PLACEHOLDER}/{path.resolve().relative_to(checkpoints.resolve())}"
    if not path.is_absolute() and ".." not in path.parts and checkpoints is None:
        return f"{PLACEHOLDER}/{path}"
    raise UsageError(f"--result {result!r} is not below the checkpoint directory; give it as {PLACEHOLDER}/FILE")


def _checked(subject: Subject) -> Subject:
    """Refuse what cannot be started."""
    recipe = subject.recipe
    unreadable = next((word for word in recipe.command if word != word.encode(errors="replace").decode()), "")
    if unreadable:
        raise UsageError(
            f"{subject.name}: the word {unreadable!r} of the command is no UTF-8, in which runs are written; name a link to it"
        )
    directory = Path(recipe.directory)
    if not directory.is_dir():
        raise UsageError(f"{subject.name}: the directory {directory} is not there; correct it")
    path = recipe.environment.get("PATH", os.environ.get("PATH", os.defpath))
    if not _is_there(recipe.command[0], directory, path):
        raise WorkloadMissingError(workload=subject.name, program=recipe.command[0], directory=directory)
    if recipe.inspect and not _is_there(recipe.inspect[0], directory, path):
        raise UsageError(f"cannot find {recipe.inspect[0]!r}, which is to inspect, from {directory}; correct `inspect` or install it")
    return subject


def _is_there(program: str, directory: Path, path: str) -> bool:
    return (directory / program).is_file() if "/" in program else shutil.which(program, path=path) is not None
