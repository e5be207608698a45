"""What a wrong recovery is to be blamed on: two operations of the job, or recovery itself.

A promise that is broken before the job did anything, or after it did everything, is broken with nothing in flight: recovery itself is
wrong, and what else breaks it proves nothing more. All other promises are looked at by stretches (``sequences``) of moments of one cause.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from harness.explore.journal import Journal
from harness.explore.reasons import RECOVERY, Blame, Blamed, How, is_telling, settle
from harness.explore.result import Moment, Rule, StateResult
from harness.explore.sequences import Sight, Stretch, sights_of, stretches_of
from harness.explore.states import Cause

AT_MOMENTS = frozenset({"truncated", "vanished"})
"""Causes of which there is one at a moment, or none: named after the file that was begun last, whichever of the open ones matters."""

MISSING = frozenset({"omitted", "torn", "unsynced"})
"""Causes of which something is missing that was done before."""

BEGINNING = frozenset({"create", "open", "mkdir"})
"""Operations with which a file or directory begins: one of the same class after what is missing is that of the next save."""

TAKING_AWAY = frozenset({"unlink", "rmdir", "rename", "move-out", "truncate", "open"})
"""Operations after which something is not there any more: where recovery was right before one, and no save was in flight, that one is the
matter, although the save that puts something in its place begins later."""


def blame(states: Iterable[StateResult], journal: Journal) -> list[Blamed]:
    """Blame every wrong moment of one surface on something."""
    every = sights_of(states)
    standing = _standing(every)
    found = [Blamed(Sight(sight.state, sight.moment, sight.promises & standing), RECOVERY) for sight in every if sight.promises & standing]
    whole = [sight.without(standing) for sight in every if sight.is_settled and sight.moment.cause.kind in (*AT_MOMENTS, "prefix")]
    sequences: dict[Cause, list[Sight]] = defaultdict(list)
    for sight in every:
        sequences[sight.moment.cause].append(sight.without(standing))
    windows = [(stretch, _of_window(stretch, journal)) for stretch in stretches_of(sequences.pop(Cause(), []))]
    found += [Blamed(sight, reason) for stretch, reason in windows for sight in stretch.sights]
    alone: dict[tuple[int, int], list[Blamed]] = defaultdict(list)
    for cause in sorted(sequences, key=lambda each: (not _is_of_one(each), len(_missing(each)), each)):
        explained, rest = _explain(sequences[cause], windows)
        if cause.kind in AT_MOMENTS:
            by_earlier, rest = _explain_by_earlier(rest, whole, found)
            explained += by_earlier
        if not _is_of_one(cause):
            by_one, rest = _explain_by_one(rest, alone)
            explained += by_one
        found += explained
        for stretch in stretches_of(rest):
            reason = _of_cause(cause, stretch, journal, right_at=_right_before(stretch, whole))
            for sight in stretch.sights:
                found.append(Blamed(sight, reason))
                if _is_of_one(cause):
                    alone[cause.operation, sight.at].append(found[-1])
    return settle(found)


def _standing(every: Sequence[Sight]) -> frozenset[str]:
    """The promises that are broken with nothing in flight."""
    last = max((sight.at for sight in every), default=0)
    at_rest = (sight for sight in every if sight.at in (0, last) and sight.moment.cause.kind == "prefix")
    return frozenset().union(*(sight.promises for sight in at_rest))


def _explain(sequence: Sequence[Sight], windows: Sequence[tuple[Stretch, Blame]]) -> tuple[list[Blamed], list[Sight]]:
    """What is wrong here as it is wrong without the cause, and the sequence without that."""
    explained: list[Blamed] = []
    rest: list[Sight] = []
    for sight in sequence:
        for stretch, reason in windows:
            shared = sight.promises & stretch.promises if _is_within(sight, stretch) else frozenset()
            if shared:
                explained.append(Blamed(Sight(sight.state, sight.moment, shared), reason))
                sight = sight.without(shared)
        rest.append(sight)
    return explained, rest


def _is_within(sight: Sight, window: Stretch) -> bool:
    """Whether a moment is in a window, or an operation of the window is missing or torn: either way it was done by halves."""
    cause = sight.moment.cause
    is_part = cause.kind in MISSING and (window.holds(cause.operation) or (window.end is not None and cause.operation == window.end.at))
    return is_part or window.holds(sight.at)


def _explain_by_one(sequence: Sequence[Sight], alone: Mapping[tuple[int, int], Sequence[Blamed]]) -> tuple[list[Blamed], list[Sight]]:
    """What is wrong with several operations missing as it is with one of them, and the sequence without that."""
    explained: list[Blamed] = []
    rest: list[Sight] = []
    for sight in sequence:
        for known in [known for operation in _missing(sight.moment.cause) for known in alone.get((operation, sight.at), ())]:
            shared = sight.promises & known.sight.promises
            if shared:
                explained.append(Blamed(Sight(sight.state, sight.moment, shared), known.blame))
                sight = sight.without(shared)
        rest.append(sight)
    return explained, rest


def _explain_by_earlier(sequence: Sequence[Sight], whole: Sequence[Sight], found: Sequence[Blamed]) -> tuple[list[Blamed], list[Sight]]:
    """What was wrong just before already, when another file was the last that was begun, and the sequence without that."""
    known: dict[int, list[Blamed]] = defaultdict(list)
    for each in found:
        if each.sight.moment.cause.kind in AT_MOMENTS:
            known[each.sight.at].append(each)
    explained: list[Blamed] = []
    rest: list[Sight] = []
    for sight in sequence:
        earlier = bisect_left(whole, sight.at, key=lambda each: each.at) - 1
        for before in known[whole[earlier].at] if earlier >= 0 and whole[earlier].moment.cause.kind == sight.moment.cause.kind else ():
            shared = sight.promises & before.sight.promises
            if shared:
                explained.append(Blamed(Sight(sight.state, sight.moment, shared), before.blame))
                known[sight.at].append(explained[-1])
                sight = sight.without(shared)
        rest.append(sight)
    return explained, rest


def _right_before(stretch: Stretch, whole: Sequence[Sight]) -> int:
    """The last moment before a stretch at which recovery was right, whichever file was begun last; 0: none."""
    if stretch.first.moment.cause.kind not in AT_MOMENTS:
        return stretch.before.at if stretch.before is not None else 0
    return max((each.at for each in whole if each.at < stretch.first.at and not each.promises), default=0)


def _of_window(stretch: Stretch, journal: Journal) -> Blame:
    """A stretch in which nothing is missing but what was not done yet."""
    first, end = stretch.first.moment, stretch.end
    if stretch.is_open:
        return Blame("atomic", journal.name_at(first), marker=first.point.marker, is_open=True, gaps=stretch.gaps)
    if end is None or _spans_a_save(stretch, journal):
        return RECOVERY
    if journal.is_word(first):
        return Blame("durable-before", journal.name_at(end.moment), journal.name_at(first), journal.marker(first.at), how="the job says ")
    return Blame("atomic", journal.name_at(first), journal.name_at(end.moment), first.point.marker, gaps=stretch.gaps)


def _spans_a_save(stretch: Stretch, journal: Journal) -> bool:
    """Whether something in it was at rest: a save begins in its midst, or it goes from one save to the same point of the next."""
    assert stretch.end is not None
    begins_idle = stretch.is_bounded and not journal.has_save_in_flight(stretch.first.at)
    takes_away = begins_idle and journal.kind(stretch.first.at) in TAKING_AWAY
    if journal.has_idle_begin(stretch.first.at, stretch.end.at) and not takes_away:
        return True
    is_cycle = journal.name_at(stretch.first.moment) == journal.name_at(stretch.end.moment)
    return is_cycle and max(sight.state.promised_step for sight in stretch.sights) > stretch.first.state.promised_step


def _of_cause(cause: Cause, stretch: Stretch, journal: Journal, *, right_at: int) -> Blame:
    """A stretch in which an operation is missing, torn, half done, or not published as it should be."""
    name = " or ".join(dict.fromkeys(journal.name(operation) for operation in _missing(cause)))
    marker, first = journal.marker(cause.operation), stretch.first.moment
    if cause.kind in AT_MOMENTS and _is_elsewhere(cause.operation, stretch, journal):
        return _of_window(stretch, journal)
    if cause.kind == "truncated":
        return Blame("complete", name, marker=marker, gaps=stretch.gaps)
    if cause.kind == "torn" and journal.kind(cause.operation) == "move-in":
        return Blame("durable-before", f"write {journal.path_class(cause.operation)}", name, marker, gaps=stretch.gaps)
    if cause.kind == "renaming" or first.at <= cause.operation:
        return Blame("atomic", name, marker=marker, gaps=stretch.gaps)
    rule: Rule = "closed-before" if cause.kind == "vanished" else "durable-before"
    between = journal.changes_between(max(right_at, *_missing(cause)), first.at)
    names = tuple(journal.name(index) for index in between if rule == "durable-before" or journal.kind(index) != "write")
    second = journal.name_at(first)
    if names and (any(map(is_telling, names)) or not is_telling(second)):
        return Blame(rule, name, marker=marker, is_open=True, candidates=(*names, second))
    return Blame(rule, name, second, marker, gaps=len(names), candidates=names, how=_how(cause.operation, first, journal))


def _how(operation: int, second: Moment, journal: Journal) -> How:
    """Whether the second is a word, or is not of the same save: the name of an operation does not tell."""
    if journal.is_word(second):
        return "the job says "
    begins_again = journal.kind(second.at) in (*BEGINNING, journal.kind(operation))
    is_again = begins_again and journal.path_class(second.at) == journal.path_class(operation)
    return "the next " if is_again or journal.is_acknowledged_between(operation, second.at) else ""


def _missing(cause: Cause) -> tuple[int, ...]:
    """The operations that are missing or torn; of others ``models.posix_weak`` tells the index in the part: ``half and 17 zeros``."""
    others = (word.partition(" ")[0] for word in cause.part.split("and ")[1:] if cause.kind in MISSING)
    return (cause.operation, *(int(word) for word in others if word.isdigit()))


def _is_of_one(cause: Cause) -> bool:
    """Whether one operation alone makes the difference."""
    return cause.kind != "unsynced" and len(_missing(cause)) == 1


def _is_elsewhere(operation: int, stretch: Stretch, journal: Journal) -> bool:
    """Whether recovery is right before and after it with the same file open, and other files make the difference."""
    if stretch.end is None or not stretch.is_bounded:
        return False
    return journal.path_class(operation) not in (journal.path_class(stretch.first.at), journal.path_class(stretch.end.at))
