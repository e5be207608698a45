"""``--chaos-profile``: what Hypothesis tries of drawn schedules, by a seed that is told and can be used again."""

import secrets
from pathlib import Path

import pytest

from harness.pytest_plugin.asked import is_asked_for, runs_dir_asked_for
from harness.pytest_plugin.workers import WorkerNode, told

SEED_OF_WORKERS = "chaos_hypothesis_seed"

DEFAULT_PROFILE = "ci"

LOADED: pytest.StashKey[bool] = pytest.StashKey()
"""There where a profile of chaos tests is in force."""


@pytest.hookimpl(tryfirst=True)  # the seed is chosen before Hypothesis's own plugin looks at it
def pytest_configure(config: pytest.Config) -> None:
    """Load the profile of drawn schedules that was asked for."""
    _load_profile(config)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerNode) -> None:
    """Tell a worker of xdist the seed of drawn schedules: all draw by one."""
    node.workerinput[SEED_OF_WORKERS] = node.config.getoption("--hypothesis-seed", default=None)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Have failing examples kept below the runs directory, by the name of the test: a test has it on each machine."""
    if LOADED in item.config.stash and isinstance(item, pytest.Function):
        from harness.strategies.profiles import keep_examples

        keep_examples(item.function, item.nodeid.partition("[")[0])


def _load_profile(config: pytest.Config) -> None:
    """Make the profile of ``--chaos-profile`` the one in force, with a seed that is known, so that it can be told and used again.

    Without it, that is ``ci`` where chaos tests are asked for and nobody has chosen another: Hypothesis's own are for functions.
    """
    name = str(config.getoption("--chaos-profile"))
    other = config.getoption("--hypothesis-profile", default=None)
    if name and other:
        raise pytest.UsageError("--chaos-profile and --hypothesis-profile name two profiles: leave one out")
    if not name and (other or not is_asked_for(config)):
        return
    try:
        from harness.strategies.profiles import is_of_hypothesis, load_profile
    except ModuleNotFoundError as error:
        if not name:
            return
        raise pytest.UsageError(f"--chaos-profile needs Hypothesis: {error}; install chaos-harness[hypothesis]") from error
    from harness.errors import UnknownNameError

    if not name and not is_of_hypothesis():  # a conftest.py has chosen
        return
    try:
        load_profile(name or DEFAULT_PROFILE, database=runs_dir_asked_for(config) / ".hypothesis", shared=_shared(config))
    except UnknownNameError as error:
        raise pytest.UsageError(str(error)) from error
    config.stash[LOADED] = True
    if config.getoption("--hypothesis-seed", default=None) is None:
        of_all_workers = told(config, SEED_OF_WORKERS)
        config.option.hypothesis_seed = of_all_workers or str(secrets.randbelow(1 << 32))


def _shared(config: pytest.Config) -> Path | None:
    """The failing examples of others, which are only read."""
    asked = config.getoption("--chaos-examples")
    if asked is not None and not asked.is_dir():
        raise pytest.UsageError(f"--chaos-examples {asked} is no directory: name the .hypothesis below the runs directory of another run")
    return asked.resolve() if asked is not None else None
