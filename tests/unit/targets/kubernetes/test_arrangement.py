"""A place that is not ready is waited for as long as its parts may take, and what is said then can be done."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.errors import BrokenHarnessError
from harness.kind.nodes import READY_S as NODES_READY_S
from harness.targets.kubernetes.arrangement import READY_S, Arrangement
from tests.unit.targets.kubernetes.fake_host import Host


class SlowPools:
    """Pools that never come to rest."""

    def read(self) -> None:
        """Which is at once."""

    def scale(self, *_: object) -> None:
        """Which is begun."""

    def is_busy(self) -> bool:
        return True


def test_pools_that_are_slow_get_the_time_of_two_batches_and_keep_their_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    host = Host(tmp_path)
    storage = SimpleNamespace(directory=tmp_path, moved_from="", prepare=lambda: None)
    arrangement = Arrangement(host.grounds, storage, SlowPools())  # type: ignore[arg-type]  what is asked of them
    arrangement.make(SimpleNamespace(companions=list))  # type: ignore[arg-type]  a run of one host
    began_s = host.grounds.clock.monotonic_s()

    assert not arrangement.is_ready(began_s + 2 * NODES_READY_S)
    with pytest.raises(BrokenHarnessError, match="did not come to their first sizes within 360 s; see `docker ps --all`") as slow:
        arrangement.is_ready(began_s + READY_S + 1)
    assert "harness down" not in str(slow.value)
