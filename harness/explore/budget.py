"""How much judging is granted: seconds, or states."""

import re

import msgspec

from harness.errors import UsageError

DEFAULT_S = 60.0
"""A first useful answer within a minute, for a job of two seconds."""

REPRESENTATIVES_S = 600.0
"""By default the most telling states are judged even if that takes longer, but not for ever."""

_GRANTED = re.compile(r"(\d+(?:\.\d+)?)(s|m|h|)")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """What is granted.

    Attributes:
        seconds: For all states; what has begun by then is finished. None: no end.
        states: How many distinct trees are tried; None: all.
        representatives_s: For the most telling states, where that is more than ``seconds``.
    """

    seconds: float | None = DEFAULT_S
    states: int | None = None
    representatives_s: float = 0.0

    def seconds_for(self, rank: int) -> float:
        """Seconds from the beginning of judging until no state of a rank is begun any more."""
        granted = float("inf") if self.seconds is None else self.seconds
        return granted if rank else max(granted, self.representatives_s)

    def __str__(self) -> str:
        parts = [] if self.seconds is None else [f"{self.seconds:g} s"]
        parts += [] if self.states is None else [f"{self.states:,} states"]
        return " and ".join(parts)


DEFAULT = Budget(representatives_s=REPRESENTATIVES_S)


DIGITS_MAX = 12
"""More than a lifetime of seconds."""


def read_budget(text: str) -> Budget:
    """A budget as it is typed: ``60s``, ``5m``, ``1h``, or ``200``, a number of states; ``all`` has no end.

    Raises:
        UsageError: When it is none.
    """
    if text == "all":
        return Budget(seconds=None)
    found = _GRANTED.fullmatch(text)
    if found is None or len(found[1]) > DIGITS_MAX or float(found[1]) == 0 or (not found[2] and "." in found[1]):
        raise UsageError(f"--budget {text!r} is no budget; give seconds as 60s, minutes as 5m, states as 200, or all")
    if found[2]:
        return Budget(seconds=float(found[1]) * _SECONDS[found[2]])
    return Budget(seconds=None, states=int(found[1]))
