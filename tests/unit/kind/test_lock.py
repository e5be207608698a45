"""One process at a time, and nobody waits for ever."""

import os
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from harness.clock import ManualClock
from harness.errors import StoreError, TargetUnavailableError
from harness.kind.cache import turn_path
from harness.kind.lock import POLL_S, TURN_S_MAX, Lock, Turn


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))


def taken_at() -> str:
    return f"{datetime.fromtimestamp(turn_path('c').stat().st_mtime, UTC):%H:%M:%S} UTC"


def test_one_run_at_a_time() -> None:
    clock, first, second = ManualClock(), Turn("c"), Turn("c")
    said: list[str] = []

    assert first.take(clock, said.append) == 0.0
    assert said == []
    with pytest.raises(TargetUnavailableError) as refused:
        second.take(clock, said.append)
    assert said == [f"process {os.getpid()} works on the cluster c, since {taken_at()}; waiting for it to end"]
    assert TURN_S_MAX < clock.monotonic_s() < TURN_S_MAX + 5

    first.free()
    assert second.take(clock) == 0.0
    assert second.is_held
    second.free()
    second.free()
    assert str(refused.value) == (
        f"target 'kind' is not available: process {os.getpid()} works on the cluster c and has not ended within 1800 s; "
        "end it, then run `harness clean`"
    )


def test_another_cluster_is_another_turn() -> None:
    clock, first, second = ManualClock(), Turn("c"), Turn("d")

    first.take(clock)
    second.take(clock)

    first.free()
    second.free()


def test_a_turn_for_a_while_ends_with_it_unless_it_was_held_before() -> None:
    clock, turn = ManualClock(), Turn("c")

    with turn.held(clock):
        assert turn.is_held
    assert not turn.is_held

    turn.take(clock)
    with turn.held(clock):
        pass
    assert turn.is_held
    turn.free()


def test_who_holds_it_without_a_word_is_waited_for_all_the_same(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = Lock(path, target="kind", others="builds", patience_s=5)
    first.take(ManualClock())
    path.write_text("")

    with pytest.raises(TargetUnavailableError, match="process of unknown id builds and has not ended within 5 s"):
        Lock(path, target="kind", others="builds", patience_s=5).take(ManualClock())
    first.free()


def test_a_lock_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "cache").touch()

    with pytest.raises(StoreError, match="or set HARNESS_CACHE_DIR to another place"):
        Turn("c").take(ManualClock())


def test_a_full_disk_keeps_nobody_from_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    turn = Turn("c")
    monkeypatch.setattr("harness.kind.lock.os.write", full)

    assert turn.take(ManualClock()) == 0.0
    assert turn.is_held
    turn.free()


class BusyClock(ManualClock):
    """Things happen while somebody sleeps, one at a time."""

    def __init__(self, happenings: Sequence[Callable[[], object]]) -> None:
        super().__init__()
        self._happenings = list(happenings)

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        if self._happenings:
            self._happenings.pop(0)()


def test_who_waits_comes_before_who_gives_it_back_and_wants_it_again() -> None:
    holder, waiting = Turn("c"), Turn("c")
    holder.take(ManualClock())

    def give_back_and_want_it_again() -> None:
        holder.free()
        with pytest.raises(TargetUnavailableError):
            holder.take(ManualClock())

    assert waiting.take(BusyClock([give_back_and_want_it_again])) == POLL_S
    waiting.free()
    assert holder.take(ManualClock()) == 0.0
    holder.free()


def test_who_waits_has_patience_with_each_holder_anew(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first, waiting = (Lock(path, target="kind", others="builds", patience_s=5) for _ in range(2))
    first.take(ManualClock())

    def is_followed_by_another() -> None:
        path.write_text("1\n")  # as whoever has it next writes there

    clock, said = BusyClock([*[lambda: None] * 8, is_followed_by_another]), list[str]()
    with pytest.raises(TargetUnavailableError, match="process 1 builds"):
        waiting.take(clock, said.append)
    assert [line.partition(",")[0] for line in said] == [f"process {os.getpid()} builds", "process 1 builds"]
    assert clock.monotonic_s() > 9 * POLL_S + 5
    first.free()
