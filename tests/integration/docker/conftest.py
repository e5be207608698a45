"""What only containers can show: skipped where there is no engine, unless HARNESS_REQUIRE names docker."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.targets import left_behind
from tests.contract.driver import Run
from tests.contract.presence import skip_or_fail_without


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., Run]]:
    """Starts runs on the docker target; afterwards each is stopped and must have left nothing behind."""
    skip_or_fail_without("docker")
    runs: list[Run] = []

    def start_run(command: tuple[str, ...], **launch: Any) -> Run:
        runs.append(Run("docker", tmp_path / str(len(runs)), command, **launch))
        return runs[-1].start()

    yield start_run
    for run in runs:
        run.stop()
    assert [left_behind(run.launch.run_id) for run in runs] == [[] for _ in runs]
