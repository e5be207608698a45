"""Whom an attempt may kill."""

import os
import sys
from pathlib import Path

import pytest

from harness.process_table import ProcessRow, ProcessTable
from harness.targets.local import process_group
from harness.targets.local.process_group import ProcessGroup


def test_a_stranger_that_bears_the_id_of_the_first_process_is_not_killed_with_its_leftovers(monkeypatch: pytest.MonkeyPatch):
    group = ProcessGroup([sys.executable, "-c", ""], directory=Path.cwd(), environment={}, marks=[b"HARNESS_RUN_ID=nobody"])
    os.waitid(os.P_PID, group.pid, os.WEXITED | os.WNOWAIT)
    assert group.poll() == 0
    stranger = ProcessRow(pid=group.pid, parent=1, session=group.pid, state="running", started=-1.0)
    child = ProcessRow(pid=group.pid + 1, parent=group.pid, session=group.pid, state="running", started=-1.0)
    signalled: list[int] = []
    monkeypatch.setattr(process_group, "read_table", lambda: ProcessTable([stranger, child]))
    monkeypatch.setattr(process_group, "send", lambda pid, _number: signalled.append(pid))

    assert group.sweep()
    assert signalled == []
    group.close()


def test_who_was_killed_is_waited_for_also_when_it_has_no_environment_any_more_to_be_known_by(monkeypatch: pytest.MonkeyPatch):
    group = ProcessGroup([sys.executable, "-c", ""], directory=Path.cwd(), environment={}, marks=[b"HARNESS_RUN_ID=nobody"])
    os.waitid(os.P_PID, group.pid, os.WEXITED | os.WNOWAIT)
    assert group.poll() == 0
    orphan = ProcessRow(pid=group.pid + 1, parent=os.getpid(), session=group.pid, state="running", started=0.0)
    tables = [ProcessTable([orphan]), ProcessTable([]), ProcessTable([])]
    has_to_end = [True, True, False]
    monkeypatch.setattr(process_group, "read_table", lambda: tables.pop(0))
    monkeypatch.setattr(process_group, "send", lambda _pid, _number: True)
    monkeypatch.setattr(process_group.subreaper, "may_have_orphans", lambda: True)
    monkeypatch.setattr(process_group.subreaper, "reap", lambda _pid: has_to_end.pop(0))

    assert [group.sweep() for _ in range(3)] == [False, False, True]
    assert group.leftover_count == 1
    group.close()
