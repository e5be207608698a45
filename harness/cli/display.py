"""What a person sees while scenarios run: a live table on a terminal, plain lines elsewhere."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from harness.cli.exits import EXIT_INTERRUPTED
from harness.cli.worker import Finished, Progressed, Refused, Waiting
from harness.clock import Clock
from harness.report import Summary
from harness.verdict import Outcome

STYLES: Mapping[str, str] = {
    Outcome.VALID: "green",
    Outcome.INVALID: "bold red",
    Outcome.UNKNOWN: "yellow",
    "stopped": "yellow",
    "error": "bold magenta",
}


def headings() -> str:
    """The line above the rows."""
    return f"{'verdict':8} {'faults':>6} {'tries':>5} {'lost':>4} {'recovery':>8} {'margin':>7}  scenario"


def row(message: Finished | Refused) -> str:
    """One line for a scenario: verdict, faults landed, attempts, lost steps, recovery time, margin to grace."""
    if isinstance(message, Refused):
        return f"{outcome_of(message):8} {'':>6} {'':>5} {'':>4} {'':>8} {'':>7}  {message.scenario}"
    found = message.summary
    faults = f"{found.faults_landed}/{found.faults_declared}"
    figures = f"{_number(found.lost_steps):>4} {_seconds(found.recovery_s):>8} {_seconds(found.margin_s):>7}"
    return f"{found.outcome:8} {faults:>6} {found.attempts:>5} {figures}  {found.scenario}"


def outcome_of(message: Finished | Refused) -> str:
    """The verdict; of a run without one ``stopped``, where we were interrupted, or ``error``."""
    if isinstance(message, Finished):
        return message.summary.outcome
    return "stopped" if message.exit_code == EXIT_INTERRUPTED else "error"


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
    """Plain lines, one a scenario as it ends, and two where it has to wait: for logs and pipes."""

    def __init__(self, console: Console, clock: Clock) -> None:
        self._console = console
        self._clock = clock
        self._has_headings = False
        self._waiting_since_s: dict[str, float] = {}

    def began(self, scenario: str) -> None:
        """Say nothing: a line a scenario is enough."""

    def progressed(self, message: Progressed) -> None:
        """Say nothing."""

    def waiting(self, message: Waiting) -> None:
        """Say for whom it waits, once, and that it goes on."""
        if not message.why:
            waited_s = self._clock.monotonic_s() - self._waiting_since_s.pop(message.scenario, self._clock.monotonic_s())
            self._say(f"{message.scenario}: goes on after {waited_s:.0f} s")
        elif message.scenario not in self._waiting_since_s:
            self._waiting_since_s[message.scenario] = self._clock.monotonic_s()
            self._say(f"{message.scenario}: {message.why}")

    def ticked(self) -> None:
        """Say nothing."""

    def ended(self, message: Finished | Refused) -> None:
        """Print the scenario's line, and why where it is not valid."""
        self._waiting_since_s.pop(message.scenario, None)
        if not self._has_headings:
            self._has_headings = True
            self._console.print(headings(), style="dim", highlight=False, soft_wrap=True)
        print_row(self._console, message)

    def stopping(self, scenarios: Sequence[str], patience_s: float, why: str) -> None:
        """Say at once what is being ended, and what that may take."""
        names = ", ".join(scenarios) or "nothing"
        self._say(f"{why}; ends what runs: {names}; that may take up to {patience_s:.0f} s; a second interrupt waits no longer")

    def _say(self, line: str) -> None:
        self._console.print(Text(line, style="dim"), highlight=False, soft_wrap=True)


def print_row(console: Console, message: Finished | Refused) -> None:
    """Print a scenario's line, and why where it is not valid."""
    style = STYLES[outcome_of(message)]
    text = Text(row(message))
    text.stylize(style, 0, 8)
    console.print(text, highlight=False, soft_wrap=True)
    for line in explanation(message):
        console.print(Text(f"         {line}", style="dim"), highlight=False, soft_wrap=True)


@dataclass(slots=True)
class _Running:
    """A scenario at the moment, and for how long; while it waits for its turn, that stands still."""

    began_s: float
    text: str = ""
    waits_since_s: float | None = None
    waited_s: float = 0.0

    def hear(self, why: str, now_s: float) -> None:
        """It waits, and for whom; without a reason it goes on."""
        self.text = why
        if why and self.waits_since_s is None:
            self.waits_since_s = now_s
        elif not why and self.waits_since_s is not None:
            self.waited_s += now_s - self.waits_since_s
            self.waits_since_s = None

    def told(self, now_s: float) -> tuple[str, str]:
        """For how long it runs, and how far it is."""
        if self.waits_since_s is None:
            return f"{now_s - self.began_s - self.waited_s:5.1f} s", self.text
        return f"{self.waits_since_s - self.began_s - self.waited_s:5.1f} s", f"waits, {now_s - self.waits_since_s:.0f} s: {self.text}"


class LiveDisplay:
    """The same lines on a terminal, with what runs at the moment below them."""

    def __init__(self, console: Console, clock: Clock, total: int) -> None:
        self._plain = PlainDisplay(console, clock)
        self._clock = clock
        self._total = total
        self._done = 0
        self._running: dict[str, _Running] = {}
        self._began_s = clock.monotonic_s()
        self._live = Live(self._table(), console=console, refresh_per_second=8, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def began(self, scenario: str) -> None:
        """Show it among what runs."""
        self._running[scenario] = _Running(self._clock.monotonic_s())

    def progressed(self, message: Progressed) -> None:
        """Show how far it is."""
        if message.scenario in self._running:
            self._running[message.scenario].text = message.text

    def waiting(self, message: Waiting) -> None:
        """Show that it waits, and for whom."""
        if message.scenario in self._running:
            self._running[message.scenario].hear(message.why, self._clock.monotonic_s())

    def ended(self, message: Finished | Refused) -> None:
        """Print its line above the table."""
        self._running.pop(message.scenario, None)
        self._done += 1
        self._plain.ended(message)

    def stopping(self, scenarios: Sequence[str], patience_s: float, why: str) -> None:
        """Print above the table what is being ended."""
        self._plain.stopping(scenarios, patience_s, why)

    def ticked(self) -> None:
        """Redraw."""
        self._live.update(self._table())

    def _table(self) -> Table:
        now_s = self._clock.monotonic_s()
        table = Table.grid(padding=(0, 1))
        for scenario, running in self._running.items():
            lasted, text = running.told(now_s)
            table.add_row(Text("…", style="cyan"), Text(lasted), Text(scenario), Text(text, style="dim"))
        table.add_row("", "", Text(f"{self._done} of {self._total} scenarios, {now_s - self._began_s:.0f} s", style="bold"))
        return table
