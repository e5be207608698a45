"""The recovery of each job that is wrong in one known way, as a function of its name, for a process that stays warm."""

import importlib
from collections.abc import Callable

from workloads.linear import train


def __getattr__(name: str) -> Callable[[], int]:
    """``module:name`` finds the job's own trainer."""
    if name.startswith("_"):
        raise AttributeError(name)
    module = importlib.import_module("workloads.linear.train" if name == "linear" else f"workloads.broken.{name}")
    own = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, train.Trainer)]
    trainer = next((kind for kind in own if kind.__module__ == module.__name__), train.Trainer)
    return lambda: train.main(trainer)
