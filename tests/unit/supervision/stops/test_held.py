"""A log that counts."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from typing import cast

from harness.supervision.recorder.caller import Caller
from harness.supervision.stops.counting import Stop, Stops
from harness.supervision.stops.held import CountingLog, HeldRecord
from harness.supervision.stops.ranks import Ranks


def log_of(*stops: Stop) -> CountingLog:
    return CountingLog(Stops(list(stops)), Ranks(lambda _process: b"", lambda _process: 0))


def say(log: CountingLog, line: object, process: int = 5) -> None:
    log.append("event", process=process, line=line if isinstance(line, str) else json.dumps(line))


def found(log: CountingLog) -> list[tuple[int, str]]:
    return [(stop.index, path) for stop, path in log.met]


def test_an_operation_is_met_with_the_path_it_acted_on():
    log = log_of(Stop(3, operation="rename", path="tmp*"), Stop(4, operation="link", path="other"), Stop(5, operation="write", path="data"))

    log.append("rename", process=5, path="tmp1", to="step_1", node=1)
    log.append("link", process=5, to="other", node=1)
    log.acted_on = "data"
    log.append("write", process=5, node=1)

    assert found(log) == [(3, "tmp1"), (4, "other"), (5, "data")]


def test_a_sync_by_a_write_acts_on_what_was_written_and_not_on_what_was_announced_before(tmp_path: Path):
    (tmp_path / "a").touch()
    (tmp_path / "b").touch()
    log = log_of(Stop(0, operation="sync", path="b"))
    record = HeldRecord(os.fsencode(tmp_path), log, {}, stops=log._stops, ranks=log._ranks)
    record.take_in((record.nodes.above, record.nodes.name))
    a, b = (record.nodes.root.children[name] for name in (b"a", b"b"))
    caller = cast("Caller", SimpleNamespace(process=5))
    record.announce("sync", caller, node=a)

    record.announce("write", caller, node=b)
    log.append("sync", process=5, node=b.number, scope="file")

    assert found(log) == [(0, "b")]


def test_what_came_about_without_a_process_of_the_job_is_not_counted():
    log = log_of(Stop(0, operation="move-out", path="a"))
    log.append("move-out", path="a", node=1)
    assert found(log) == []


def test_a_word_of_a_rank_begins_its_count_and_names_its_process():
    log = log_of(Stop(0, operation="unlink", path="a", after="gc.begin", rank=1))

    log.append("unlink", process=5, path="a", node=1)
    say(log, {"event": "gc.begin", "rank": 1})
    log.append("unlink", process=6, path="a", node=1)
    assert found(log) == []
    log.append("unlink", process=5, path="a", node=1)

    assert found(log) == [(0, "a")]


def test_what_is_no_word_is_passed_over():
    log = log_of(Stop(0, operation="unlink", path="a"))
    for line in ("no json", "[" * 100_000, "[]", {"event": 3}, {"rank": 1}, {"event": "step", "rank": "first"}):
        say(log, line)
    log.append("unlink", process=5, path="a", node=1)
    assert found(log) == [(0, "a")]


def test_data_is_counted_and_not_kept():
    log = log_of()
    log.store(memoryview(b"12345"))
    assert log.size == 5
