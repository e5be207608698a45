"""What a person sees of an incident on a terminal: the time-line, the diagnoses, what was lost, and what its scenario did here."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from harness.cli.display import STYLES
from harness.cli.explore import shown
from harness.cli.wrapping import say_line
from harness.clock import Clock
from harness.incidents import Incident
from harness.incidents.comparison import Comparison
from harness.incidents.directory import Kept
from harness.report.text import line
from harness.report.wording import count, duration, share
from harness.verdict import Outcome

MOMENTS_SHOWN = 40
"""On a terminal; the page and the document have more."""

DIAGNOSES_SHOWN = 20
"""The worst of them come first; of five thousand attempts of a job that always fails, the first twenty say it."""

TOLD_EVERY_S = 5.0
"""To somebody who waits: what is quicker needs no word."""


class Progress:
    """Tells how far the reading of an export is, to a person who waits."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_s = clock.monotonic_s() + TOLD_EVERY_S

    def __call__(self, count: int) -> None:
        """So many parts of it were read."""
        now_s = self._clock.monotonic_s()
        if now_s >= self._due_s:
            self._due_s = now_s + TOLD_EVERY_S
            typer.echo(f"{count} parts of the export were read", err=True)


def print_incident(console: Console, kept: Kept, *, attempts: int, why_not: str) -> None:
    """Print what happened, what it cost, what was not read, and where all of it lies; ``why_not``: why there is no scenario."""
    incident = kept.incident
    entries = count(incident.counts.read, "entry", "entries")
    say(console, f"{line(incident.name)} on {incident.platform}: {entries}, {count(attempts, 'attempt')}")
    moments = incident.moments
    for moment in moments[:MOMENTS_SHOWN]:
        where = "" if moment.attempt is None else f"attempt {moment.attempt}: "
        where = f"task {moment.task} {where}" if where and moment.task else where
        say_line(console, f"  {moment.t_s:10.3f} s  {where}{line(moment.what)}", indent=16)
    if len(moments) + incident.moments_left_out > MOMENTS_SHOWN:
        say(console, f"  {len(moments) + incident.moments_left_out - MOMENTS_SHOWN} more in the report")
    _print_diagnoses(console, incident, shown(kept.directory.incident_path))
    for told in (*_cut(_losses(incident), f"tasks: {shown(kept.directory.incident_path)}"), *_unread(incident)):
        say(console, told)
    if kept.reproduction is not None:
        for note in _cut([f"not in the scenario: {note}" for note in kept.reproduction.notes], "not in the scenario: --json lists them"):
            say(console, note)
        say(console, f"scenario: {shown(kept.directory.reproduction_path)}")
    elif why_not:
        say(console, why_not)
    say(console, f"report: {shown(kept.directory.report_path)}")


def _print_diagnoses(console: Console, incident: Incident, path: str) -> None:
    """The worst of them, each with its entries; what to do once for each kind."""
    advised: set[str] = set()
    for each in incident.diagnoses[:DIAGNOSES_SHOWN]:
        head = Text(f"{each.outcome:8}", style=STYLES[each.outcome])
        say_line(console, f"{each.kind} ({each.certainty}): {line(each.says)}", head=head, indent=8)
        for evidence in each.evidence:
            say_line(console, f"          {line(str(evidence))}", style="dim", indent=12)
        if each.outcome is not Outcome.VALID and each.kind not in advised:
            advised.add(each.kind)
            say_line(console, f"        what to do: {each.advice}", indent=12)
    others = Counter(str(each.outcome) for each in incident.diagnoses[DIAGNOSES_SHOWN:])
    if others:
        counted = ", ".join(f"{number} {outcome}" for outcome, number in others.items())
        say(console, f"{others.total()} more diagnoses ({counted}): {path}")


def _cut(told: Sequence[str], what: str) -> Sequence[str]:
    """The first of them, and how many more there are."""
    left = len(told) - DIAGNOSES_SHOWN
    return told if left <= 0 else [*told[:DIAGNOSES_SHOWN], f"{left} more {what}"]


def _losses(incident: Incident) -> Sequence[str]:
    told: list[str] = []
    for each in incident.losses:
        task = f"task {each.task}: " if len(incident.losses) > 1 else ""
        steps = "steps done again are not told" if each.lost_steps is None else f"{count(each.lost_steps, 'step')} done again"
        recovery = "no recovery" if each.recovery_s is None else f"recovery took {duration(each.recovery_s)}"
        goodput = "" if each.goodput is None else f", goodput {share(each.goodput, 1)}"
        told.append(f"{task}{steps}, {recovery}, {duration(each.wall_s)} in all{goodput}")
    return told


def _unread(incident: Incident) -> Sequence[str]:
    counts = incident.counts
    told = [f"not known: {count(each.count, 'entry', 'entries')}: {line(each.what)}" for each in incident.unknown[:5]]
    told += [f"no entry: {each.place}: {line(each.problem)}" for each in incident.malformed[:5]]
    if counts.malformed > 5:
        told.append(f"no entry: {counts.malformed - 5} parts more")
    return told


def print_comparison(console: Console, comparison: Comparison) -> None:
    """Print whether the scenario went wrong in the same way here."""
    names = {"the same": comparison.same, "only in the incident": comparison.missing, "only here": comparison.additional}
    told = [f"{what}: {', '.join(kinds)}" for what, kinds in names.items() if kinds]
    said = "it went the same way here" if comparison.is_same else "it went another way here"
    then, now = ("not told" if steps is None else str(steps) for steps in comparison.lost_steps)
    say(console, f"{said}{': ' if told else ''}{'; '.join(told)}; steps done again: {then} then, {now} here")
    say(console, f"run: {shown(Path(comparison.run))}")


def say(console: Console, text: str) -> None:
    """Print one line."""
    say_line(console, text, indent=4)
