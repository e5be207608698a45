"""What is written of a failure says all that it takes to see it again, and is not believed once it was changed."""

import ast
import json
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InvalidDocumentError, StoreError
from harness.explore.schedules.failures import SCHEDULE_NAME, failure_of, read_failure, write_failure
from harness.scenario import Injection, Schedule
from harness.scenario.faults import Kill
from harness.scenario.triggers import AtMarker
from harness.strategies import schedules
from tests.unit.explore.schedules.laboratory import JOB, TORN, case_of

CASE = case_of(Injection(fault=Kill(), at=AtMarker(event="save.begin"), name="mine"))


@given(st.data())
def test_what_is_read_is_the_case_that_failed(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject):
    case = msgspec.structs.replace(case_of(*data.draw(schedules(JOB, max_faults=4)).injections), seed=7, target="docker")
    path = write_failure(failure_of(case, TORN, (3, 5)), tmp_path_factory.mktemp("failures"))

    found = read_failure(path)

    assert found.case.key() == case.key()
    assert (found.case.scenario.expects, found.case.seed, found.case.target) == (case.scenario.expects, 7, "docker")
    assert (found.signature, found.reproduced) == (TORN, (3, 5))
    assert str(found) == "intact-checkpoints step_*/data; reproduces 3 of 5"


def test_the_same_failure_is_the_same_file_whatever_the_faults_were_called(tmp_path: Path):
    paths = [
        write_failure(failure_of(case, TORN, (5, 5)), tmp_path)
        for case in (CASE, case_of(msgspec.structs.replace(CASE.injections[0], name="")))
    ]
    assert paths[0] == paths[1] == write_failure(failure_of(CASE, TORN, (3, 5)), tmp_path)
    assert paths[0].name == SCHEDULE_NAME
    assert paths[0].parent.name.startswith("a-job-is-killed-")


def test_the_schedule_stands_by_itself_in_the_document(tmp_path: Path):
    plain = json.loads(write_failure(failure_of(CASE, TORN, (5, 5)), tmp_path).read_text())
    assert plain["schema"] == 1
    assert (
        msgspec.convert(plain["schedule"], Schedule).injections == case_of(msgspec.structs.replace(CASE.injections[0], name="")).injections
    )
    assert plain["scenario"]["injections"] == []


def test_the_test_that_is_written_is_a_test_of_that_file(tmp_path: Path):
    path = write_failure(failure_of(CASE, TORN, (5, 5)), tmp_path)
    (test,) = path.parent.glob("test_*.py")
    tree = ast.parse(test.read_text())

    assert ast.get_docstring(tree).startswith("job failed: intact-checkpoints step_*/data; reproduces 5 of 5.")
    assert [node.name for node in tree.body if isinstance(node, ast.FunctionDef)] == ["test_it_stays_mended"]
    assert test.stem.isidentifier()


@pytest.mark.parametrize(
    ("field", "value", "problem"),
    [
        ("seed", 8, "sha256: the document was changed after it was written; take the field out"),
        ("schema", 2, "schema: it is 2, and this version reads 1"),
        ("sha256", "0" * 64, "sha256: the document was changed"),
        ("extra", 1, "unknown field `extra`"),
    ],
)
def test_what_was_changed_is_refused(tmp_path: Path, field: str, value: object, problem: str):
    path = write_failure(failure_of(CASE, TORN, (5, 5)), tmp_path)
    path.write_text(json.dumps(json.loads(path.read_text()) | {field: value}))
    with pytest.raises(InvalidDocumentError, match=problem):
        read_failure(path)


def test_one_that_is_written_by_hand_needs_no_hash(tmp_path: Path):
    path = write_failure(failure_of(CASE, TORN, (5, 5)), tmp_path)
    plain = json.loads(path.read_text())
    del plain["sha256"]
    path.write_text(json.dumps(plain | {"seed": 8}))
    assert read_failure(path).seed == 8


def test_faults_that_are_none_of_the_job_are_refused(tmp_path: Path):
    path = write_failure(failure_of(CASE, TORN, (5, 5)), tmp_path)
    plain = json.loads(path.read_text())
    del plain["sha256"]
    plain["schedule"]["injections"][0]["victim"] = {"task": 3}
    path.write_text(json.dumps(plain))
    with pytest.raises(InvalidDocumentError, match=r"schedule: injections\[0\]\.victim\.task is 3"):
        read_failure(path)


def test_what_cannot_be_read_or_written_is_told(tmp_path: Path):
    with pytest.raises(InvalidDocumentError, match="No such file"):
        read_failure(tmp_path / "none.json")
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot create"):
        write_failure(failure_of(CASE, TORN, (5, 5)), tmp_path / "file")
