"""From states to the few sentences that a reader acts on: what must hold between two operations of the job.

Hundreds of states of one run show a handful of mistakes. What states are blamed on (``blame``) is the same thing in every save of the
job when the names of its operations are the same, so it is told once.
"""

import shlex
from collections import defaultdict
from collections.abc import Iterable, Sequence

from harness.explore.blame import blame
from harness.explore.consequences import by_severity, consequence_of, consequences_of, severity
from harness.explore.journal import Journal
from harness.explore.reasons import Blame, Blamed
from harness.explore.result import STATE_CHARACTERS, Moment, StateResult, Strip, Vulnerability
from harness.explore.sequences import Sight
from harness.report.wording import ordinal
from harness.verdict import counted


def find_vulnerabilities(states: Iterable[StateResult], operations: Sequence[Strip], *, run_directory: str) -> tuple[Vulnerability, ...]:
    """The vulnerabilities that the judged states of one surface show, the worst first.

    Args:
        states: All of the surface, judged or not; an invalid one is in at least one vulnerability.
        operations: Of the recording, with the words of the job, in the order of the log.
        run_directory: Where the exploration is kept, for the line that replays a state.
    """
    journal = Journal(operations)
    groups: dict[tuple[str, str], list[Blamed]] = defaultdict(list)
    for blamed in blame(states, journal):
        groups[blamed.blame.rule, _sentence(blamed.blame)].append(blamed)
    found = [(_earliest(group), _vulnerability(group, journal, run_directory)) for group in groups.values()]
    found.sort(key=lambda each: (severity(each[1].promises), -len(each[1].states), each[0].sight.at, each[1].says))
    return tuple(vulnerability for _, vulnerability in found)


def mistake_of(vulnerability: Vulnerability) -> tuple[str, ...]:
    """What is the same where one change of the job mends both: what is not durable in time is that wherever it is missed first."""
    if vulnerability.rule in ("durable-before", "closed-before"):
        return (vulnerability.rule, vulnerability.first)
    if vulnerability.first:
        return (vulnerability.rule, vulnerability.first, vulnerability.second)
    return (vulnerability.rule, vulnerability.says)


def before_what(vulnerability: Vulnerability) -> str:
    """What something must be durable before; empty: it is not about that, or that is not known for sure."""
    return vulnerability.says.partition(" must be durable before ")[2] if vulnerability.rule == "durable-before" else ""


def replay_command(run_directory: str, state: str) -> str:
    """The command line that tries recovery from one state again."""
    return shlex.join(("harness", "explore", "--replay", run_directory, state[:STATE_CHARACTERS]))


def _vulnerability(group: Sequence[Blamed], journal: Journal, run_directory: str) -> Vulnerability:
    smallest = _earliest(group)
    in_order = sorted(group, key=lambda each: (each.sight.at, each.sight.state.state))
    promises = by_severity(frozenset().union(*(each.sight.promises for each in group)))
    reason = smallest.blame
    return Vulnerability(
        rule=reason.rule,
        says=f"{_sentence(reason)}{_addition(group, promises[0])}",
        first=reason.first,
        second="" if reason.is_open else reason.second,
        marker=reason.marker,
        promises=promises,
        leads_to=consequences_of(promises, list({id(each.sight.state): each.sight.state for each in group}.values())),
        states=tuple(dict.fromkeys(each.sight.state.state for each in in_order)),
        example=_example(smallest, journal, gaps=0 if _is_sure(group) else sum(each.gaps for each in {blamed.blame for blamed in group})),
        assumed=_assumed(group),
        replay=replay_command(run_directory, smallest.sight.state.state),
    )


def _is_sure(group: Sequence[Blamed]) -> bool:
    """Whether one of it was judged in full: it answers for the others."""
    return any(blamed.blame.is_sure for blamed in group)


def _addition(group: Sequence[Blamed], worst: str) -> str:
    """What a sentence about operations, or about none, needs to be true."""
    reason = group[0].blame
    if reason.rule == "survives":
        return f": it {consequence_of(worst).one}"
    is_window = reason.rule == "atomic" and reason.second
    return ", as far as was judged" if is_window and not _is_sure(group) else ""


def _earliest(group: Sequence[Blamed]) -> Blamed:
    """Of the smallest state: the fewest operations lead to it."""
    return min(group, key=lambda each: (each.sight.at, each.sight.moment.cause, each.sight.state.state))


def _assumed(group: Sequence[Blamed]) -> tuple[str, ...]:
    """What it rests on; one moment that rests on nothing shows it for sure."""
    rows = [each.sight.moment.assumed for each in group]
    return tuple(sorted({row for some in rows for row in some})) if all(rows) else ()


def _sentence(reason: Blame) -> str:
    """What must hold."""
    first, second = _quoted(reason.first), _quoted(reason.second)
    match reason.rule:
        case "durable-before":
            return f"{first} must be durable {_when(reason)}"
        case "closed-before":
            return f"{_quoted(_class_of(reason.first))} must be closed {_when(reason)}: an open file is published only when it is closed"
        case "complete":
            return f"{_quoted(_class_of(reason.first))} must not be visible before it is complete"
        case "survives":
            return "recovery itself is wrong, with nothing in flight"
        case "atomic" if reason.is_open:
            return f"what begins with {first} must be atomic; where it ends was not judged"
        case "atomic" if not reason.second:
            kind = reason.first.partition(" ")[0]
            return f"rename of {_quoted(_class_of(reason.first))} must be atomic" if kind == "rename" else f"{first} must be atomic"
    if reason.first == reason.second:
        return f"from one {first} to the next must be atomic"
    return f"{first} to {second} must be atomic"


def _when(reason: Blame) -> str:
    """Before what."""
    before = f"before {reason.how}{_quoted(reason.second)}"
    if not reason.is_open:
        return before
    return f"earlier, perhaps {before}: what lies between was not judged" if reason.second else "earlier; before what was not judged"


def _class_of(name: str) -> str:
    return name.partition(" ")[2] or name


def _quoted(name: str) -> str:
    return f"`{name}`" if name else ""


def _example(blamed: Blamed, journal: Journal, *, gaps: int) -> str:
    """What the smallest state does, in one sentence."""
    sight = blamed.sight
    seen = f"killed {_where(sight.moment)}{_lacking(sight.moment, journal)}: {_worst(sight)}"
    if not gaps:
        return seen
    were = "was" if gaps == 1 else "were"
    if blamed.blame.rule in ("durable-before", "closed-before"):
        return f"{seen}; {counted(gaps, 'moment')} before {were} not judged, so it may have to be earlier"
    return f"{seen}; {counted(gaps, 'moment')} beside such ones {were} not judged, so it may begin earlier or end later"


def _worst(sight: Sight) -> str:
    """What was said of the worst promise that a state breaks."""
    promise = by_severity(sight.promises)[0]
    return next(broken.says for broken in sight.state.broken if broken.promise == promise)


def _where(moment: Moment) -> str:
    """A moment as a reader finds it in another run."""
    point = moment.point
    if moment.at == 0:
        return "before anything was done"
    marker = _quoted(point.marker) + (f" {point.marker_nth}" if point.marker_nth else "")
    if not point.operation:
        return f"right after {marker}"
    operation = f"the {ordinal(max(1, point.nth))} {_quoted(f'{point.operation} {point.path_class}'.strip())} since {marker}"
    return f"in {operation}, at {point.part}" if point.part else f"after {operation}"


def _lacking(moment: Moment, journal: Journal) -> str:
    """What of that is not there."""
    cause = moment.cause
    name, on = _quoted(journal.name(cause.operation)), _quoted(journal.path_class(cause.operation) or journal.name(cause.operation))
    match cause.kind:
        case "omitted":
            return f", {name} not durable"
        case "unsynced":
            return ", nothing there that was not durable"
        case "torn":
            return f", of {name} only a part ({cause.part})" if cause.part else f", of {name} only a part"
        case "truncated":
            return f", {on} published as far as it was written"
        case "vanished":
            return f", {on} never published"
        case "renaming" | "prefix":
            return ""
