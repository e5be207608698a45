"""The contract of a target: every test here runs against every target, and none looks at how it is made."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.clock import SystemClock
from harness.targets import left_behind
from tests.contract.driver import TRAITS, Run
from tests.contract.presence import skip_or_fail_without


@pytest.fixture(scope="module")  # what is in the environment meanwhile is nothing for tests of other modules
def google_cloud(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Google Cloud for the target ``gcp``: the project that is named, by a plan of ``tests.contract.project``, else an emulator."""
    if os.environ.get("HARNESS_GCP_PROJECT"):
        from harness.targets.gcp.place import resolve_place
        from harness.targets.gcp.project_holding import project_held

        with project_held(resolve_place({}, os.environ), SystemClock()):
            yield
        return
    from harness.emulator.session import emulated_session

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))  # first: the session is struck off where it was written down
        with emulated_session():
            yield


@pytest.fixture(params=TRAITS)
def target_name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    if name == "gcp":
        request.getfixturevalue("google_cloud")
    skip_or_fail_without(name)
    return name


@pytest.fixture
def start(target_name: str, tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Starts runs; afterwards each is stopped and must have left nothing behind."""
    runs: list[Run] = []

    def start_run(command: tuple[str, ...], **launch: Any) -> Run:
        runs.append(Run(target_name, tmp_path / str(len(runs)), command, **launch))
        return runs[-1].start()

    yield start_run
    for run in runs:
        run.stop()
    assert [left_behind(run.launch.run_id) for run in runs] == [[] for _ in runs]
