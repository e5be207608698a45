"""One storage model in one scope, as the page of an exploration shows it; and the same in several recoveries, told together."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from harness.report.strip import SAID, Operation, Shade, Strip, strip_of
from harness.report.wording import count


@dataclass(frozen=True, slots=True)
class Doubt:
    """Why something could not be decided, and in how many states."""

    says: str
    states: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumption:
    """A row of a storage model that nobody confirmed: its name, what it says, where it was read, and how many states rest on it."""

    row: str
    says: str
    source: str
    states: int


@dataclass(frozen=True, kw_only=True)
class SurfacePart:
    """One storage model in one scope.

    Attributes:
        kill_points: Moments that were enumerated.
        states: Distinct states, by what is known of them.
        after: The state from which a recovery was recorded, when it is crashes of that one.
        same_as: Another scope that leaves the same states; then there is nothing else.
        operations: All of the recording, with the states that end at each.
        doubts: Why states are unknown.
        assumed: What of the storage model nobody confirmed.
    """

    model: str
    scope: str
    kill_points: int
    states: dict[Shade, int]
    after: str = ""
    same_as: str = ""
    operations: Sequence[Operation] = ()
    doubts: Sequence[Doubt] = ()
    assumed: Sequence[Assumption] = ()

    @property
    def name(self) -> str:
        """As it is called on the page."""
        return f"{self.model} × {self.scope}" + (f", in the recovery from {self.after}" if self.after else "")

    @property
    def total(self) -> int:
        """How many states there are."""
        return sum(self.states.values())

    @property
    def outcome(self) -> str:
        """The worst, where what was not judged is unknown."""
        if self.states.get("invalid"):
            return "invalid"
        return "unknown" if self.states.get("unknown") or self.states.get("unjudged") or not self.states.get("valid") else "valid"

    @cached_property
    def strip(self) -> Strip:
        """The operations as cells."""
        return strip_of(self.operations)

    @property
    def summary(self) -> str:
        """Its states in words."""
        told = [f"{self.states[shade]:,} {word}" for shade, word in SAID.items() if self.states.get(shade)]
        return f"{count(self.kill_points, 'kill point')}, {count(self.total, 'state')}" + (f": {', '.join(told)}" if told else "")

    @property
    def wrong(self) -> Sequence[Operation]:
        """The operations after which something is invalid or unknown."""
        return [operation for operation in self.operations if operation.shade in ("invalid", "unknown")]


def together(parts: Sequence[SurfacePart]) -> SurfacePart:
    """The same storage and scope in several recoveries, their states counted together; they have no strip in common."""
    recoveries = {part.after for part in parts}
    rest = Counter[str]()
    for part in parts:
        rest.update({row.row: row.states for row in part.assumed})
    rows = {row.row: row for part in parts for row in part.assumed}
    return SurfacePart(
        model=parts[0].model,
        scope=f"{parts[0].scope}, crashes in {count(len(recoveries), 'recovery', 'recoveries')}",
        kill_points=sum(part.kill_points for part in parts),
        states=dict(sum((Counter(part.states) for part in parts), Counter())),
        assumed=[replace(row, states=rest[name]) for name, row in rows.items()],
    )
