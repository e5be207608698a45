"""Workers of pytest-xdist: they run the tests, and the process that started them has the terminal."""

from typing import Protocol

import pytest


class WorkerNode(Protocol):
    """A worker of xdist, as the process that starts it sees it."""

    config: pytest.Config
    workerinput: dict[str, object]
    workeroutput: dict[str, object]


def is_worker(config: pytest.Config) -> bool:
    """Whether this process is one."""
    return hasattr(config, "workerinput")


def told(config: pytest.Config, name: str) -> object:
    """What a worker was told when it was started; None in the process that starts them."""
    return getattr(config, "workerinput", {}).get(name)
