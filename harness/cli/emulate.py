"""``harness emulate``: Google's services on loopback, for as long as somebody or a command needs them."""

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import typer

from harness.cli.beside import require_program, run_beside
from harness.cli.emulate_asked import faults_in, require_buckets, require_projects
from harness.cli.interruptions import Interruptions
from harness.clock import Clock
from harness.emulator.address import ANY_PORTS, Endpoints, Ports
from harness.emulator.standing import standing
from harness.errors import TargetUnavailableError, UsageError
from harness.targets.gcp.connection import EXTRA

if TYPE_CHECKING:
    from harness.emulator.emulator import Emulator

ROUND_S = 0.05
"""Between two looks whether somebody has interrupted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to stand.

    Attributes:
        root: Where everything is kept; None: in a directory that goes with the emulator.
        ports: Where to listen.
        projects: Their ids.
        buckets: Made in the first project, where they are not there.
        bucket_labels: What they are labelled, as ``KEY=VALUE``.
        inject: A file of faults.
        command: A command that needs it, after which it ends; None: it stands until it is interrupted.
        as_json: Whether a machine reads where it listens.
    """

    root: Path | None = None
    ports: Ports = ANY_PORTS
    projects: Sequence[str]
    buckets: Sequence[str] = ()
    bucket_labels: Sequence[str] = ()
    inject: Path | None = None
    command: Sequence[str] | None = None
    as_json: bool = False


def emulate(wish: Wish, clock: Clock) -> int:
    """Have the services until the command ends, or somebody interrupts; returns the exit code.

    Raises:
        UsageError: When something that is wished for cannot be.
        TargetUnavailableError: When Google's packages are not installed.
    """
    if wish.command is not None:
        require_program(wish.command)
    require_projects(wish.projects)
    labels = require_buckets(wish.buckets, wish.bucket_labels)
    make = _import_emulator()
    with (
        Interruptions() as interruptions,
        standing(wish.root) as here,
        make(here.root, clock=clock, projects=tuple(wish.projects), ports=wish.ports) as emulator,
    ):
        _make_buckets(emulator, wish.buckets, labels)
        for fault in faults_in(wish.inject, emulator.method_names() | emulator.route_names()):
            emulator.world.injections.add(fault)
        variables = emulator.endpoints.environment()
        _tell(wish, emulator.endpoints, variables, root=here.root)
        if wish.command is not None:
            return run_beside(wish.command, variables, interruptions, clock, run_id=here.owner.run_id)
        while not interruptions.count:
            clock.sleep(ROUND_S)
        return 0


def tell_coverage(*, as_json: bool, is_alone: bool) -> int:
    """Print what of Google's clients is spoken.

    Raises:
        UsageError: When something else is asked for, too.
        TargetUnavailableError: When Google's packages are not installed.
    """
    if not is_alone:
        raise UsageError("--coverage prints and ends: nothing stands and no command is run; leave all but --json away, or --coverage")
    make = _import_emulator()
    from harness.emulator.coverage_page import coverage_page
    from harness.emulator.measuring import measure_coverage

    with standing(None) as here, make(here.root) as emulator:
        found = measure_coverage(emulator)
        typer.echo(msgspec.json.encode(found).decode() if as_json else coverage_page(found), nl=as_json)
    return 0


def _import_emulator() -> "type[Emulator]":
    try:
        from harness.emulator.emulator import Emulator
    except ImportError as error:
        raise TargetUnavailableError(target="emulator", reason=f"{error.name} is not installed", advice=EXTRA) from error
    return Emulator


def _make_buckets(emulator: "Emulator", buckets: Sequence[str], labels: Mapping[str, str]) -> None:
    from harness.emulator.failures import ApiError

    try:
        for bucket in buckets:
            emulator.make_bucket(bucket, labels)
    except ApiError as error:
        raise UsageError(f"--bucket {bucket!r} cannot be made: {error.message}") from error


def _tell(wish: Wish, endpoints: Endpoints, variables: Mapping[str, str], *, root: Path) -> None:
    """Where it listens; beside a command on the error output, for the other one is the command's."""
    if wish.as_json:
        document = {"grpc": endpoints.grpc, "http": endpoints.http, "projects": wish.projects, "root": str(root), "environment": variables}
        lines = [msgspec.json.encode(document).decode()]
    else:
        lines = [f"gRPC {endpoints.grpc}, REST {endpoints.http}; projects {', '.join(wish.projects)}; all of it in {root}"]
        lines += [f"export {name}={shlex.quote(value)}" for name, value in variables.items()]
        lines += ["Ctrl-C ends it"] if wish.command is None else []
    for line in lines:
        typer.echo(line, err=wish.command is not None)
