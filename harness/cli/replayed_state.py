"""What recovery did with one state that was tried again, for a person."""

from rich.console import Console
from rich.text import Text

from harness.cli.display import STYLES
from harness.cli.exploring import coded, say
from harness.explore.judgement import Recovery
from harness.explore.judging.wording import how_it_ended, steps_in_words
from harness.explore.replaying import ReplayedState
from harness.explore.result import StateResult
from harness.report.text import line
from harness.report.wording import duration
from harness.verdict import Outcome

VARIABLES_MAX = 5
"""Names in a line."""

TRACEBACK_LINES_MAX = 20
"""Of the end of what a failed recovery said."""


def print_replayed(console: Console, replayed: ReplayedState) -> None:
    """Print what recovery did with one state, and what is said of it on each surface that leaves it."""
    tried = replayed.tried
    told = ""
    for name, recovery in (("recovery", tried.first), ("the next one", tried.second)):
        if recovery is not None:
            say(console, Text(f"{name} {line(_did(recovery))}"))
            _say_end(console, recovery.detail if recovery.detail != told else "")
            told = recovery.detail
    if tried.lost:
        say(console, Text(f"nothing is known of it: {line(tried.lost)}", style=STYLES[Outcome.UNKNOWN]))
    if replayed.differing:
        names = ", ".join(replayed.differing[:VARIABLES_MAX]) + ", ..." * (len(replayed.differing) > VARIABLES_MAX)
        say(console, Text(f"not as it was: the variables {line(names)}", style=STYLES[Outcome.UNKNOWN]))
    for again in replayed.again:
        same = "as before" if again.is_the_same else f"before: {_said_of(again.before)}"
        promised = f", step {again.before.promised_step} acknowledged" if again.before.promised_step >= 0 else ""
        say(console, Text.assemble((again.outcome.value, STYLES[again.outcome]), f": {again.surface}{promised} ({same})"))
        for broken in again.now.broken:
            say(console, Text.assemble(f"  {broken.promise}: ", coded(broken.says)))
    _say_kept(console, replayed)


def _say_end(console: Console, said: str) -> None:
    """The end of what a recovery said, where that is more than the line that is told of it anyway."""
    lines = said.strip().splitlines()
    if len(lines) > 1:
        for each in lines[-TRACEBACK_LINES_MAX:]:
            say(console, Text(f"    {line(each)}", style="dim"))


def _say_kept(console: Console, replayed: ReplayedState) -> None:
    """Where the files are, or how to have them."""
    kept = replayed.kept
    if kept is None:
        if replayed.outcome is not Outcome.VALID:
            say(console, Text("with --keep the files of this state stay: as the crash left them, and as recovery did", style="dim"))
        return
    say(console, Text(f"kept, as the crash left it: {line(str(kept.state))}"))
    for name, path in (("as recovery left it", kept.recovered), ("as the next one left it", kept.recovered_again)):
        if path.exists():
            say(console, Text(f"kept, {name}: {line(str(path))}"))
    if replayed.results:
        say(console, Text(f"these differ: {line(' and '.join(map(str, replayed.results)))}"))


def _said_of(state: StateResult) -> str:
    """The outcome and what decided it."""
    broken = ", ".join(broken.promise for broken in state.broken)
    return f"{state.outcome or 'not judged'}" + (f", by {broken}" if broken else "")


def _did(recovery: Recovery) -> str:
    """What a recovery did, in a line."""
    began = {-1: "", 0: "started from scratch, "}.get(recovery.restored_step, f"restored step {recovery.restored_step}, ")
    saved = f"saved {steps_in_words(save.step for save in recovery.saves)}, " if recovery.saves else ""
    ended = "came through" if recovery.exit_code == 0 else how_it_ended(recovery).replace("recovery ", "", 1)
    return f"{began}{saved}{ended} in {duration(recovery.seconds)}"
