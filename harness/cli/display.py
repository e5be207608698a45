"""What a person sees while scenarios run: a live table on a terminal, plain lines elsewhere."""

from collections.abc import Mapping
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from harness.cli.worker import Finished, Progressed, Refused
from harness.clock import Clock
from harness.report import Summary
from harness.verdict import Outcome

STYLES: Mapping[str, str] = {Outcome.VALID: "green", Outcome.INVALID: "bold red", Outcome.UNKNOWN: "yellow", "error": "bold magenta"}


def headings() -> str:
    """The line above the rows."""
    return f"{'verdict':8} {'faults':>6} {'tries':>5} {'lost':>4} {'recovery':>8} {'margin':>7}  scenario"


def row(message: Finished | Refused) -> str:
    """One line for a scenario: verdict, faults landed, attempts, lost steps, recovery time, margin to grace."""
    if isinstance(message, Refused):
        return f"{'error':8} {'':>6} {'':>5} {'':>4} {'':>8} {'':>7}  {message.scenario}"
    found = message.summary
    faults = f"{found.faults_landed}/{found.faults_declared}"
    figures = f"{_number(found.lost_steps):>4} {_seconds(found.recovery_s):>8} {_seconds(found.margin_s):>7}"
    return f"{found.outcome:8} {faults:>6} {found.attempts:>5} {figures}  {found.scenario}"


def outcome_of(message: Finished | Refused) -> str:
    """The verdict, or ``error``."""
    return message.summary.outcome if isinstance(message, Finished) else "error"


def explanation(message: Finished | Refused) -> list[str]:
    """Why a scenario is not valid, and where to look."""
    if isinstance(message, Refused):
        return [message.message, *([f"run: {message.directory}"] if message.directory else [])]
    found: Summary = message.summary
    return [] if found.outcome == Outcome.VALID else [*found.reasons, f"run: {found.run}"]


def _number(value: int | None) -> str:
    return "-" if value is None else str(value)


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f} s"


class PlainDisplay:
    """Plain lines, one a scenario as it ends: for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._has_headings = False

    def began(self, scenario: str) -> None:
        """Say nothing: a line a scenario is enough."""

    def progressed(self, message: Progressed) -> None:
        """Say nothing."""

    def ticked(self) -> None:
        """Say nothing."""

    def ended(self, message: Finished | Refused) -> None:
        """Print the scenario's line, and why where it is not valid."""
        if not self._has_headings:
            self._has_headings = True
            self._console.print(headings(), style="dim", highlight=False, soft_wrap=True)
        print_row(self._console, message)


def print_row(console: Console, message: Finished | Refused) -> None:
    """Print a scenario's line, and why where it is not valid."""
    style = STYLES[outcome_of(message)]
    text = Text(row(message))
    text.stylize(style, 0, 8)
    console.print(text, highlight=False, soft_wrap=True)
    for line in explanation(message):
        console.print(Text(f"         {line}", style="dim"), highlight=False, soft_wrap=True)


class LiveDisplay:
    """The same lines on a terminal, with what runs at the moment below them."""

    def __init__(self, console: Console, clock: Clock, total: int) -> None:
        self._plain = PlainDisplay(console)
        self._clock = clock
        self._total = total
        self._done = 0
        self._running: dict[str, tuple[float, str]] = {}
        self._began_s = clock.monotonic_s()
        self._live = Live(self._table(), console=console, refresh_per_second=8, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def began(self, scenario: str) -> None:
        """Show it among what runs."""
        self._running[scenario] = (self._clock.monotonic_s(), "")

    def progressed(self, message: Progressed) -> None:
        """Show how far it is."""
        if message.scenario in self._running:
            self._running[message.scenario] = (self._running[message.scenario][0], message.text)

    def ended(self, message: Finished | Refused) -> None:
        """Print its line above the table."""
        self._running.pop(message.scenario, None)
        self._done += 1
        self._plain.ended(message)

    def ticked(self) -> None:
        """Redraw."""
        self._live.update(self._table())

    def _table(self) -> Table:
        now_s = self._clock.monotonic_s()
        table = Table.grid(padding=(0, 1))
        for scenario, (began_s, text) in self._running.items():
            table.add_row(Text("…", style="cyan"), Text(f"{now_s - began_s:5.1f} s"), Text(scenario), Text(text, style="dim"))
        table.add_row("", "", Text(f"{self._done} of {self._total} scenarios, {now_s - self._began_s:.0f} s", style="bold"))
        return table
