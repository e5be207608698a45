"""Errors say what was attempted, what was seen and what to do; each carries its fields, and the tree is the one that is drawn."""

import re
from pathlib import Path

import pytest

from harness import errors
from harness.errors import (
    BrokenHarnessError,
    CapabilityMissingError,
    HarnessError,
    HealError,
    HistoryCorruptError,
    InjectionError,
    InvalidDocumentError,
    StoreError,
    TargetUnavailableError,
    UndoError,
    UnknownNameError,
    UsageError,
    WorkloadMissingError,
)

CASES: dict[type[HarnessError], tuple[dict[str, object], str]] = {
    InvalidDocumentError: (
        {"document": "harness.toml", "field": "workload.steps", "problem": "it is -1", "advice": "count from 0"},
        "harness.toml: workload.steps: it is -1; count from 0",
    ),
    UnknownNameError: (
        {"kind": "target", "name": "lokal", "known": ("local", "docker")},
        "no target is named 'lokal'; did you mean local?",
    ),
    WorkloadMissingError: (
        {"workload": "counter", "program": "trian", "directory": Path("/srv")},
        "workload 'counter': cannot find 'trian' from /srv; correct `command` or install it",
    ),
    CapabilityMissingError: (
        {"scenario": "a-b", "target": "local", "needs": "node pools", "reason": "no cluster"},
        "scenario 'a-b' needs node pools, which target 'local' does not offer (no cluster); choose another target or leave it out",
    ),
    TargetUnavailableError: (
        {"target": "docker", "reason": "no daemon", "advice": "start it"},
        "target 'docker' is not available: no daemon; start it",
    ),
    StoreError: (
        {"path": Path("/runs/x"), "attempted": "write", "reason": "No space left on device"},
        "cannot write /runs/x: No space left on device; check the disk and the permissions, or choose another --runs-dir",
    ),
    HistoryCorruptError: (
        {"path": Path("h.jsonl"), "line": 7, "reason": "bad"},
        "h.jsonl:7: not an event: bad; the history was edited or written by another version",
    ),
    InjectionError: (
        {"injection": "1-kill", "fault": "kill", "reason": "no such process"},
        "injection '1-kill' (kill) could not act: no such process",
    ),
    HealError: (
        {"injection": "1-pause", "reason": "still stopped"},
        "injection '1-pause' could not be healed: still stopped; run `harness clean`",
    ),
    UndoError: (
        {"attempted": "mend node-1", "reason": "the API server has no such node"},
        "cannot mend node-1: the API server has no such node; it stays owed",
    ),
}
LEAVES = sorted(CASES, key=lambda kind: kind.__name__)


@pytest.mark.parametrize("kind", LEAVES)
def test_an_error_carries_its_fields_and_says_them(kind: type[HarnessError]):
    fields, message = CASES[kind]
    error = kind(**fields)
    assert {name: getattr(error, name) for name in fields} == fields
    assert str(error) == message


def test_every_error_is_tried_here():
    leaves = {kind for kind in _classes() if not any(other is not kind and issubclass(other, kind) for other in _classes())}
    assert leaves == set(CASES)


def test_the_tree_is_the_one_that_is_drawn():
    assert _drawn() == {kind.__name__: kind.__mro__[1].__name__ for kind in _classes() if kind is not HarnessError}


def test_a_document_without_a_field_and_a_refusal_without_a_reason_leave_nothing_dangling():
    assert str(InvalidDocumentError(document="x.json", field="", problem="not JSON")) == "x.json: not JSON"
    error = CapabilityMissingError(scenario="a-b", target="local", needs="node pools")
    assert "does not offer; choose" in str(error)


def test_a_name_that_is_like_none_is_answered_with_those_there_are():
    assert str(UnknownNameError(kind="target", name="zzz", known=("local", "docker"))).endswith("known: docker, local")
    assert str(UnknownNameError(kind="target", name="zzz", known=())).endswith("known: none")


def test_errors_are_the_builtin_ones_that_they_are_a_kind_of():
    assert issubclass(InvalidDocumentError, ValueError)
    assert issubclass(UnknownNameError, KeyError)
    assert not issubclass(TargetUnavailableError, UsageError | BrokenHarnessError)


def _classes() -> list[type[HarnessError]]:
    found = vars(errors).values()
    return [each for each in found if isinstance(each, type) and issubclass(each, HarnessError)]


def _drawn() -> dict[str, str]:
    """Each class of the picture with the one above it."""
    above: dict[str, str] = {}
    path: list[str] = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"    (?P<branch>(?:[│ ]   )*(?:[├└]── )?)(?P<name>\w+Error)\b", line)
        if match is None:
            continue
        depth = len(match["branch"]) // 4
        path[depth:] = [match["name"]]
        if depth:
            above[match["name"]] = path[depth - 1]
    return above
