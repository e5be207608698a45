"""What is written and told when a gate is over, and whether it is accepted."""

from dataclasses import dataclass
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from harness.cli.exits import EXIT_INTERRUPTED
from harness.cli.gate_summary import Summary
from harness.cli.gating import Gate
from harness.errors import UsageError
from harness.gate.acceptance import NotAcceptableError, accept
from harness.gate.document import GateConfig
from harness.gate.markdown import write_markdown
from harness.gate.outcome import GateOutcome
from harness.gate.result import SUMMARY_NAME, accepted_path, refuse_another, write_accepted
from harness.scenario import encode
from harness.store import write_whole, writing_problem

EXIT_CODES = {"pass": 0, "fail": 1, "unknown": 2}

STYLES = {"pass": "green", "fail": "bold red", "unknown": "yellow"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What the command line says of a result.

    Attributes:
        path: The ``gate.toml``.
        accepted: Where the accepted result is, instead of where ``gate.toml`` says.
        accepts: Whether the result shall be accepted.
        summary: The summary, and where it is written too.
        as_json: Whether the result is printed for a machine.
    """

    path: Path
    accepted: Path | None
    accepts: bool
    summary: Summary
    as_json: bool


def accepted_place(said: Said, config: GateConfig, place: str) -> Path:
    """Where the accepted result is: as the command line says, else as the gate does."""
    return said.accepted or accepted_path(config.gate.accepted, said.path.parent, place)


def conclude(said: Said, wanted: Gate, outcome: GateOutcome, directory: Path | None, *, broken: int) -> int:
    """Write and tell what came of it, accept it where that is asked for, and return the exit code.

    Raises:
        StoreError: When it cannot be written.
    """
    markdown = write_markdown(outcome.measured, outcome.judged, wanted.accepted)
    if said.as_json:
        typer.echo(encode(outcome).decode().rstrip())
    console = Console(stderr=said.as_json)
    for line in _lines(outcome):
        console.print(line, highlight=False, soft_wrap=True)
    if directory is not None:  # told first: whoever cannot write knows what came of it all the same
        write_whole(directory / SUMMARY_NAME, markdown.encode())
    said.summary.write(markdown)
    if directory is not None:
        console.print(f"result: {directory}", highlight=False, soft_wrap=True)
    code = broken or EXIT_CODES[outcome.judged.ruling]
    if not said.accepts or broken == EXIT_INTERRUPTED:
        return code
    path = accepted_place(said, wanted.config, wanted.place)
    try:
        write_accepted(path, accept(outcome.measured, wanted.standards))
    except NotAcceptableError as error:
        console.print(Text(str(error), style="bold red"), highlight=False, soft_wrap=True)
        return broken or EXIT_CODES[error.ruling]
    console.print(f"accepted: {path}; put it under version control", highlight=False, soft_wrap=True)
    return 0


def require_acceptable(said: Said, wanted: Gate) -> None:
    """Refuse to accept what would not be written, before anything is run.

    Raises:
        UsageError: When what is accepted there is of another target, or nothing can be written there.
    """
    if said.accepts:
        path = accepted_place(said, wanted.config, wanted.place)
        refuse_another(path, wanted.accepted, wanted.place)
        problem = writing_problem(path)
        if problem:
            raise UsageError(f"what is accepted cannot be written to {path}: {problem}; name another place with --accepted")


def _lines(outcome: GateOutcome) -> list[Text]:
    judged = outcome.judged
    lines = [Text(f"gate: {judged.ruling}", style=STYLES[judged.ruling])]
    lines += [Text.assemble((f"{'unknown':8}", STYLES["unknown"]), f" {reason}") for reason in judged.reasons]
    for scenario in judged.scenarios:
        if scenario.ruling != "pass":
            lines.append(Text.assemble((f"{scenario.ruling:8}", STYLES[scenario.ruling]), f" {scenario.name}"))
            lines += [Text(f"         {reason}", style="dim") for reason in scenario.reasons]
    return [*lines, *(Text(f"note     {note}", style="dim") for note in judged.notes)]
