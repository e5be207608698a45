"""The commands of ``harness``, in the order in which its help tells them."""

import os
import sys
from collections.abc import Sequence

import typer

from harness.cli.asked import WithCommand
from harness.cli.clusters import down_app, up_app
from harness.cli.commands.jobs import explore, reproduce_export
from harness.cli.commands.runs import check, replay, report, run
from harness.cli.commands.scenarios import list_scenarios, schema, show
from harness.cli.commands.surroundings import clean, doctor, emulate_services, init
from harness.cli.exits import EXIT_BROKEN, EXIT_INTERRUPTED, EXIT_USAGE, in_full
from harness.cli.gate import gate
from harness.cli.interruptions import interruptible
from harness.errors import BrokenHarnessError, TargetUnavailableError, UsageError

app = typer.Typer(
    name="harness",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    help="Proves that long AI training jobs survive their platforms.",
)

app.command("list")(list_scenarios)
app.command()(run)
app.command()(gate)
app.command()(check)
app.command()(report)
app.command()(replay)
app.command(cls=WithCommand)(explore)
app.command("reproduce")(reproduce_export)
app.command("emulate", cls=WithCommand)(emulate_services)
app.command()(clean)
app.command()(doctor)
app.command()(schema)
app.command()(show)
app.command()(init)
app.add_typer(up_app, name="up")
app.add_typer(down_app, name="down")


def run_app(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code."""
    try:
        with interruptible():
            exit_code = int(app(list(arguments), standalone_mode=False) or 0)
        return _fail("interrupted", exit_code) if exit_code == EXIT_INTERRUPTED else exit_code  # of a KeyboardInterrupt typer makes one
    except (UsageError, TargetUnavailableError) as error:
        return _fail(str(error), EXIT_USAGE)
    except BrokenHarnessError as error:
        return _fail(in_full(error), EXIT_BROKEN)
    except (KeyboardInterrupt, typer.Abort):
        return _fail("interrupted", EXIT_INTERRUPTED)
    except BrokenPipeError:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  the reader is gone; nothing can be flushed to it
        return EXIT_BROKEN
    except Exception as error:  # noqa: BLE001  the edge of the program: a person gets one line
        return _explain(error)


def _explain(error: Exception) -> int:
    """One line for what the command line refuses, and for what nobody foresaw; for that the traceback is one variable away."""
    format_message = getattr(error, "format_message", None)  # what typer raises for wrong usage has no public base class
    if format_message is not None:
        return _fail(str(format_message()), EXIT_USAGE)
    if os.environ.get("HARNESS_TRACEBACK"):
        raise error
    return _fail(f"{type(error).__name__}: {error}; this is a defect of the harness, HARNESS_TRACEBACK=1 shows where", EXIT_BROKEN)


def _fail(message: str, exit_code: int) -> int:
    typer.echo(f"harness: {message}", err=True)
    return exit_code
