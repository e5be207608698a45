"""What a person sees of an exploration: how far judging is, and what came of it, a line for each storage model and scope."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from harness.cli.display import STYLES
from harness.clock import Clock
from harness.explore.conclusion import why_undecided
from harness.explore.judging.trial import DISTURBED
from harness.explore.page import recorded_of
from harness.explore.result import Exploration, Recorded, Surface, Vulnerability, name_of
from harness.explore.vulnerabilities import before_what, mistake_of
from harness.report.text import codes, line
from harness.report.wording import count, duration
from harness.verdict import Outcome

VULNERABILITIES_MAX = 5
"""Of one surface on a terminal, and of what stands together; the report has all of them."""

REPORT_COLUMN = 51
"""Where the path of the report stands in the last line."""

TOLD_EVERY_S = 10.0
"""Without a terminal: often enough to see that it goes on, seldom enough for a log."""


def print_recorded(console: Console, recorded: Recorded) -> None:
    """Say what was recorded, and what was not seen of it."""
    say(console, Text(f"recorded {recorded_of(recorded)}"))
    if not recorded.is_exact:
        say(console, Text(f"  operations were not seen, only markers: {line(recorded.why_not)}", style=STYLES[Outcome.UNKNOWN]))
    if recorded.is_exact and not recorded.saves and not recorded.blind:
        say(
            console,
            Text("  it says nothing of its saves, so lost work is not looked for: a harness.toml can tell how it speaks", style="dim"),
        )
    for each in recorded.blind:
        say(console, Text.assemble(("  not seen: ", STYLES[Outcome.UNKNOWN]), coded(each)))
    for each in recorded.notes:
        say(console, Text.assemble("  ", coded(each)))


def print_result(console: Console, exploration: Exploration, *, report: str) -> None:
    """Print a line for each surface with what it shows, and the verdict; ``report`` is the path of the page."""
    told: set[str] = set()
    known: set[tuple[str, ...]] = set()
    again: set[tuple[str, ...]] = set()
    rows = [surface for surface in exploration.surfaces if not surface.after]
    for surface in (*rows, *(surface for surface in exploration.surfaces if surface.after)):
        shown = [each for each in surface.vulnerabilities if not surface.after or mistake_of(each) not in known]
        again.update(known.intersection(map(mistake_of, surface.vulnerabilities)) if surface.after else ())
        known.update(map(mistake_of, surface.vulnerabilities))
        if not surface.after or shown:
            say(console, Text(f"crash in recovery: {name_of(surface)}") if surface.after else _row(surface, rows))
        groups = _together(shown)
        for group in groups[:VULNERABILITIES_MAX]:
            for told_line in _told(group, is_new=group[0].says not in told):
                say(console, told_line)
            told.update(each.says for each in group)
        left = sum(map(len, groups[VULNERABILITIES_MAX:]))
        if left:
            say(console, Text(f"  and {left:,} more in the report", style="dim"))
    if DISTURBED in exploration.judge:
        say(console, Text(DISTURBED, style="dim"))
    if any(not surface.is_complete for surface in exploration.surfaces):
        say(console, Text("there are more states than could be counted", style=STYLES[Outcome.UNKNOWN]))
    _say_relapses(console, [surface for surface in exploration.surfaces if surface.after], again=len(again))
    if exploration.recoveries_cut:
        recoveries = count(exploration.recoveries_cut, "recovery", "recoveries")
        say(console, Text(f"not looked at: crashes in {recoveries}, for which the budget was spent", style=STYLES[Outcome.UNKNOWN]))
    cut = sum(surface.cut for surface in exploration.surfaces)
    if cut:
        spent = f"the budget was {exploration.budget}" if exploration.budget else "it was interrupted"  # nothing else cuts what has no end
        say(console, Text(f"not judged: {count(cut, 'state')}, {spent}", style=STYLES[Outcome.UNKNOWN]))
    for reason in _doubts(exploration):
        say(console, Text.assemble(("unknown: ", STYLES[Outcome.UNKNOWN]), coded(reason)))
    verdict = Text.assemble("verdict: ", (exploration.outcome.value, STYLES[exploration.outcome]))
    verdict.pad_right(max(2, REPORT_COLUMN - len(verdict)))
    say(console, verdict.append(f"report: {line(report)}"))


def print_exploration(console: Console, exploration: Exploration, *, report: str) -> None:
    """Print all of an exploration that is over."""
    print_recorded(console, exploration.recorded)
    print_result(console, exploration, report=report)


def _doubts(exploration: Exploration) -> Iterator[str]:
    """Why not more is known, beside what is wrong too; what was not seen is told with the recording."""
    recorded = exploration.recorded
    if exploration.outcome is Outcome.UNKNOWN:
        yield from (reason for reason in exploration.reasons if reason not in recorded.blind)
    elif exploration.outcome is Outcome.INVALID:
        yield from why_undecided(recorded, exploration.surfaces)


def _say_relapses(console: Console, surfaces: Sequence[Surface], *, again: int) -> None:
    """What came of crashes in recovery, in a line; ``again``: vulnerabilities that had been told before."""
    if not surfaces:
        return
    states = [state for surface in surfaces for state in surface.states]
    recoveries = count(len({surface.after for surface in surfaces}), "recovery", "recoveries")
    said = [(sum(state.outcome is outcome for state in states), str(outcome or "not judged")) for outcome in (*Outcome, None)]
    told = ", ".join(f"{number:,} {word}" for number, word in said if number)
    shown = f"; {again:,} of what must hold {'is' if again == 1 else 'are'} shown again" if again else ""
    say(console, Text(f"crashes in {recoveries}: {count(len(states), 'state')}: {told}{shown}"))


def _row(surface: Surface, all_of_them: Iterable[Surface]) -> Text:
    models, points, states = zip(*((each.model, f"{each.kill_points:,}", f"{len(each.states):,}") for each in all_of_them), strict=True)
    name = f"{surface.model:{_width(models)}} {surface.scope:8}"
    assumed = f" (assumed: {line('; '.join(surface.assumed))})" if surface.assumed else ""
    if surface.same_as:
        return Text(f"{name} leaves the same states as {surface.same_as}{assumed}", style="dim")
    figures = f"{surface.kill_points:>{_width(points)},} kill points   {len(surface.states):>{_width(states)},} states   "
    row = Text(f"{name} {figures}")
    counts = [(surface.count(outcome), outcome.value) for outcome in (Outcome.INVALID, Outcome.UNKNOWN)]
    counts.append((sum(state.outcome is None for state in surface.states), "not judged"))
    worse = [(number, word) for number, word in counts if number]
    valid = surface.count(Outcome.VALID)
    if not worse or (valid and not surface.count(Outcome.INVALID)):  # beside what is wrong, what is right is no news
        worse.insert(0, (valid, Outcome.VALID.value))
    for number, word in worse:
        row.append("" if row.plain.endswith("   ") else ", ").append(f"{number:,} {word}", style=STYLES.get(word, STYLES[Outcome.UNKNOWN]))
    return row.append(assumed, style=STYLES[Outcome.UNKNOWN])


def _width(words: Iterable[str]) -> int:
    return max(map(len, words))


def _together(vulnerabilities: Sequence[Vulnerability]) -> list[list[Vulnerability]]:
    """Vulnerabilities in their order; what must be durable before the same operation stands together."""
    groups: dict[str, list[Vulnerability]] = defaultdict(list)
    for each in vulnerabilities:
        groups[before_what(each) or each.says].append(each)
    return list(groups.values())


def _told(group: Sequence[Vulnerability], *, is_new: bool) -> Iterator[Text]:
    """What must hold and what it leads to; the first time also how to see the worst of it again."""
    worst, *others = group
    if others:
        yield Text.assemble("  ", coded(f"must be durable before {before_what(worst)}:"))
        for each in group[:VULNERABILITIES_MAX]:
            yield Text.assemble("    ", (line(each.first), "bold"), *_leading(each))
        if len(group) > VULNERABILITIES_MAX:
            yield Text(f"    and {len(group) - VULNERABILITIES_MAX:,} more in the report", style="dim")
    else:
        yield Text.assemble("  ", coded(worst.says), *_leading(worst))
    if is_new:
        yield Text.assemble(("    smallest: ", "dim"), coded(worst.example))
        yield Text(f"    replay: {line(worst.replay)}", style="dim")


def _leading(vulnerability: Vulnerability) -> Iterator[str | tuple[str, str]]:
    """What it leads to, and what that rests on."""
    yield f": {line(vulnerability.leads_to)}" if vulnerability.leads_to else ""
    if vulnerability.assumed:
        yield f" (assumed: {line('; '.join(vulnerability.assumed))})", STYLES[Outcome.UNKNOWN]


def coded(text: str) -> Text:
    """A sentence with its names in bold; no character of it acts on the terminal."""
    return Text.assemble(*((line(piece), "bold" if is_code else "") for piece, is_code in codes(text)))


def say(console: Console, text: Text) -> None:
    """A line, as long as it is."""
    console.print(text, highlight=False, soft_wrap=True)


class JudgingDisplay:
    """How many states are judged, of how many; what is invalid for the first time is told at once.

    On a terminal one line stands below all others and changes; elsewhere a line comes now and then.

    Args:
        console: Where to.
        clock: The time.
        total: States that are to be judged.
        budget_s: Seconds that are granted for it; None: no end.
    """

    def __init__(self, console: Console, clock: Clock, total: int, *, budget_s: float | None = None) -> None:
        self._console = console
        self._clock = clock
        self.total = total
        self._budget_s = budget_s
        self._began_s = self._told_s = clock.monotonic_s()
        self._done = dict.fromkeys(Outcome, 0)
        self._shown: set[tuple[str, str]] = set()
        self._live = Live(self.line(), console=console, refresh_per_second=8, transient=True) if console.is_terminal else None

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def judged(self, surface: str, outcome: Outcome, promise: str = "", says: str = "") -> None:
        """Count a state; the first that breaks a promise on a surface is told in words."""
        self._done[outcome] += 1
        if outcome is Outcome.INVALID and (surface, promise) not in self._shown:
            self._shown.add((surface, promise))
            say(self._console, Text.assemble((f"{outcome.value}: ", STYLES[outcome]), f"{line(surface)}: {promise}: ", coded(says)))
        self.ticked()

    def ticked(self) -> None:
        """Show how far it is."""
        if self._live is not None:
            self._live.update(self.line())
        elif self._clock.monotonic_s() - self._told_s >= TOLD_EVERY_S:
            self._told_s = self._clock.monotonic_s()
            say(self._console, self.line())

    def line(self) -> Text:
        """How far it is: ``120 of 545 states known so far judged, 3 invalid, 31.0 s of 60 s``."""
        lasted = duration(self._clock.monotonic_s() - self._began_s)
        budget = f" of {self._budget_s:g} s" if self._budget_s is not None else ""
        told = [f"{sum(self._done.values()):,} of {count(self.total, 'state')} known so far judged"]
        told += [f"{self._done[outcome]:,} {outcome.value}" for outcome in (Outcome.INVALID, Outcome.UNKNOWN) if self._done[outcome]]
        return Text(", ".join([*told, f"{lasted}{budget}"]), style="dim")
