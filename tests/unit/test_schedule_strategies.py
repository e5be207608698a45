"""Drawn schedules are valid, and every fault of them acts on whatever right job: nothing that is drawn proves nothing."""

from collections import Counter

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.database import InMemoryExampleDatabase
from msgspec.structs import replace

from harness.explore.aims.cells import reachable
from harness.scenario import Fault, Injection, LogPatterns, Outside, Platform, Scenario, Schedule, Victim, Workload, decode, encode
from harness.scenario.cells import Cell
from harness.scenario.expectations import Completes
from harness.scenario.faults import CancelExecution, EndGrace, ExpireTimeout, Kill, Maintenance, OverlapAttempts, Pause, Terminate
from harness.scenario.rules import RefusedValueError
from harness.scenario.triggers import AfterSeconds, AtMarker, AtOperation, AtStep
from harness.strategies import FAULTS, Known, kill_schedules, schedules
from tests.unit.right_job import NOTICES, RightJob

JOB = Workload(name="job", command=("job",), steps=23, save_every=5)
PAIR = Workload(name="pair", command=("pair",), steps=23, save_every=5, ranks=2)
SILENT = Workload(
    name="silent",
    command=("silent",),
    steps=100,
    save_every=10,
    speaks_protocol=False,
    outside=Outside(logs=LogPatterns(step=r"step (?P<step>\d+)", saved=r"saved (?P<step>\d+)", resumed=r"resumed (?P<step>\d+)")),
)
MUTE = Workload(name="mute", command=("mute",), speaks_protocol=False)
EVERY: tuple[Fault, ...] = (*FAULTS, Maintenance(), ExpireTimeout(), OverlapAttempts(zombie_s=0.1))
OPERATIONS = (
    AtOperation(operation="mkdir", path="step_*"),
    AtOperation(operation="rename", path="step_*", after="save.begin", after_nth=2),
    AtOperation(operation="sync", path="step_*/data", after="save.end", after_nth=4, when="before"),
)
FIRST = Injection(fault=Kill(), at=AtMarker(event="boot"))


def scenario_of(workload: Workload, platform: Platform, schedule: Schedule) -> Scenario:
    return Scenario(
        name="a-job-is-killed", why="x", workload=workload, platform=platform, injections=schedule.injections, expects=(Completes(),)
    )


# ---- valid -----------------------------------------------------------------------------------------------------------


@st.composite
def jobs(draw: st.DrawFn) -> Scenario:
    """Any job on any platform that grants a retry."""
    speaks = draw(st.booleans())
    known = st.sampled_from(["", r"(?P<step>\d+)"])
    logs = LogPatterns(step=draw(known), saved=draw(known), resumed=draw(known), sigterm=draw(st.sampled_from(["", "TERM"])))
    workload = Workload(
        name="job",
        command=("job",),
        steps=draw(st.integers(0, 30)),
        save_every=draw(st.integers(0, 12)),
        speaks_protocol=speaks,
        ranks=draw(st.integers(1, 3)),
        outside=Outside() if speaks else Outside(logs=logs),
    )
    platform = Platform(tasks=draw(st.integers(1, 3)), max_retries=draw(st.integers(1, 4)))
    return scenario_of(workload, platform, Schedule())


@given(st.data(), jobs(), st.integers(1, 5))
def test_what_is_drawn_is_a_scenario_of_the_job(data: st.DataObject, job: Scenario, max_faults: int):
    schedule = data.draw(schedules(job, faults=EVERY, max_faults=max_faults, known=Known(seconds_max=0.5)))

    assert 1 <= len(schedule.injections) <= max_faults
    assert scenario_of(job.workload, job.platform, schedule).schedule == schedule
    assert decode(encode(schedule), Schedule, document="x") == schedule
    assert {attempt for one in schedule.injections for attempt in one.attempts} <= {0, 1, 2, 3}


def test_nothing_that_is_drawn_is_thrown_away():
    drawn: list[Schedule] = []

    @settings(max_examples=200, database=None, phases=[Phase.generate])
    @given(schedules(PAIR, faults=EVERY, max_faults=4, known=Known(operations=OPERATIONS)))
    def count(schedule: Schedule) -> None:
        drawn.append(schedule)

    count()
    assert len(drawn) == 200


# ---- every fault acts ------------------------------------------------------------------------------------------------


@settings(max_examples=400)
@given(st.data(), st.sampled_from([EVERY, FAULTS, (Kill(),), (Terminate(), EndGrace()), (Pause(),)]), st.integers(1, 5))
def test_every_fault_acts_on_any_right_job(data: st.DataObject, faults: tuple[Fault, ...], max_faults: int):
    schedule = data.draw(schedules(JOB, faults=faults, max_faults=max_faults, known=Known(seconds_max=0.5)))

    job = RightJob(JOB, schedule, data).run()

    assert job.acted == set(range(len(schedule.injections)))
    ended = {one.attempts for one in schedule.injections if not isinstance(one.fault, Pause)}
    assert job.attempts == len(ended) + 1, "each death is followed by an attempt"


@given(st.data())
def test_operations_are_hit_in_the_first_attempt_alone(data: st.DataObject):
    schedule = data.draw(schedules(JOB, faults=EVERY, max_faults=4, known=Known(operations=OPERATIONS[1:])))

    assert RightJob(JOB, schedule, data).run().acted == set(range(len(schedule.injections)))
    assert all(one.attempts == (0,) for one in schedule.injections if isinstance(one.at, AtOperation))


def test_after_an_operation_at_a_word_that_nobody_knows_the_next_attempt_may_begin_anywhere():
    """So no later attempt is hit at a step, which it may have behind it."""
    known = Known(operations=(AtOperation(operation="write", path="a", after="flush.begin", after_nth=9),))

    @settings(max_examples=300, database=None, derandomize=True, phases=[Phase.generate])
    @given(kill_schedules(JOB, max_faults=3, known=known))
    def look(schedule: Schedule) -> None:
        if isinstance(schedule.injections[0].at, AtOperation):
            assert not [one for one in schedule.injections[1:] if isinstance(one.at, AtStep)]

    look()


LAST_SAVE = (
    AtOperation(operation="create", path="step_*.tmp-*/data", after="sigterm"),
    AtOperation(operation="rename", path="step_*.tmp-*", after="sigterm", when="before"),
)


@settings(max_examples=200)
@given(st.data())
def test_a_grace_that_ends_in_the_last_save_ends_there_for_sure(data: st.DataObject):
    schedule = data.draw(schedules(PAIR, faults=(Terminate(), EndGrace()), max_faults=4, known=Known(last_save=LAST_SAVE)))

    assert RightJob(PAIR, schedule, data).run().acted == set(range(len(schedule.injections)))
    for notice, end in zip(schedule.injections, schedule.injections[1:], strict=False):
        if isinstance(end.at, AtOperation):
            assert isinstance(notice.at, AtStep)
            assert notice.at.step % PAIR.save_every, "at a step that is saved already there is no last save"
            assert (end.attempts, end.fault) == ((0,), EndGrace())


def test_each_operation_of_the_last_save_is_found():
    drawn = schedules(JOB, faults=(Terminate(), EndGrace()), known=Known(last_save=LAST_SAVE))
    for at in LAST_SAVE:
        hit = Injection(fault=EndGrace(), at=at)
        assert find(drawn, lambda schedule, hit=hit: hit in schedule.injections, settings=settings(max_examples=20_000, database=None))


@settings(max_examples=200)
@given(st.data())
def test_markers_of_the_job_s_own_come_in_each_save(data: st.DataObject):
    known = Known(markers=("save.write", "gc.begin"))
    schedule = data.draw(schedules(JOB, faults=EVERY, max_faults=4, known=known))

    assert RightJob(JOB, schedule, data).run().acted == set(range(len(schedule.injections)))


def test_a_job_is_killed_while_it_collects_and_while_it_recovers_from_that():
    def is_it(schedule: Schedule) -> bool:
        events = [(getattr(one.at, "event", ""), one.attempts) for one in schedule.injections]
        return ("gc.begin", (0,)) in events and any(attempts == (1,) for _, attempts in events)

    assert find(kill_schedules(JOB, known=Known(markers=("gc.begin",))), is_it, settings=settings(max_examples=5000, database=None))


@pytest.mark.parametrize(
    ("fields", "advice"),
    [
        ({"seconds_max": -1.0}, "a finite number >= 0"),
        ({"markers": ("Save!",)}, "an event of the protocol"),
        ({"last_save": OPERATIONS}, "operations counted from sigterm"),
    ],
)
def test_what_cannot_be_known_is_refused(fields: dict[str, object], advice: str):
    with pytest.raises(RefusedValueError, match=advice):
        Known(**fields)


@given(st.data())
def test_tasks_die_each_for_itself(data: st.DataObject):
    job = scenario_of(JOB, Platform(tasks=2, max_retries=2), Schedule())
    schedule = data.draw(schedules(job, faults=EVERY, max_faults=5))

    acted = [RightJob(JOB, schedule, data, task=task).run().acted for task in (0, 1)]
    assert acted[0] | acted[1] == set(range(len(schedule.injections)))
    assert not acted[0] & acted[1]
    assert all(one.attempts[0] < 2 for one in schedule.injections if not isinstance(one.fault, Pause))


@given(st.data())
def test_a_rank_is_hit_at_a_word_of_its_own(data: st.DataObject):
    schedule = data.draw(schedules(PAIR, faults=EVERY, max_faults=4))

    for one in schedule.injections:
        if one.victim.rank_number >= 0:
            assert isinstance(one.at, AtMarker | AtStep)
            assert one.at.rank == one.victim.rank
        assert not (isinstance(one.at, AtMarker) and one.at.rank and one.at.event.startswith("save."))
        if isinstance(one.fault, Maintenance | ExpireTimeout | OverlapAttempts):
            assert one.victim == Victim()


@given(st.data())
def test_a_notice_comes_when_the_job_is_up(data: st.DataObject):
    schedule = data.draw(schedules(JOB, faults=EVERY, max_faults=4))

    for one in schedule.injections:
        if isinstance(one.fault, NOTICES):
            assert isinstance(one.at, AtStep) or (
                isinstance(one.at, AtMarker) and one.at.event in ("step", "save.begin", "save.end", "sigterm")
            )


def test_a_log_that_tells_of_sigterm_tells_no_operation_and_no_beginning_of_the_last_save():
    told = replace(SILENT, outside=Outside(logs=replace(SILENT.outside.logs, sigterm="TERM")))

    @settings(max_examples=200, database=None, derandomize=True, phases=[Phase.generate])
    @given(schedules(told, faults=(Terminate(), EndGrace()), max_faults=2))
    def look(schedule: Schedule) -> None:
        assert all(one.at == AtMarker(event="sigterm") for one in schedule.injections if isinstance(one.fault, EndGrace))

    look()


@given(st.data())
def test_of_a_log_only_what_it_tells_is_waited_for(data: st.DataObject):
    schedule = data.draw(schedules(SILENT, max_faults=4))

    assert all(one.at.step <= 70 for one in schedule.injections if isinstance(one.at, AtStep)), "later it may be done before it is hit"
    assert all(one.at.nth <= 7 for one in schedule.injections if isinstance(one.at, AtMarker))
    for one in schedule.injections:
        assert not (isinstance(one.at, AtMarker) and (one.at.when == "before" or one.at.event in ("boot", "save.begin", "sigterm")))
        assert not isinstance(one.fault, EndGrace), "it does not say when it is told to go"
    assert all(isinstance(one.at, AfterSeconds) for one in data.draw(schedules(MUTE, known=Known(seconds_max=2.0))).injections)


@given(st.data(), st.sampled_from([0.0, 0.25]))
def test_seconds_are_few_and_only_where_the_attempt_lasts_for_sure(data: st.DataObject, seconds_max: float):
    schedule = data.draw(kill_schedules(JOB, known=Known(seconds_max=seconds_max)))

    in_seconds = [one for one in schedule.injections if isinstance(one.at, AfterSeconds)]
    assert all(one.at.seconds <= seconds_max for one in in_seconds)
    assert len(in_seconds) <= (1 if seconds_max else 0), "after one nobody knows how far the job has come"


# ---- cells ----------------------------------------------------------------------------------------------------------

SAYS_MORE = Known(markers=("save.commit", "gc.begin"), last_save=LAST_SAVE)


def test_each_cell_that_can_be_hit_is_hit_by_what_is_drawn_for_it():
    """Whatever a session tells to be left is drawn some day."""
    cells = sorted(reachable(PAIR, EVERY, words=SAYS_MORE.markers, faults_max=4))
    assert len(cells) > 60

    @settings(max_examples=150, database=None, derandomize=True, phases=[Phase.generate])
    @given(st.sampled_from(cells), st.data())
    def hits(cell: Cell, data: st.DataObject) -> None:
        schedule = data.draw(schedules(PAIR, faults=EVERY, max_faults=4, known=SAYS_MORE, cells=[cell]))
        assert RightJob(PAIR, schedule, data).run().acted == set(range(len(schedule.injections)))
        assert scenario_of(PAIR, Platform(), schedule).schedule == schedule

    hits()


def test_most_of_what_is_drawn_hits_a_cell_that_is_left():
    drawn: list[Schedule] = []
    left = [Cell("garbage-collection", "process", "all", "second")]

    @settings(max_examples=60, database=None, derandomize=True, phases=[Phase.generate])
    @given(schedules(JOB, faults=(Kill(),), known=SAYS_MORE, cells=left))
    def look(schedule: Schedule) -> None:
        drawn.append(schedule)

    look()
    hit = [any(one.at.event == "gc.begin" and one.attempts == (1,) for one in schedule.injections[:2]) for schedule in drawn]
    assert len(drawn) / 2 < sum(hit) < len(drawn)


@pytest.mark.parametrize(
    "left", [[], [Cell("step", "process", "all", "second")], None], ids=["nothing", "something else", "no cells at all"]
)
def test_a_failure_that_hypothesis_keeps_is_the_same_schedule_when_its_cell_is_hit(left: list[Cell] | None):
    """The run that fails hits its cell, so what is left is another list in the next session."""
    database = InMemoryExampleDatabase()
    every = sorted(reachable(JOB, FAULTS))

    def fails(cells: list[Cell] | None, phases: list[Phase]) -> list[Schedule]:
        drawn: list[Schedule] = []

        @settings(max_examples=60, database=database, phases=phases, derandomize=False, deadline=None)
        @given(schedules(JOB, cells=cells))
        def survives(schedule: Schedule) -> None:
            drawn.append(schedule)
            assert not [one for one in schedule.injections if isinstance(one.at, AtMarker) and one.at.event == "save.begin"]

        with pytest.raises(AssertionError):
            survives()
        return drawn

    *_, failed = fails(every if left is not None else None, [Phase.generate])
    assert fails(left, [Phase.reuse])[0] == failed


def test_cells_of_which_none_can_be_hit_are_refused():
    with pytest.raises(RefusedValueError, match="one that these faults can hit"):
        schedules(JOB, cells=[Cell("save", "pool", "all", "first")])
    with pytest.raises(RefusedValueError, match="without `cells` they hit whatever they do"):
        schedules(JOB, faults=(OverlapAttempts(zombie_s=0.1),), cells=[])
    assert find(schedules(JOB, max_faults=3, cells=[Cell("handler", "process", "all", "later")]), lambda _: True), "four faults would"


# ---- shape -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("job", [JOB, PAIR], ids=lambda job: job.name)
@pytest.mark.parametrize("draws", [kill_schedules, schedules], ids=lambda draws: draws.__name__)
def test_the_simplest_schedule_is_one_kill_at_the_earliest_marker(job: Workload, draws):
    assert find(draws(job), lambda _: True).injections == (FIRST,)


def test_markers_are_drawn_most_and_seconds_least():
    kinds: Counter[type] = Counter()

    @settings(max_examples=600, database=None, derandomize=True, phases=[Phase.generate])
    @given(kill_schedules(JOB, known=Known(operations=OPERATIONS, seconds_max=0.1)))
    def count(schedule: Schedule) -> None:
        kinds[type(schedule.injections[0].at)] += 1

    count()
    order = [kind for kind, _ in kinds.most_common()]
    assert order[0] is AtMarker
    assert set(order) == {AtMarker, AtOperation, AtStep, AfterSeconds}
    assert kinds[AtOperation] > kinds[AtStep]


def test_the_handler_the_restore_the_save_and_a_second_notice_are_all_found():
    wanted = {
        "in the handler": lambda one: isinstance(one.fault, Kill) and one.at == AtMarker(event="sigterm"),
        "a second notice": lambda one: isinstance(one.fault, Terminate) and one.at == AtMarker(event="sigterm"),
        "while restoring": lambda one: isinstance(one.at, AtMarker) and one.at.event == "restore.begin" and one.attempts == (1,),
        "in the last save": lambda one: isinstance(one.fault, EndGrace) and isinstance(one.at, AtMarker) and one.at.event == "save.begin",
        "in a recovery from a recovery": lambda one: one.attempts == (2,),
    }
    for name, is_it in wanted.items():
        found = find(
            schedules(JOB),
            lambda drawn, is_it=is_it: any(map(is_it, drawn.injections)),
            settings=settings(max_examples=20_000, database=None),
        )
        assert found, name


# ---- refused ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        ({"max_faults": 0}, "at least one fault"),
        ({"max_faults": 17}, "at most 16"),
        ({"faults": (CancelExecution(),)}, "some of kill, terminate, end-grace"),
        ({"faults": (EndGrace(),)}, "end-grace follows a terminate"),
        ({"faults": ()}, "one that acts alone"),
        ({"job": SILENT, "known": Known(operations=OPERATIONS)}, "operations counted from the start"),
        ({"faults": (Maintenance(profile="cloudrun-job-cpu-maintenance"),)}, "maintenance that ends an attempt"),
        ({"job": MUTE}, r"say for how long it lasts, Known\(seconds_max="),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments: dict[str, object], advice: str):
    with pytest.raises(RefusedValueError, match=advice):
        schedules(**{"job": JOB} | arguments)


def test_without_a_retry_only_a_standstill_is_recovered_from():
    alone = scenario_of(JOB, Platform(max_retries=0), Schedule())
    with pytest.raises(RefusedValueError, match="a pause: the platform grants no retry"):
        kill_schedules(alone)
    assert find(schedules(alone), lambda _: True).injections[0].fault == Pause(duration_s=0.5)
