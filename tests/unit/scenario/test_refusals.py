"""A document that will not do is refused in one sentence: where, which value, what would be right."""

from collections.abc import Callable
from datetime import datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.errors import InvalidDocumentError
from harness.scenario import (
    Cluster,
    Injection,
    LogPatterns,
    Outside,
    Phase,
    Platform,
    Scenario,
    Schedule,
    Victim,
    Workload,
    decode,
    encode,
)
from harness.scenario.expectations import (
    Completes,
    Goodput,
    GraceConduct,
    LogOrder,
    MakesProgress,
    NoHang,
    ResumesFromNewestDurable,
    SavesAtCadence,
    WithinRetries,
)
from harness.scenario.faults import (
    AddEmptyStep,
    CancelExecution,
    DrainRayNode,
    EndGrace,
    FailWrites,
    FlipByte,
    Kill,
    KillRayProcess,
    Maintenance,
    OverlapAttempts,
    Pause,
    SlowWrites,
    TearRename,
    Terminate,
    TruncateFile,
)
from harness.scenario.rules import RefusedValueError
from harness.scenario.triggers import AfterSeconds, AtMarker, AtOperation, AtStep, OnEffect, OnLog

JOB = Workload(name="job", command=("job",))
SILENT = Workload(name="job", command=("job",), speaks_protocol=False)
KILL = Injection(fault=Kill(), at=AtStep(step=1))


def scenario(**fields: object) -> Scenario:
    return Scenario(**({"name": "a-b", "why": "x", "workload": JOB, "expects": (Completes(),)} | fields))


def injection(**fields: object) -> Injection:
    return Injection(**({"fault": Kill(), "at": AtStep(step=1)} | fields))


REFUSED: list[tuple[Callable[[], object], str, object]] = [
    (lambda: Pause(duration_s=0), "duration_s", 0),
    (lambda: Pause(duration_s=float("inf")), "duration_s", float("inf")),
    (lambda: OverlapAttempts(zombie_s=-1.0), "zombie_s", -1.0),
    (lambda: DrainRayNode(deadline_s=0.0), "deadline_s", 0.0),
    (lambda: FlipByte(at_fraction=1.0), "at_fraction", 1.0),
    (lambda: TruncateFile(keep_fraction=-0.1), "keep_fraction", -0.1),
    (lambda: TearRename(moved_fraction=1.5), "moved_fraction", 1.5),
    (lambda: AddEmptyStep(steps_ahead=0), "steps_ahead", 0),
    (lambda: FailWrites(operations=-1), "operations", -1),
    (lambda: FailWrites(duration_s=0), "duration_s", 0),
    (lambda: SlowWrites(delay_s=0), "delay_s", 0),
    (lambda: Phase(state="failed", reason="OutOfTea"), "reason", "OutOfTea"),
    (lambda: Cluster(queue="Über queue!"), "queue", "Über queue!"),
    (lambda: Cluster(queue="-queue"), "queue", "-queue"),
    (lambda: Cluster(priority="p" * 64), "priority", "p" * 64),
    (lambda: Cluster(tolerations=("google.com/tpu", "a b")), "tolerations", "a b"),
    (lambda: AtStep(step=0), "step", 0),
    (lambda: AtStep(step=1, rank=-1), "rank", -1),
    (lambda: AtMarker(event="Save Begin"), "event", "Save Begin"),
    (lambda: AtMarker(event="step", nth=0), "nth", 0),
    (lambda: AtMarker(event="step", rank=-2), "rank", -2),
    (lambda: AtOperation(operation="write", path="/data"), "path", "/data"),
    (lambda: AtOperation(operation="write", path="step_*/../x"), "path", "step_*/../x"),
    (lambda: AtOperation(operation="write", path=""), "path", ""),
    (lambda: AtOperation(operation="write", path="x", nth=0), "nth", 0),
    (lambda: AtOperation(operation="write", path="x", after="Save Begin"), "after", "Save Begin"),
    (lambda: AtOperation(operation="write", path="x", after="save.begin", after_nth=0), "after_nth", 0),
    (lambda: AtOperation(operation="write", path="x", after_nth=2), "after_nth", 2),
    (lambda: AtOperation(operation="write", path="x", rank=-1), "rank", -1),
    (lambda: OnLog(pattern="("), "pattern", "("),
    (lambda: OnLog(pattern="x", nth=0), "nth", 0),
    (lambda: AfterSeconds(seconds=-0.5), "seconds", -0.5),
    (lambda: OnEffect(of=""), "of", ""),
    (lambda: ResumesFromNewestDurable(lost_steps_max=-1), "lost_steps_max", -1),
    (lambda: ResumesFromNewestDurable(lost_steps_max=0, lost_steps_after_sigterm_max=-1), "lost_steps_after_sigterm_max", -1),
    (lambda: WithinRetries(attempts_max=0), "attempts_max", 0),
    (lambda: WithinRetries(attempts_max=1, own_failures_max=-1), "own_failures_max", -1),
    (lambda: GraceConduct(margin_s_min=-1.0), "margin_s_min", -1.0),
    (lambda: MakesProgress(cycles_max=0), "cycles_max", 0),
    (lambda: NoHang(quiet_s=0.0), "quiet_s", 0.0),
    (lambda: LogOrder(patterns=()), "patterns", ()),
    (lambda: LogOrder(patterns=("ok", "[")), "patterns", "["),
    (lambda: Goodput(ratio_min=1.1), "ratio_min", 1.1),
    (lambda: Goodput(recovery_s_max=0.0), "recovery_s_max", 0.0),
    (lambda: SavesAtCadence(every=0), "every", 0),
    (lambda: SavesAtCadence(every=1, missed_max=-1), "missed_max", -1),
    (lambda: Platform(tasks=0), "tasks", 0),
    (lambda: Platform(tasks=2, parallelism=3), "parallelism", 3),
    (lambda: Platform(max_retries=11), "max_retries", 11),
    (lambda: Platform(timeout_s=0.0), "timeout_s", 0.0),
    (lambda: Platform(grace_s=-1.0), "grace_s", -1.0),
    (lambda: LogPatterns(step="step"), "step", "step"),
    (lambda: LogPatterns(done="*"), "done", "*"),
    (lambda: Outside(inspect_timeout_s=0.0), "inspect_timeout_s", 0.0),
    (lambda: Outside(recovery_timeout_s=-1.0), "recovery_timeout_s", -1.0),
    (lambda: Outside(result="/tmp/x"), "result", "/tmp/x"),
    (lambda: Workload(name="My Job", command=("x",)), "name", "My Job"),
    (lambda: Workload(name="job", command=()), "command", ()),
    (lambda: Workload(name="job", command=("x", "")), "command", ("x", "")),
    (lambda: Workload(name="job", command=("x",), steps=-1), "steps", -1),
    (lambda: Workload(name="job", command=("x",), save_every=-1), "save_every", -1),
    (lambda: Workload(name="job", command=("x",), ranks=0), "ranks", 0),
    (lambda: Workload(name="job", command=("x",), checkpoints="../x"), "checkpoints", "../x"),
    (lambda: Workload(name="job", command=("x",), environment={"1A": ""}), "environment", "1A"),
    (lambda: Workload(name="job", command=("x",), environment={"HARNESS_X": ""}), "environment", "HARNESS_X"),
    (lambda: Victim(task=-1), "task", -1),
    (lambda: Victim(rank=-1), "rank", -1),
    (lambda: injection(attempts=()), "attempts", ()),
    (lambda: injection(attempts=(-1,)), "attempts", (-1,)),
    (lambda: injection(attempts=(1, 1)), "attempts", (1, 1)),
    (lambda: injection(at=OnEffect(of="x"), attempts=(0, 1)), "attempts", (0, 1)),
    (lambda: injection(name="../x"), "name", "../x"),
    (lambda: injection(fault=OverlapAttempts(), victim=Victim(rank=0)), "victim.rank", 0),
    (lambda: injection(fault=CancelExecution(), victim=Victim(rank="coordinator")), "victim.rank", "coordinator"),
    (lambda: injection(fault=KillRayProcess()), "victim.rank", "all"),
    (lambda: injection(fault=FlipByte()), "at", "AtStep"),
    (lambda: Schedule(injections=(injection(name="x"), injection(name="x"))), "injections", ["x", "x"]),
    (lambda: scenario(name="Bad Name"), "name", "Bad Name"),
    (lambda: scenario(name="word"), "name", "word"),
    (lambda: scenario(why="  "), "why", "  "),
    (lambda: scenario(expects=()), "expects", ()),
    (lambda: scenario(expects=(NoHang(), NoHang())), "expects", ["NoHang", "NoHang"]),
    (lambda: scenario(deadline_s=0.0), "deadline_s", 0.0),
    (lambda: scenario(injections=(KILL,) * 17), "injections", 17),
    (lambda: scenario(injections=(injection(victim=Victim(task=1)),)), "injections[0].victim.task", 1),
    (lambda: scenario(injections=(injection(victim=Victim(rank=1)),)), "injections[0].victim.rank", 1),
    (lambda: scenario(injections=(injection(attempts=(0, 4)),)), "injections[0].attempts", 4),
    (
        lambda: scenario(workload=SILENT, injections=(KILL, injection(at=AtOperation(operation="rename", path="x", after="save.end")))),
        "injections[1].at.after",
        "save.end",
    ),
]


@pytest.mark.parametrize(("make", "field", "value"), REFUSED, ids=[f"{index}-{field}" for index, (_, field, _) in enumerate(REFUSED)])
def test_a_refusal_names_the_field_and_the_value_and_says_what_would_be_right(make: Callable[[], object], field: str, value: object):
    with pytest.raises(RefusedValueError) as caught:
        make()
    assert (caught.value.field, caught.value.value) == (field, value)
    assert caught.value.advice
    assert str(caught.value) == f"{field} is {value!r}: {caught.value.advice}"


def test_a_silent_job_is_held_at_operations_that_are_counted_from_its_start():
    assert scenario(workload=SILENT, injections=(injection(at=AtOperation(operation="rename", path="x", nth=2)),)).injections


@given(st.permutations(["first", "second", "third"]), st.sampled_from(["first", "second", "third"]))
def test_an_effect_can_only_be_waited_for_after_it_was_declared(order: list[str], waited_for: str):
    made = [injection(name=name) if name != "third" else injection(name=name, at=OnEffect(of=waited_for)) for name in order]
    if order.index(waited_for) < order.index("third"):
        assert Schedule(injections=tuple(made)).injections == tuple(made)
    else:
        with pytest.raises(RefusedValueError, match=r"at\.of is"):
            Schedule(injections=tuple(made))


CPU_MAINTENANCE = Maintenance(profile="cloudrun-job-cpu-maintenance")


def ends(*earlier: Injection, **fields: object) -> Schedule:
    """A grace that is to end after these."""
    return Schedule(injections=(*earlier, injection(fault=EndGrace(), at=AtMarker(event="sigterm"), **fields)))


def test_a_grace_is_ended_only_where_one_has_begun():
    notice = injection(fault=Terminate())
    assert ends(notice)
    assert ends(injection(fault=Terminate(), attempts=(0, 2)), attempts=(2,))
    assert ends(notice, injection(fault=Terminate(), attempts=(1,)), attempts=(0, 1))
    assert ends(injection(fault=Terminate(), victim=Victim(task=2, rank=1)), victim=Victim(task=2, rank=1))
    assert ends(injection(fault=Maintenance()))
    assert ends(injection(fault=CancelExecution()), victim=Victim(task=3))
    assert Schedule(injections=(notice, injection(fault=EndGrace(), at=OnEffect(of="1-terminate"))))


@pytest.mark.parametrize(
    ("earlier", "fields"),
    [
        ((), {}),
        ((KILL,), {}),
        ((injection(fault=CPU_MAINTENANCE),), {}),
        ((injection(fault=Terminate()),), {"attempts": (0, 1)}),
        ((injection(fault=Terminate()),), {"victim": Victim(rank=0)}),
        ((injection(fault=Terminate(), victim=Victim(rank=0)),), {}),
        ((injection(fault=Terminate(), victim=Victim(task=1)),), {}),
    ],
)
def test_a_grace_that_has_not_begun_for_the_victim_is_not_ended(earlier: tuple[Injection, ...], fields: dict[str, object]):
    with pytest.raises(RefusedValueError, match=r"fault\.type is 'end-grace'.*an earlier injection gives notice"):
        ends(*earlier, **fields)


@given(st.lists(st.sampled_from(["", "x", "y", "1-kill", "2-kill"]), min_size=1, max_size=4))
def test_names_of_injections_are_unique_given_or_not(names: list[str]):
    known = [name or f"{index}-kill" for index, name in enumerate(names, start=1)]
    made = tuple(injection(name=name) for name in names)
    if len(set(known)) == len(known):
        assert Schedule(injections=made)
    else:
        with pytest.raises(RefusedValueError, match="names of injections are unique"):
            Schedule(injections=made)


PLAIN = msgspec.json.decode(encode(scenario(injections=(KILL,))))


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("workload.steps", -1, "x.json: workload.steps: it is -1: a number >= 0"),
        ("workload.steps", "two", "x.json: workload.steps: it is 'two': expected `int`, got `str`"),
        ("workload.layout", "orbx", "x.json: workload.layout: Invalid enum value 'orbx'; did you mean orbax?"),
        ("workload.layuot", 3, "x.json: workload: Object contains unknown field `layuot`; did you mean layout?"),
        ("workload.zzz", 3, "x.json: workload: Object contains unknown field `zzz`; remove it or correct its name"),
        ("injections.0.fault.type", "kil", "x.json: injections[0].fault.type: Invalid value 'kil'; did you mean kill?"),
        ("injections.0.at.step", 0, "x.json: injections[0].at.step: it is 0: steps are counted from 1"),
        ("injections.0.victim", {"task": 3}, "x.json: injections[0].victim.task: it is 3: a task of the platform"),
        ("expects.0.type", "complete", "x.json: expects[0].type: Invalid value 'complete'; did you mean completes?"),
        ("name", "Bad", "x.json: name: it is 'Bad': a kebab-case sentence of at most 120 characters"),
        ("deadline_s", "soon", "x.json: deadline_s: it is 'soon': expected `float`, got `str`"),
        ("tags", ["x" * 200, 3], "x.json: tags[1]: it is 3: expected `str`, got `int`"),
    ],
)
def test_a_field_of_a_document_is_named_by_its_whole_path(path: str, value: object, message: str):
    plain = msgspec.json.decode(msgspec.json.encode(PLAIN))
    *parents, last = path.split(".")
    place = plain
    for name in parents:
        place = place[int(name)] if name.isdecimal() else place[name]
    place[last] = value
    with pytest.raises(InvalidDocumentError) as caught:
        decode(msgspec.json.encode(plain), Scenario, document="x.json")
    assert str(caught.value) == message
    assert caught.value.document == "x.json"


def test_an_unknown_kind_is_answered_with_those_there_are():
    data = encode(scenario()).replace(b'"completes"', b'"zzz"')
    with pytest.raises(InvalidDocumentError, match=r"known: admitted-to, bit-exact-resume, .*, workload-ends"):
        decode(data, Scenario, document="x")


def test_a_long_value_is_cut():
    data = encode(scenario()).replace(b'"why": "x"', b'"why": [' + b"1," * 500 + b"1]")
    with pytest.raises(InvalidDocumentError) as caught:
        decode(data, Scenario, document="x")
    assert "it is [1, 1, " in str(caught.value)
    assert "…: expected `str`" in str(caught.value)
    assert len(str(caught.value)) < 150


@given(st.binary(max_size=60))
def test_whatever_is_no_document_is_refused_and_nothing_else_happens(data: bytes):
    with pytest.raises(InvalidDocumentError):
        decode(data, Scenario, document="x")


@pytest.mark.parametrize("data", ["", "{", "[" * 100_000, "\udcff", b"\xff\xfe", "null", "3", '{"name":' + "[" * 100_000])
def test_text_that_is_no_document_is_refused(data: str | bytes):
    with pytest.raises(InvalidDocumentError):
        decode(data, Scenario, document="x")


def test_where_no_words_are_known_none_are_offered():
    class Dated(msgspec.Struct):
        made_at: datetime

    with pytest.raises(InvalidDocumentError) as refused:
        decode(b'{"made_at": "yesterday"}', Dated, document="plan.json")

    assert str(refused.value) == "plan.json: made_at: Invalid RFC3339 encoded datetime"
