"""Whose a process is, from a table of processes."""

import dataclasses
import os
import signal
import subprocess
import sys
import time

import pytest

from harness.process_table import HAS_PROC, ProcessRow, ProcessTable, is_there, read_row, read_row_portably, read_table, send_to
from harness.targets.local.processes import find_processes


def row(pid, parent, session, state="running"):
    return ProcessRow(pid=pid, parent=parent, session=session, state=state, started=0.0)


@pytest.fixture
def table():
    ours = os.getsid(0)
    return ProcessTable(
        [
            row(os.getpid(), 1, ours),
            row(-10, os.getpid(), -10),  # a leader
            row(-11, -10, -10),
            row(-12, -11, -12),  # left the session
            row(-13, os.getpid(), -12),  # its orphaned sibling
            row(-14, os.getpid(), -10, "gone"),
            row(-20, os.getpid(), -20),  # another attempt
            row(-21, -20, ours),
            row(-30, 1, ours),
        ]
    )


def test_a_family_is_descendants_and_sessions(table):
    assert table.family([-10]) == {-10, -11, -12, -13, -14}


def test_our_own_session_makes_nobody_a_relative(table):
    assert table.family([-20]) == {-20, -21}


def test_descendants_are_children_and_theirs_and_nobody_s_session(table):
    assert table.descendants(-10) == {-11, -12}
    assert table.descendants(os.getpid()) == {-10, -11, -12, -13, -20, -21}
    assert table.descendants(-99) == set()


def test_a_process_that_is_not_there_has_no_family(table):
    assert table.family([-99]) == set()


def test_without_a_mark_nobody_carries_it(table):
    assert read_table().carrying([]) == set()


def test_a_zombie_is_not_alive(table):
    assert table.is_alive(-10)
    assert not table.is_alive(-14)
    assert not table.is_alive(-99)


def test_both_ways_of_reading_agree_about_this_process():
    direct, portable = read_row(os.getpid()), read_row_portably(os.getpid())

    assert direct is not None
    assert portable is not None
    assert (direct.pid, direct.parent, direct.session, direct.state) == (os.getpid(), os.getppid(), os.getsid(0), "running")
    assert (portable.pid, portable.parent, portable.session, portable.state) == (direct.pid, direct.parent, direct.session, direct.state)


def test_this_process_is_in_the_table_and_never_its_own_prey(monkeypatch):
    assert os.getpid() in read_table().rows
    assert find_processes("no-such-run") == []


def test_a_process_that_is_gone_has_no_row():
    assert read_row(2**22 + 1) is None
    assert read_row_portably(2**22 + 1) is None


@pytest.mark.skipif(not HAS_PROC, reason="told from /proc")
def test_a_child_without_an_environment_may_be_a_program_that_begins():
    with subprocess.Popen(["sleep", "60"], env={}) as bare, subprocess.Popen(["sleep", "60"], env={"A": "1"}) as named:
        until(lambda: read_table().beginners(os.getpid()) == {bare.pid})
        assert read_table().beginners(bare.pid) == set()
        bare.kill()
        named.kill()


HELD = """
import ctypes, signal
libc, stack = ctypes.CDLL(None), ctypes.create_string_buffer(1 << 16)
CLONE_VFORK = 0x4000
top = ctypes.c_void_p((ctypes.addressof(stack) + len(stack)) & ~15)
libc.clone(ctypes.cast(libc["raise"], ctypes.c_void_p), top, CLONE_VFORK | signal.SIGCHLD, ctypes.c_void_p(signal.SIGSTOP))
"""


def until(condition):
    deadline_s = time.monotonic() + 60
    while not (value := condition()):
        assert time.monotonic() < deadline_s
        time.sleep(0.001)
    return value


@pytest.mark.skipif(not HAS_PROC, reason="only Linux has a state of its own for who waits in vfork")
def test_who_waits_in_vfork_for_a_stopped_child_is_stopped_once_it_is_told():
    def states():
        return {pid: held.state for pid in (process.pid, child) if (held := read_row(pid))}

    with subprocess.Popen([sys.executable, "-S", "-c", HELD]) as process:
        (child,) = until(lambda: read_table().descendants(process.pid))
        until(lambda: states() == {process.pid: "running", child: "stopped"})

        process.send_signal(signal.SIGSTOP)
        until(lambda: states() == {process.pid: "stopped", child: "stopped"})

        process.send_signal(signal.SIGCONT)
        until(lambda: states() == {process.pid: "running", child: "stopped"})
        os.kill(child, signal.SIGCONT)
        assert process.wait(60) == 0


@pytest.mark.parametrize("has_descriptors", [True, False])
def test_a_signal_goes_to_that_very_process(monkeypatch, has_descriptors):
    if not has_descriptors:
        monkeypatch.delattr(os, "pidfd_open", raising=False)
    with subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"]) as process:
        process_row = read_row(process.pid)
        assert process_row is not None
        later = dataclasses.replace(process_row, started=process_row.started + 1)  # of the same id
        assert (is_there(later), send_to(later, 9), process.poll()) == (False, False, None)
        assert (is_there(process_row), send_to(process_row, 9)) == (True, True)
        assert process.wait(10) == -9
    assert (is_there(process_row), send_to(process_row, 9)) == (False, False)
