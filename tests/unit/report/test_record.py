"""A run is read as far as it can be read, and what cannot be is said."""

import pytest

from harness.history import RunOpened
from harness.report.record import read_record
from harness.store import RunDirectory
from tests.unit.checkers.builders import resumed
from tests.unit.report.records import VALID, keep


def test_a_whole_run_has_no_problems(tmp_path):
    record = read_record(keep(tmp_path, resumed().events))

    assert record.problems == ()
    assert record.verdict == VALID
    assert (record.name, len(record.events)) == ("a-job-is-judged", len(resumed().events))


def test_an_empty_directory_is_read_with_every_piece_named_as_missing(tmp_path):
    record = read_record(RunDirectory(tmp_path / "some-scenario" / "some-run"))

    assert (record.scenario, record.verdict, record.events, record.end_s) == (None, None, (), 0.0)
    assert record.name == "some-scenario"
    for piece in ("scenario", "history", "not judged"):
        assert any(piece in problem for problem in record.problems)


def test_a_torn_last_line_is_said_and_the_rest_is_read(tmp_path):
    record = read_record(keep(tmp_path, resumed().events, tail=b'{"kind":"step","t_s":9'))

    assert len(record.events) == len(resumed().events)
    assert any("torn" in problem for problem in record.problems)


def test_a_damaged_line_in_the_middle_is_named_and_the_others_are_read(tmp_path):
    directory = keep(tmp_path, resumed().events)
    lines = directory.history_path.read_bytes().split(b"\n")
    lines[4:4] = [b"\xff\xfe not json", b'{"kind":"of-another-version","t_s":1.0}']
    directory.history_path.write_bytes(b"\n".join(lines))

    record = read_record(directory)

    assert len(record.events) == len(resumed().events)
    assert any("damaged" in problem and ":5:" in problem for problem in record.problems)


def test_fields_of_a_later_version_are_passed_over(tmp_path):
    directory = keep(tmp_path, [], tail=b'{"kind":"done","t_s":1.0,"step":3,"colour":"blue"}\n')

    assert read_record(directory).end_s == 1.0


def test_moments_that_no_run_can_have_are_left_out(tmp_path):
    directory = keep(tmp_path, resumed().events, tail=b'{"kind":"done","t_s":1e300,"step":3}\n')

    record = read_record(directory)

    assert record.end_s < 100
    assert any("1 events of the history lie more than" in problem for problem in record.problems)


@pytest.mark.parametrize("name", ["scenario_path", "verdict_path", "fidelity_path", "manifest_path"])
def test_a_document_that_is_no_document_is_named(tmp_path, name):
    directory = keep(tmp_path, resumed().events)
    path = getattr(directory, name)
    path.write_bytes(b"\xff{")

    record = read_record(directory)

    assert len(record.problems) == 1


def test_a_run_that_still_goes_on_is_not_called_given_up(tmp_path):
    record = read_record(keep(tmp_path, resumed().events, verdict=None))

    assert record.problems == ("the run is still going on",)


def test_the_header_is_found_where_it_is(tmp_path):
    opened = read_record(keep(tmp_path, resumed().events)).opened

    assert isinstance(opened, RunOpened)
    assert opened.run_id == "r"
