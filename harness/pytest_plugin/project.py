"""``--plan``, ``--apply``: on a project nothing begins but what a person has read in a plan and applied; as from ``harness run``."""

import contextlib
import os
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from harness.pytest_plugin.asked import is_asked_for, runs_dir_asked_for, seed_asked_for, target_asked_for
from harness.pytest_plugin.workers import is_worker

if TYPE_CHECKING:
    from harness.cli.project_plan import AskedOfProject, Project
    from harness.scenario import Scenario

TARGET = "gcp"

HELD: pytest.StashKey[contextlib.ExitStack] = pytest.StashKey()
"""Gives the project back at the end, and takes it out of the environment."""

PROJECT: pytest.StashKey["Project"] = pytest.StashKey()
"""There where runs are on a project."""

PLANNED: pytest.StashKey[pytest.ExitCode] = pytest.StashKey()
"""There where a plan was made instead of running anything: how the session ends."""

_OPTIONS = ("--plan", "--apply", "--gcp-config", "--plan-file")


@pytest.hookimpl(trylast=True)  # an emulator comes first
def pytest_configure(config: pytest.Config) -> None:
    """Find the project out, and have it in the environment: what a place has decides which tests there are."""
    config.stash[HELD] = contextlib.ExitStack()
    given = [name for name in _OPTIONS if config.getoption(name)]
    if is_worker(config) or not (given or _is_on_a_project(config)):
        return
    from harness.cli.project_plan import project_asked_for, told
    from harness.errors import HarnessError

    if config.getoption("numprocesses", default=None):
        raise pytest.UsageError("on a project scenarios run one after the other, so that a plan holds for them; leave -n out")
    try:
        project = project_asked_for(target_asked_for(config), _asked(config))
        if project is not None:
            config.stash[PROJECT] = project
            config.stash[HELD].enter_context(told(project))
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from error


def _is_on_a_project(config: pytest.Config) -> bool:
    """Whether chaos tests would run on a place that somebody has named, and on no emulator of this session's own."""
    is_asked = is_asked_for(config) and target_asked_for(config) == TARGET and not config.getoption("--emulator")
    return is_asked and bool(os.environ.get("HARNESS_GCP_PROJECT"))


def _asked(config: pytest.Config) -> "AskedOfProject":
    from harness.cli.project_plan import AskedOfProject

    plan_file = config.getoption("--plan-file") or Path("plan.json")
    again = [part for part in config.invocation_params.args if part != "--plan"]
    return AskedOfProject(
        options={},
        limits={},
        config=config.getoption("--gcp-config"),
        plans=bool(config.getoption("--plan")),
        apply=config.getoption("--apply"),
        plan_file=plan_file,
        then=shlex.join(["pytest", *map(str, again), "--apply", str(plan_file)]),
        emulated=bool(config.getoption("--emulator")),
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Make the plan, and run nothing; or see that the one to apply holds, have the project, and go on."""
    config = session.config
    project = config.stash.get(PROJECT, None)
    if project is None or session.testsfailed or config.option.collectonly:
        return None
    from harness.cli.project_plan import held, plan_or_apply
    from harness.clock import SystemClock
    from harness.errors import HarnessError

    clock, chosen = SystemClock(), list(_chosen(session))
    if not chosen:
        return None  # whatever else would begin there is refused as not planned
    try:
        code = plan_or_apply(project, chosen, seed=seed_asked_for(config), clock=clock, as_json=False, root=config.rootpath)
        if code is None:
            config.stash[HELD].enter_context(held(project, clock, runs_dir_asked_for(config)))
            return None
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from error
    nothing_ran = pytest.ExitCode.OK if project.asked.plans else pytest.ExitCode.NO_TESTS_COLLECTED
    config.stash[PLANNED] = pytest.ExitCode.USAGE_ERROR if code else nothing_ran
    return True


def _chosen(session: pytest.Session) -> "Iterator[Scenario]":
    """The scenarios of the tests that were chosen.

    Raises:
        pytest.UsageError: When one is run twice, or by another seed than the session's: a plan names each once, with one seed.
    """
    seed, names = seed_asked_for(session.config), set[str]()
    for item in session.items:
        case = getattr(getattr(item, "callspec", None), "params", {}).get("chaos_scenario")
        if case is None or case.target != TARGET:
            continue
        if case.scenario.name in names:
            raise pytest.UsageError(f"{item.nodeid}: {case.scenario.name} is run by another test too; on a project each is run once")
        if case.seed != seed:
            raise pytest.UsageError(f"{item.nodeid}: has failed with seed {case.seed}; run it on a project alone, with --seed {case.seed}")
        names.add(case.scenario.name)
        yield case.scenario


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A session that has made a plan has tested nothing: without ``--plan`` that is no success."""
    if PLANNED in session.config.stash:
        session.exitstatus = session.config.stash[PLANNED]


def pytest_unconfigure(config: pytest.Config) -> None:
    """Give the project back."""
    if HELD in config.stash:
        config.stash[HELD].close()
