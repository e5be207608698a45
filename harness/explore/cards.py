"""The cards of the page: each vulnerability once, wherever it was seen."""

from collections import defaultdict
from collections.abc import Sequence

from harness.explore.consequences import severity
from harness.explore.result import Surface, Vulnerability, name_of
from harness.explore.vulnerabilities import before_what, mistake_of
from harness.report.exploration import Card, Part, Seen
from harness.report.wording import count

Group = list[tuple[Surface, Vulnerability]]
"""One vulnerability, wherever it was seen."""


def cards_of(surfaces: Sequence[Surface]) -> list[Card]:
    """Each vulnerability once, the worst first; where several operations must be durable before the same one, they share a card."""
    groups: dict[tuple[str, str, str], Group] = defaultdict(list)
    own: dict[tuple[str, ...], tuple[str, str, str]] = {}
    for surface in sorted(surfaces, key=lambda each: bool(each.after)):
        for each in surface.vulnerabilities:
            key: tuple[str, str, str] = (each.rule, each.first, each.second)
            first = own.setdefault(mistake_of(each), key)
            groups[first if surface.after else key].append((surface, each))
    cards: dict[tuple[str, ...], list[Group]] = defaultdict(list)
    for key, group in sorted(groups.items(), key=lambda item: _urgency(item[1])):
        before = before_what(_worst(group))
        cards[("before", before) if before else key].append(group)
    return [_card(some[0]) if len(some) == 1 else _shared_card(some) for some in cards.values()]


def _urgency(group: Group) -> tuple[int, int]:
    return min(severity(each.promises) for _, each in group), -sum(len(each.states) for _, each in group)


def _worst(group: Group) -> Vulnerability:
    """The one that is told in words: of the worst of the job itself, if there are any, one that rests on nothing that is assumed."""
    own = [each for surface, each in group if not surface.after]
    return min(own or [each for _, each in group], key=lambda each: (severity(each.promises), bool(each.assumed), -len(each.states)))


def _card(group: Group) -> Card:
    worst = _worst(group)
    return Card(
        says=worst.says,
        files=_files(worst.first, worst.second),
        marker=worst.marker,
        seen=_seen(group),
        example=worst.example,
        replay=worst.replay,
    )


def _shared_card(groups: Sequence[Group]) -> Card:
    worsts = [_worst(group) for group in groups]
    return Card(
        says=f"{count(len(groups), 'operation')} must be durable before {before_what(worsts[0])}",
        files=_files(*(worst.first for worst in worsts), worsts[0].second),
        marker=worsts[0].marker,
        seen=(),
        example=worsts[0].example,
        replay=worsts[0].replay,
        parts=[Part(operation=worst.first, seen=_seen(group), replay=worst.replay) for group, worst in zip(groups, worsts, strict=True)],
    )


def _seen(group: Group) -> list[Seen]:
    """Where it was seen; what the job itself shows is not told again of each recovery."""
    own = [(surface, each) for surface, each in group if not surface.after]
    found = [Seen(surface=name_of(surface), leads_to=each.leads_to, assumed=each.assumed) for surface, each in own or group]
    recoveries = {surface.after for surface, _ in group if surface.after} if own else ()
    again = [Seen(surface=f"crashes in {count(len(recoveries), 'recovery', 'recoveries')}", leads_to="show it again")] if recoveries else []
    return [*found, *again]


def _files(*operations: str) -> tuple[str, ...]:
    """The classes of the paths that operations are on."""
    return tuple(dict.fromkeys(path for operation in operations if (path := operation.partition(" ")[2])))
