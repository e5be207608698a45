"""Make one test of each kill point: the job is recorded, or its recording is read, while tests are collected."""

from typing import TYPE_CHECKING

import pytest

from harness.pytest_plugin.asked import MARKER, is_asked_for, seed_asked_for, target_asked_for
from harness.pytest_plugin.catalogue import belonging
from harness.pytest_plugin.kill_points.asked import asks_for_others_only, mode_asked_for, names_asked_for
from harness.pytest_plugin.kill_points.session import GONE, Planned, planner_of

if TYPE_CHECKING:
    from harness.explore.kill_points import Plan
    from harness.explore.kill_points.jobs import Job


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test of each kill point where ``chaos_kill_point`` is used: of the jobs of the marker, or the catalogue's."""
    if "chaos_moments" not in metafunc.fixturenames:
        return
    config, names = metafunc.config, names_asked_for(metafunc)
    is_wanted = names is not None or (is_asked_for(config) and not asks_for_others_only(config))
    if not is_wanted or target_asked_for(config) != "local":
        metafunc.parametrize("chaos_moments", [pytest.param(None, id="kill-points")])  # left out, or skipped
        return
    metafunc.parametrize("chaos_moments", [pytest.param(planned, id=planned.test.id) for planned in _tests(metafunc, names or [])])


def pytest_collection_finish(session: pytest.Session) -> None:
    """Note the jobs of the tests that stay: who deselects all of a job, by ``-k`` for example, wants to hear nothing of it."""
    plans: dict[str, Plan] = {}
    for item in session.items:
        planned = item.callspec.params.get("chaos_moments") if isinstance(item, pytest.Function) and hasattr(item, "callspec") else None
        if isinstance(planned, Planned) and planned.plan.directory:
            plans[planned.plan.directory] = planned.plan
    for plan in plans.values():
        planner_of(session.config).choose(plan)


def _tests(metafunc: pytest.Metafunc, names: list[str]) -> list[Planned]:
    """The tests of all jobs that a test function is for; with names, those alone."""
    from harness.errors import HarnessError
    from harness.explore.kill_points import Moments, Plan, choose, find_named
    from harness.explore.kill_points.choice import UNSEEN

    config, seed = metafunc.config, seed_asked_for(metafunc.config)
    found: list[Planned] = []
    for job in _jobs(metafunc):
        own = [name for name in names if name.split(":")[0] == job.name]
        if names and not own:
            continue
        try:
            plan = planner_of(config).plan(job.subject(seed))
        except HarnessError as error:
            plan = Plan(job=job.name, refused=str(error))
        if plan.refused:
            tests = [Moments(id=name, job=job.name, refused=plan.refused) for name in own or [f"{job.name}:{UNSEEN}"]]
        elif own:
            tests = find_named(job.name, plan.moments, own, seed=seed)
            config.stash[GONE] += sorted(set(own) - {test.id for test in tests})
        else:
            tests = choose(job.name, plan.moments, mode_asked_for(config), seed=seed)
        found += [Planned(plan, test) for test in tests]
    return found


def _jobs(metafunc: pytest.Metafunc) -> "list[Job]":
    """The jobs of a test function, each once."""
    from harness.errors import HarnessError
    from harness.explore.kill_points.jobs import jobs_asked_for

    config, marker = metafunc.config, metafunc.definition.get_closest_marker(MARKER)
    own = marker.args if marker is not None else ()
    asked = [name for name in str(config.getoption("--kill-points-of")).split(",") if name]
    try:
        return jobs_asked_for(asked, lambda: own or belonging(config), root=config.rootpath, here=config.invocation_params.dir)
    except HarnessError as error:
        raise pytest.UsageError(str(error)) from error
