"""The contract of a target: every test here runs against every target, and none looks at how it is made."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.targets import left_behind
from tests.contract.driver import TRAITS, Run
from tests.contract.presence import skip_or_fail_without


@pytest.fixture(params=TRAITS)
def target_name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
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
