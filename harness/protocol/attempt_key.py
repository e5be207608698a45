"""Who speaks: an attempt of a task, or one rank of it."""

from typing import NamedTuple

WHOLE_ATTEMPT = -1
"""The rank that stands for all processes of an attempt, as in ``Processes.rank``."""


class AttemptKey(NamedTuple):
    """Which attempt of which task."""

    task: int
    attempt: int
