"""The setting of a process that several threads have at once."""

import os
import signal
import threading

import pytest

from harness.targets.local import subreaper as room
from harness.targets.local.subreaper import Subreaper


class Kernel:
    """Keeps the setting; another thread comes when it is first set."""

    def __init__(self) -> None:
        self.value = 0
        self.comes: threading.Thread | None = None

    def set(self, value: int) -> None:
        self.value = value
        comes, self.comes = self.comes, None
        if comes is not None:
            comes.start()
            comes.join(0.1)  # it waits for us, or else does its work in between

    def is_set(self) -> bool:
        return bool(self.value)


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    made = Kernel()
    monkeypatch.setattr(room, "_set", made.set)
    monkeypatch.setattr(room, "adopts_orphans", made.is_set)
    return made


def test_what_two_threads_acquire_at_once_is_restored_when_both_have_released_it(kernel: Kernel):
    shared = Subreaper()
    other = kernel.comes = threading.Thread(target=shared.acquire, args=("the other",))

    shared.acquire("one")
    other.join()
    assert kernel.value == 1
    shared.release("one")
    assert kernel.value == 1, "the other has it still"
    shared.release("the other")
    assert kernel.value == 0


def test_who_acquires_while_another_releases_has_it(kernel: Kernel):
    shared = Subreaper()
    shared.acquire("one")
    other = kernel.comes = threading.Thread(target=shared.acquire, args=("the other",))

    shared.release("one")
    other.join()

    assert kernel.value == 1


def test_a_child_is_reaped_once_it_has_ended_and_until_then_it_has_to():
    shared, child = Subreaper(), os.spawnlp(os.P_NOWAIT, "sleep", "sleep", "60")

    assert shared.reap(child)
    os.kill(child, signal.SIGKILL)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    assert not shared.reap(child)
    with pytest.raises(ChildProcessError):
        os.waitpid(child, os.WNOHANG)


def test_what_was_set_before_us_stays_set(kernel: Kernel):
    kernel.value = 1
    shared = Subreaper()

    shared.acquire("one")
    shared.release("one")

    assert kernel.value == 1


def test_who_has_released_it_or_never_come_to_acquire_it_takes_it_from_nobody(kernel: Kernel):
    shared = Subreaper()
    shared.acquire("one")

    shared.release("interrupted before it acquired")
    assert kernel.value == 1
    shared.release("one")
    shared.release("one")
    shared.acquire("another")

    assert kernel.value == 1
