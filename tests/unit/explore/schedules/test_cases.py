"""What a verdict hangs on, what two failures have in common, and what a job had said last when it was hit."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.explore.schedules.cases import canonical, markers_before, signature_of
from harness.history import BarrierReached, Booted, FaultRequested, LogLine, Marked, SaveBegun, StepDone
from harness.scenario import Injection, Schedule, Victim
from harness.scenario.faults import Kill, TruncateFile
from harness.scenario.triggers import AtMarker, AtStep, OnEffect
from harness.strategies import schedules
from harness.verdict import Finding, Outcome, Verdict, merge
from tests.unit.explore.schedules.laboratory import JOB, case_of

KILL = Injection(fault=Kill(), at=AtStep(step=3))


# ---- keys ------------------------------------------------------------------------------------------------------------


def test_words_that_nobody_judges_by_do_not_change_the_key():
    case = case_of(KILL)
    told = msgspec.structs.replace(case, scenario=msgspec.structs.replace(case.scenario, name="b-c", why="y", tags=("slow",)))
    assert told.key() == case.key()
    assert case_of(msgspec.structs.replace(KILL, name="k")).key() == case.key()
    assert case_of(msgspec.structs.replace(KILL, attempts=(1, 0))).key() == case_of(msgspec.structs.replace(KILL, attempts=(0, 1))).key()
    coordinator, first = (case_of(msgspec.structs.replace(KILL, victim=Victim(rank=rank))) for rank in ("coordinator", 0))
    assert coordinator.key() == first.key()


def test_whatever_a_verdict_hangs_on_changes_the_key():
    case = case_of(KILL)
    others = [
        case_of(),
        case_of(msgspec.structs.replace(KILL, at=AtStep(step=4))),
        case_of(KILL, workload=msgspec.structs.replace(JOB, steps=41)),
        case_of(KILL, tasks=2),
        msgspec.structs.replace(case, seed=1),
        msgspec.structs.replace(case, target="docker"),
        msgspec.structs.replace(case, scenario=msgspec.structs.replace(case.scenario, deadline_s=61.0)),
    ]
    keys = [case.key(), case.key("another workload"), *(other.key() for other in others)]
    assert len(set(keys)) == len(keys)


@given(st.data())
def test_the_canonical_form_is_its_own(data: st.DataObject):
    form = canonical(data.draw(schedules(JOB, max_faults=4)))
    assert canonical(form) == form


def test_a_name_that_another_fault_waits_for_stays():
    damage = Injection(fault=TruncateFile(), at=OnEffect(of="first"), name="damage")
    form = canonical(Schedule(injections=(msgspec.structs.replace(KILL, name="first"), damage)))
    assert [injection.name for injection in form.injections] == ["first", ""]


# ---- signatures ------------------------------------------------------------------------------------------------------


def verdict(*findings: tuple[str, Outcome, str]) -> Verdict:
    return merge(Finding(checker=checker, outcome=outcome, reason=reason) for checker, outcome, reason in findings)


@pytest.mark.parametrize(
    ("reason", "path_class"),
    [
        ("attempt 1 restored step 20, whose step_00000020/data.bin is torn", " step_*/data.bin"),
        ("state.json ends early", " state.json"),
        ("checkpoints/17/default/array_metadatas differs", " checkpoints/*/default/array_metadatas"),
        ("lost 12 of 14 steps", ""),
        ("margin 9.50 s of 10 s at 1.60 s", ""),
        ("see https://docs.example.com/a/b", ""),
    ],
)
def test_a_signature_is_the_checkers_and_the_classes_of_the_paths_that_they_name(reason: str, path_class: str):
    found = verdict(
        ("intact-checkpoints", Outcome.INVALID, reason),
        ("completes", Outcome.INVALID, "the execution failed"),
        ("grace-conduct", Outcome.UNKNOWN, "x"),
    )
    assert signature_of(found) == ("completes", f"intact-checkpoints{path_class}")


def test_only_a_broken_promise_has_a_signature():
    assert signature_of(verdict(("completes", Outcome.UNKNOWN, "x/y"))) == ()
    assert signature_of(verdict(("completes", Outcome.VALID, "x"))) == ()


# ---- the last word ---------------------------------------------------------------------------------------------------


def test_the_last_word_before_a_fault_is_counted_in_its_attempt_and_rank():
    def step(number: int, **fields: int) -> StepDone:
        return StepDone(t_s=0.0, step=number, **fields)

    def hit(name: str, **fields: int) -> FaultRequested:
        return FaultRequested(t_s=0.0, injection=name, fault="kill", **fields)

    events = (
        Booted(t_s=0.0),
        step(1),
        step(1, rank=1),
        step(2),
        BarrierReached(t_s=0.0, event="save.begin", when="before"),
        LogLine(t_s=0.0, stream="stdout", text="x"),
        hit("whole"),
        hit("rank", rank=1),
        hit("mute", rank=2),
        step(2, attempt=1),
        Marked(t_s=0.0, attempt=1, name="gc.begin"),
        hit("later", attempt=1),
        SaveBegun(t_s=0.0, task=1, step=1),
        hit("task", task=1),
    )
    assert markers_before(events) == {
        "whole": AtMarker(event="step", nth=2),
        "rank": AtMarker(event="step", rank=1),
        "later": AtMarker(event="gc.begin"),
        "task": AtMarker(event="save.begin"),
    }
