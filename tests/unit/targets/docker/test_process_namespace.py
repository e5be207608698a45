"""Ids in a container and ids here."""

import dataclasses
import os

import pytest

from harness.process_table import SEARCHES_A_MOMENT, ProcessRow, ProcessTable
from harness.targets.docker import process_namespace
from harness.targets.docker.process_namespace import ProcessNamespace, is_first_of_a_namespace


@pytest.fixture
def searches(monkeypatch):
    """A machine on which process 100 has the children 101 (inside: 7) and 102 (a zombie), and 200 is a stranger."""
    rows = [(100, 1, "running"), (101, 100, "running"), (102, 100, "gone"), (200, 1, "running")]
    table = ProcessTable(ProcessRow(pid=pid, parent=parent, session=pid, state=state, started=0.0) for pid, parent, state in rows)
    searched: list[int] = []
    monkeypatch.setattr(process_namespace, "read_table", lambda: searched.append(1) or table)
    monkeypatch.setattr(process_namespace, "read_row", table.rows.get)
    monkeypatch.setattr(process_namespace, "inside_id", {100: 1, 101: 7, 102: 8, 200: 1}.get)
    return searched, table


def test_the_first_process_is_known_without_a_search(searches):
    namespace = ProcessNamespace()
    namespace.begin(100)

    assert namespace.here(1, 0.0) == 100
    assert searches[0] == []


def test_another_is_searched_once(searches):
    namespace = ProcessNamespace()
    namespace.begin(100)

    assert [namespace.here(7, 0.0), namespace.here(7, 1.0)] == [101, 101]
    assert len(searches[0]) == 1


def test_what_is_not_there_is_unknown_and_does_not_keep_us_busy(searches):
    namespace = ProcessNamespace()
    namespace.begin(100)

    assert {namespace.here(pid, 5.0) for pid in range(1000, 2000)} == {0}
    assert len(searches[0]) == SEARCHES_A_MOMENT
    assert namespace.here(7, 6.0) == 101


@pytest.mark.parametrize("lie", [0, -1, 8])
def test_what_can_be_no_process_is_unknown(searches, lie):
    namespace = ProcessNamespace()
    namespace.begin(100)

    assert namespace.here(lie, 0.0) == 0


def test_members_are_those_that_are_alive_the_first_one_first(searches):
    namespace = ProcessNamespace()
    assert namespace.members(searches[1]) == ()

    namespace.begin(100)

    assert [row.pid for row in namespace.members(searches[1])] == [100, 101]


def test_who_has_the_id_of_the_first_process_after_its_end_has_no_members_of_ours(searches):
    namespace = ProcessNamespace()
    namespace.begin(100)
    rows = searches[1].rows
    stranger = {100: dataclasses.replace(rows[100], started=1.0), 101: rows[101]}

    assert namespace.members(ProcessTable(stranger.values())) == ()
    assert namespace.members(ProcessTable([dataclasses.replace(rows[100], state="gone"), rows[101]])) == ()
    assert namespace.members(ProcessTable([rows[101]])) == ()


def test_we_are_the_first_of_no_namespace_below_ours():
    assert not is_first_of_a_namespace(os.getpid())
    assert not is_first_of_a_namespace(1)
    assert not is_first_of_a_namespace(2**22 + 1)
