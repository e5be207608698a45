"""Triggers and the operation log speak of operations in the same words, so that every kill point can be addressed live."""

from typing import get_args

from harness.explore.operations import Change
from harness.scenario.triggers import AtOperation, OperationKind
from harness.supervision.path_classes import path_class


def test_a_trigger_can_name_every_operation_that_the_log_knows():
    assert set(get_args(OperationKind)) == {kind.__struct_config__.tag for kind in get_args(Change)}


def test_the_class_of_a_path_is_a_path_to_a_trigger():
    for path in (".", "step_00000010/data.bin", "a/b-17.tmp-3", "tmpab12cd_e/x", "ünïcode 1"):
        found = path_class(path)
        assert AtOperation(operation="write", path=found).path == path_class(found)
