"""What ``harness explore`` is asked, in words of ``harness.explore``."""

import shlex
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import typer
from typer.core import TyperCommand

from harness.cli.catalogue import DEFAULT_CATALOGUE, load
from harness.config import read_config
from harness.errors import UnknownNameError, UsageError
from harness.explore.frontier import SurfaceName, surfaces_of
from harness.explore.models import MODELS
from harness.explore.options import ExecutorName
from harness.explore.states import Model, Scope
from harness.explore.subject import Subject, subject_of_command, subject_of_workload
from harness.scenario import Workload

SEPARATOR = "--"

RECOVERY_TIMEOUT_S_MAX = 86_400.0
"""A day."""


class WithCommand(TyperCommand):
    """A command whose words after ``--`` are a command line of somebody else; they become the context's ``obj``."""

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        """Take them away before the rest is parsed.

        Raises:
            UsageError: When the rest cannot be what is meant, and has a program in it, as where ``--`` was forgotten.
        """
        if SEPARATOR in args:
            at = args.index(SEPARATOR)
            args, ctx.obj = args[:at], tuple(args[at + 1 :])
            return super().parse_args(ctx, args)
        program = next((word for word in args if not word.startswith("-") and shutil.which(word)), "")
        try:
            return super().parse_args(ctx, [*args])
        except Exception as error:
            format_message = getattr(error, "format_message", None)  # what typer raises for wrong usage has no public base class
            if format_message is None or not program:
                raise
            raise UsageError(f"{format_message().rstrip('.')}; the command of a job comes after --: `-- {program} ...`") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """Which job: exactly one of the three.

    Attributes:
        name: Of a workload of the catalogue.
        config: A ``harness.toml``.
        command: A command line; None: no ``--`` was given.
    """

    name: str
    config: Path | None
    command: Sequence[str] | None

    @property
    def is_nothing(self) -> bool:
        """Whether none was named."""
        return not self.name and self.config is None and self.command is None


def subject_asked_for(asked: Asked, *, catalogue: str = DEFAULT_CATALOGUE, root: Path, seed: int) -> Subject:
    """The job that was asked for.

    Raises:
        UsageError: When it is none, or several.
    """
    given = [asked.name != "", asked.config is not None, asked.command is not None]
    if sum(given) != 1:
        named = "nothing to explore" if not any(given) else "several jobs to explore"
        raise UsageError(f"{named}: name a workload of the catalogue, or give --config FILE, or -- and a command")
    if asked.command is not None:
        if not asked.command:
            raise UsageError("nothing to explore: no command follows --")
        return subject_of_command(asked.command, directory=root, seed=seed)
    if asked.config is not None:
        scenarios = read_config(asked.config)
        workload = next(iter(scenarios.values())).workload
        return subject_of_workload(workload, root=asked.config.parent.resolve(), seed=seed)
    return subject_of_workload(workload_asked_for(asked.name, catalogue=catalogue, root=root), root=root, seed=seed)


def workload_asked_for(name: str, *, catalogue: str, root: Path) -> Workload:
    """A workload of the catalogue by name.

    Raises:
        UsageError: When the catalogue cannot be loaded, or has none of that name.
    """
    known: dict[str, Workload] = {}
    for scenario in load(catalogue=catalogue, config=None, root=root).values():
        known.setdefault(scenario.workload.name, scenario.workload)  # later scenarios may change its environment
    if name not in known:
        advice = f"a command stands after --, as in: harness explore -- {name} ..." if shutil.which(name) else ""
        raise UnknownNameError(kind="workload", name=name, known=list(known), advice=advice)
    return known[name]


def models_asked_for(names: Sequence[str]) -> tuple[Model, ...]:
    """Storage models by name, in the order of the rooms; none asked for is all. Commas may stand between several.

    Raises:
        UnknownNameError: When one is not known.
    """
    names = _split(names)
    _require_known("storage model", names, list(MODELS))
    return tuple(model for model in MODELS if not names or model in names)


def scopes_asked_for(names: Sequence[str]) -> tuple[Scope, ...]:
    """Scopes by name; none asked for is all. Commas may stand between several.

    Raises:
        UnknownNameError: When one is not known.
    """
    names = _split(names)
    scopes: tuple[Scope, ...] = get_args(Scope)
    _require_known("scope", names, scopes)
    return tuple(scope for scope in scopes if not names or scope in names)


def surfaces_asked_for(storage: Sequence[str], scopes: Sequence[str]) -> tuple[SurfaceName, ...]:
    """The surfaces of storage models and scopes by name; none asked for is all.

    Raises:
        UnknownNameError: When a name is not known.
        UsageError: When none of the models has any of the scopes.
    """
    models, wanted = models_asked_for(storage), scopes_asked_for(scopes)
    surfaces = surfaces_of(models, wanted)
    if not surfaces:
        having = [name for name, model in MODELS.items() if not set(wanted).isdisjoint(model.scopes)]
        raise UsageError(f"{' and '.join(models)} cannot die by {' or '.join(wanted)}: only {', '.join(having)} can; name one of them")
    return surfaces


def executor_asked_for(name: str, *, checkpoints: Path | None) -> ExecutorName:
    """An executor by name.

    Raises:
        UnknownNameError: When it is not known.
        UsageError: When it cannot be what is meant.
    """
    if name == "ray" and checkpoints is not None:
        raise UsageError("--executor ray tries many states at once, and --checkpoint-dir is one place; leave one of them away")
    known: tuple[ExecutorName, ...] = get_args(ExecutorName)
    _require_known("executor", [name], known)
    return next(each for each in known if each == name)


def checkpoints_asked_for(text: str | None) -> Path | None:
    """The one place where a job saves; None: any.

    Raises:
        UsageError: When it is empty, as an unset variable is, which would be the current directory.
    """
    if text == "":
        raise UsageError("--checkpoint-dir is empty; name the directory where the job saves")
    return None if text is None else Path(text)


def timeout_asked_for(seconds: float | None) -> float:
    """What a recovery may take; not asked for: 0.

    Raises:
        UsageError: When it is no time that a recovery can take.
    """
    if seconds is not None and not 0 < seconds <= RECOVERY_TIMEOUT_S_MAX:
        raise UsageError(f"--recovery-timeout {seconds:g} is no time for a recovery; give seconds, at most {RECOVERY_TIMEOUT_S_MAX:g}")
    return seconds or 0.0


def words_asked_for(inspect: str) -> tuple[str, ...]:
    """The words of the command that inspects; none asked for: nothing.

    Raises:
        UsageError: When its quotes do not match.
    """
    try:
        return tuple(shlex.split(inspect))
    except ValueError as error:
        raise UsageError(f"--inspect {inspect!r} is no command: {error}; quote it as for a shell") from error


def _split(names: Sequence[str]) -> list[str]:
    """Names between which commas may stand."""
    return [each.strip() for name in names for each in name.split(",")]


def _require_known(kind: str, names: Sequence[str], known: Sequence[str]) -> None:
    for name in names:
        if name not in known:
            raise UnknownNameError(kind=kind, name=name, known=known)
