"""``--bring-up``, ``--emulator``: what is not here is brought up for the session, once for all workers."""

import contextlib
from collections.abc import Callable

import pytest

from harness.pytest_plugin.asked import is_asked_for, target_asked_for
from harness.pytest_plugin.workers import is_worker

BROUGHT_UP: pytest.StashKey[contextlib.ExitStack] = pytest.StashKey()
"""Takes down at the end what was brought up for the session."""


def pytest_configure(config: pytest.Config) -> None:
    """Have a place for what takes it down; an emulator comes first, since what a target can do there decides which tests there are."""
    config.stash[BROUGHT_UP] = contextlib.ExitStack()
    if not config.getoption("--emulator") or is_worker(config) or not is_asked_for(config):
        return
    from harness.cli.emulation import emulated_where_asked
    from harness.errors import UsageError

    try:
        config.stash[BROUGHT_UP].enter_context(emulated_where_asked(target_asked_for(config), is_asked=True))
    except UsageError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_sessionstart(session: pytest.Session) -> None:
    """With ``--bring-up``: once for all workers, by the process that starts them."""
    config = session.config
    if not config.getoption("--bring-up") or is_worker(config) or not is_asked_for(config):
        return
    from harness.clock import SystemClock
    from harness.errors import HarnessError
    from harness.targets import brought_up

    terminal = config.pluginmanager.get_plugin("terminalreporter")
    say: Callable[[str], None] = terminal.write_line if terminal is not None else lambda _line: None
    try:
        config.stash[BROUGHT_UP].enter_context(brought_up(target_asked_for(config), SystemClock(), say))
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_unconfigure(config: pytest.Config) -> None:
    """Take down what was brought up for the session."""
    if BROUGHT_UP in config.stash:
        config.stash[BROUGHT_UP].close()
