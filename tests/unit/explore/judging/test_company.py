"""Who wants to be alone is; who does not, is beside others; nobody waits for ever."""

from pathlib import Path

import pytest

from harness.clock import ManualClock
from harness.explore.judging.company import Company, CompanyStaysError

WAIT_S = 60.0


def test_several_run_beside_one_another(tmp_path: Path) -> None:
    first, second = (Company(tmp_path, ManualClock(), wait_s_max=WAIT_S) for _ in range(2))
    with first.beside_others(), second.beside_others():
        pass


@pytest.mark.parametrize("way", ["alone", "beside_others"])
def test_nobody_runs_beside_one_that_is_alone(tmp_path: Path, way: str) -> None:
    clock = ManualClock()
    first, second = Company(tmp_path, ManualClock(), wait_s_max=WAIT_S), Company(tmp_path, clock, wait_s_max=WAIT_S)
    with first.alone():
        with pytest.raises(CompanyStaysError, match="explore with --jobs 1"), getattr(second, way)():
            pass
        assert clock.monotonic_s() >= WAIT_S
    with getattr(second, way)():
        pass


def test_nobody_is_alone_beside_others(tmp_path: Path) -> None:
    first, second = (Company(tmp_path, ManualClock(), wait_s_max=WAIT_S) for _ in range(2))
    with first.beside_others(), pytest.raises(CompanyStaysError), second.alone():
        pass
