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
