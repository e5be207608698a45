"""What is left on an engine is found by who looks there, and nothing is said to be clean that was not asked."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.errors import StoreError, TargetUnavailableError
from harness.targets.docker import leftovers
from harness.targets.docker.footprint import footprint_path, read_footprint, remove_footprint, write_footprint
from harness.targets.docker.leftovers import left_behind, remove_left_behind

HERE = "unix:///var/run/docker.sock"


class FakeEngine:
    """One engine with containers of a run, or none that answers."""

    def __init__(self, host: str, *names: str, problem: str = "") -> None:
        self.host, self.names, self.problem = host, list(names), problem

    @contextlib.contextmanager
    def open(self) -> Iterator["FakeEngine"]:
        if self.problem:
            raise TargetUnavailableError(target="docker", reason=self.problem, advice="start it")
        yield self

    def containers_of(self, _run_id: str) -> list[tuple[str, str]]:
        return [(name, name) for name in self.names]

    def remove(self, container: str) -> None:
        self.names.remove(container)


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path))


def use(patch: pytest.MonkeyPatch, engine: FakeEngine, *, may_hold: bool = True) -> FakeEngine:
    patch.setattr(leftovers, "open_engine", engine.open)
    patch.setattr(leftovers, "may_hold_containers", lambda: may_hold)
    return engine


def test_containers_are_told_and_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    use(monkeypatch, FakeEngine(HERE, "a", "b"))
    write_footprint("run-1", HERE)

    assert left_behind("run-1") == ["container a", "container b"]
    assert remove_left_behind("run-1") == ["removed container a", "removed container b"]
    assert left_behind("run-1") == remove_left_behind("run-1") == []
    assert read_footprint("run-1") == ""


@pytest.mark.parametrize("may_hold", [True, False], ids=["another-socket", "no-socket-at-all"])
def test_an_engine_that_cannot_be_asked_is_not_clean(monkeypatch: pytest.MonkeyPatch, may_hold: bool) -> None:
    use(monkeypatch, FakeEngine(HERE, problem="no Docker engine answers: Permission denied"), may_hold=may_hold)
    write_footprint("run-1", HERE)

    (line,) = left_behind("run-1")
    assert remove_left_behind("run-1") == []

    told, _, advice = line.partition("; ")
    assert told == f"containers, if any: the engine at {HERE} cannot be asked: no Docker engine answers: Permission denied"
    assert advice.endswith(f"or remove {footprint_path('run-1')} if it is gone for good")
    assert left_behind("run-1") == [line]
    assert read_footprint("run-1") == HERE


def test_another_engine_than_that_of_the_run_is_not_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = use(monkeypatch, FakeEngine(HERE, "a"))
    write_footprint("run-1", "tcp://elsewhere:2375")

    (line,) = left_behind("run-1")
    assert line.startswith(
        f"containers, if any: they were made on the engine at tcp://elsewhere:2375, and the one that answers is at {HERE}; start"
    )
    assert remove_left_behind("run-1") == []
    assert engine.names == ["a"]


@pytest.mark.parametrize("may_hold", [True, False])
def test_a_run_that_made_no_container_has_left_none(monkeypatch: pytest.MonkeyPatch, may_hold: bool) -> None:
    use(monkeypatch, FakeEngine(HERE, problem="no Docker engine answers"), may_hold=may_hold)

    assert left_behind("run-1") == remove_left_behind("run-1") == []


def test_a_footprint_that_cannot_be_written_or_read_is_an_error(tmp_path: Path) -> None:
    remove_footprint("run-1")
    (tmp_path / "containers" / "run-1").mkdir(parents=True)

    with pytest.raises(StoreError):
        write_footprint("run-1", HERE)
    with pytest.raises(StoreError):
        read_footprint("run-1")
