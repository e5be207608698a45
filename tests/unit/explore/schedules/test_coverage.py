"""Which cells a history has hit, and which are left."""

from collections.abc import Sequence

from msgspec.structs import replace

from harness.explore.schedules.coverage import Coverage, covered_by, words_in
from harness.history import (
    BarrierReached,
    Booted,
    Event,
    FaultObserved,
    FaultRequested,
    Marked,
    OperationReached,
    SaveBegun,
    SaveEnded,
    SignalSent,
    SigtermSeen,
    Started,
    StepDone,
)
from harness.scenario import LogPatterns, Outside, Workload
from harness.scenario.cells import Cell
from harness.scenario.faults import Kill

JOB = Workload(name="job", command=("job",), steps=20, save_every=5)
BORN = (Booted(t_s=0.1), Started(t_s=0.2, restored_step=0), StepDone(t_s=0.3, step=1))


def hit(fault: str = "kill", *, rank: int = -1, attempt: int = 0, name: str = "1-kill") -> list[Event]:
    requested = FaultRequested(t_s=1.0, injection=name, fault=fault, rank=rank, attempt=attempt)
    return [requested, FaultObserved(t_s=1.1, injection=name, attempt=attempt, evidence="gone")]


def covered_by_job(events: Sequence[Event]) -> frozenset[Cell]:
    return covered_by(events, JOB)


def test_a_fault_that_landed_covers_the_cell_it_landed_in():
    assert covered_by_job([*BORN, *hit()]) == {Cell("step", "process", "all", "first")}
    assert covered_by_job([*BORN, *hit(rank=1)]) == {Cell("step", "process", "other-rank", "first")}
    assert covered_by_job(hit(attempt=1)) == {Cell("init", "process", "all", "second")}


def test_one_that_was_not_seen_to_land_covers_nothing():
    requested, _ = hit()
    assert covered_by_job([*BORN, requested]) == frozenset()
    assert covered_by_job([*BORN, requested, *hit(name="2-kill")[1:]]) == frozenset()
    assert covered_by_job([*BORN, requested, replace(hit(attempt=1)[1], attempt=1)]) == frozenset()


def test_one_that_ends_nothing_covers_nothing():
    assert covered_by_job([*BORN, *hit("pause")]) == frozenset()


def test_the_phase_is_told_by_the_first_rank_and_for_each_attempt_for_itself():
    other = [replace(event, rank=1) for event in (SaveBegun(t_s=0.4, step=5), Marked(t_s=0.5, name="gc.begin"))]
    assert covered_by_job([*BORN, *other, *hit()]) == {Cell("step", "process", "all", "first")}
    assert covered_by_job([*BORN, SaveBegun(t_s=0.4, step=5), *hit(attempt=1)]) == {Cell("init", "process", "all", "second")}


def test_a_job_that_waits_before_a_word_has_not_said_it():
    assert covered_by_job([*BORN, BarrierReached(t_s=0.4, event="save.begin", when="before"), *hit()]) == {
        Cell("step", "process", "all", "first")
    }


def test_an_operation_tells_the_phase_until_the_next_word():
    rename = OperationReached(t_s=0.5, operation="rename", path="a", nth=1)
    saving = [*BORN, SaveBegun(t_s=0.4, step=5), rename]

    assert covered_by_job([*saving, *hit()]) == {Cell("commit", "process", "all", "first")}
    assert covered_by_job([*saving, StepDone(t_s=0.6, step=6), *hit()]) == {Cell("step", "process", "all", "first")}
    told = [*BORN, SigtermSeen(t_s=0.4), rename]
    assert covered_by_job([*told, *hit("end-grace")]) == {Cell("emergency-save", "process", "all", "first")}


def test_a_notice_is_no_death_and_the_end_after_it_counts_where_it_came():
    told = [*BORN, *hit("terminate"), SigtermSeen(t_s=1.2)]
    in_step = Cell("step", "notice", "all", "first")

    assert covered_by_job(told) == {in_step}
    assert covered_by_job([*told, *hit("end-grace", name="2-end-grace")]) == {in_step, Cell("handler", "process", "all", "first")}


def test_a_job_that_is_only_moved_was_not_asked_to_go():
    requested, observed = hit("maintenance")
    stopped = SignalSent(t_s=1.0, signal="SIGTSTP", cause="fault", pids=(7,))
    assert covered_by_job([*BORN, requested, observed]) == {Cell("step", "notice", "all", "first")}
    assert covered_by_job([*BORN, requested, stopped, observed]) == frozenset()


def test_a_first_attempt_that_makes_its_lock_restores_nothing():
    lock = OperationReached(t_s=0.05, operation="create", path="lock", nth=1)
    assert covered_by_job([lock, *hit()]) == {Cell("init", "process", "all", "first")}
    assert covered_by_job([replace(lock, attempt=1), *hit(attempt=1)]) == {Cell("restore", "process", "all", "second")}


def test_a_silent_job_is_hit_in_the_save_that_it_makes_and_nowhere_where_nobody_knows():
    silent = replace(JOB, speaks_protocol=False, outside=Outside(logs=LogPatterns(saved=r"saved (?P<step>\d+)")))
    rename = OperationReached(t_s=0.5, operation="rename", path="a", nth=1)

    assert covered_by([rename, *hit()], silent) == {Cell("save", "process", "all", "first")}
    assert covered_by(hit(), silent) == frozenset()
    assert covered_by([SaveEnded(t_s=0.5, step=5), *hit()], silent) == {Cell("step", "process", "all", "first")}


def test_what_is_covered_is_reachable_and_what_is_left_is_told_in_the_order_of_a_life():
    coverage = Coverage()
    events = [*BORN, Marked(t_s=0.4, name="gc.begin"), *hit()]
    coverage.add(JOB, (Kill(),), events)

    assert words_in(events) == {"gc.begin"}
    assert coverage.covered == {Cell("garbage-collection", "process", "all", "first")} <= coverage.reachable
    assert [cell.phase for cell in coverage.left[:3]] == ["init", "step", "save"]
    assert [cell.attempt for cell in coverage.left] == sorted(
        (cell.attempt for cell in coverage.left), key=["first", "second", "later"].index
    )
    assert str(coverage).startswith("1 of 17 cells hit; left: init x process x all x first attempt; ")
    assert str(Coverage()) == "0 of 0 cells hit"
