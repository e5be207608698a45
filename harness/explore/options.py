"""How a job is explored, and what is handed back."""

from dataclasses import dataclass
from typing import Literal

from harness.explore.budget import DEFAULT, Budget
from harness.explore.frontier import SurfaceName
from harness.explore.result import Exploration

ExecutorName = Literal["local", "ray"]
"""Where recoveries are tried: processes of this machine, or a Ray cluster that is there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How it is explored.

    Attributes:
        surfaces: Which, the most telling first.
        budget: How much judging is granted.
        jobs: Recoveries at once, on this machine.
        executor: Where they are tried.
        ray_address: Of the Ray cluster.
        keeps: Whether what is needed to replay a state stays even where all is valid.
    """

    surfaces: tuple[SurfaceName, ...]
    budget: Budget = DEFAULT
    jobs: int = 1
    executor: ExecutorName = "local"
    ray_address: str = "auto"
    keeps: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Explored:
    """What came of it; ``is_interrupted``: somebody stopped it, and the rest was not judged."""

    exploration: Exploration
    is_interrupted: bool
