"""What can be hit of a job's life, for sure."""

import pytest
from msgspec.structs import replace

from harness.explore.aims.cells import CELLS, cost, reachable, ways_to_hit
from harness.explore.aims.choice import Known, choice_of
from harness.scenario import Fault, LogPatterns, Outside, Platform, Scenario, Workload
from harness.scenario.cells import Cell
from harness.scenario.expectations import Completes
from harness.scenario.faults import EndGrace, ExpireTimeout, Kill, Maintenance, OverlapAttempts, Pause, Terminate
from harness.scenario.triggers import AtOperation

JOB = Workload(name="job", command=("job",), steps=20, save_every=5)
PAIR = replace(JOB, ranks=2)


def phases(job: Workload, *faults: Fault, scope: str = "process", words=(), attempt="first", faults_max=3) -> set[str]:
    found = reachable(job, faults, words=words, faults_max=faults_max)
    return {cell.phase for cell in found if (cell.attempt, cell.scope) == (attempt, scope)}


def test_what_a_job_can_be_killed_in_hangs_on_what_it_says():
    assert phases(JOB, Kill()) == {"init", "step", "save", "finish"}
    assert phases(JOB, Kill(), attempt="later") == {"init", "restore", "step", "save", "finish"}
    assert phases(JOB, Kill(), words=("save.commit", "gc.begin", "collective")) >= {"commit", "garbage-collection"}
    assert phases(replace(JOB, save_every=0), Kill(), attempt="second") == {"init", "step", "finish"}
    assert phases(JOB, Pause()) == set()
    silent = replace(JOB, speaks_protocol=False, outside=Outside(logs=LogPatterns(saved=r"saved (?P<step>\d+)", done="done")))
    assert phases(silent, Kill()) == {"step"}, "of a log a done comes too late"


def test_notices_hit_where_the_job_is_up_and_what_ends_it_then_where_it_noticed():
    for fault in (Terminate(), Maintenance(), ExpireTimeout()):
        assert phases(JOB, fault, scope="notice") - {"handler"} == {"step", "save"}
        assert phases(JOB, fault, scope="notice", attempt="later") == {"step", "save"}, "notices alone lead there"
        assert phases(JOB, fault) == set(), "nobody was killed"
    assert phases(JOB, Maintenance(profile="cloudrun-job-cpu-maintenance"), scope="notice") == set()
    assert phases(JOB, OverlapAttempts()) == set()
    assert phases(JOB, Terminate(), EndGrace()) == {"handler", "emergency-save"}
    assert phases(JOB, Terminate(), Kill()) >= {"handler"}
    assert phases(JOB, Terminate(), scope="notice", faults_max=1) == {"step", "save"}
    assert phases(JOB, Kill(), EndGrace()) >= {"init"}
    assert "handler" not in phases(JOB, Kill(), EndGrace())


def test_no_notice_comes_at_the_very_last_step_where_it_ends_nothing():
    step = Cell("step", "notice", "all", "first")
    ways = [injections for injections, _ in ways_to_hit(choice_of(JOB, (Terminate(),)), step, task=0)]
    assert max(one.at.nth for (one,) in ways if one.at.event == "step") == JOB.steps - 1


def test_a_second_notice_in_the_handler_is_a_cell():
    second = Cell("handler", "notice", "all", "first")
    assert second in reachable(JOB, (Terminate(),))
    assert second not in reachable(JOB, (Maintenance(), Kill()))


def test_only_so_many_faults_reach_the_handler_of_a_later_attempt():
    later = Cell("handler", "process", "all", "later")
    assert later not in reachable(JOB, (Kill(), Terminate()), faults_max=3)
    assert later in reachable(JOB, (Kill(), Terminate()), faults_max=4)


def test_a_last_save_is_hit_in_first_attempts_alone_since_nobody_knows_which_save_it_is_later():
    found = reachable(JOB, (Kill(), Terminate(), EndGrace()), faults_max=4)
    assert {cell.attempt for cell in found if cell.phase == "emergency-save"} == {"first"}


def test_a_job_of_few_steps_is_not_expected_in_a_save_that_it_may_not_make():
    assert "save" not in phases(replace(JOB, steps=5), Kill())


def test_ranks_are_victims_where_there_are_several_and_the_fault_can_choose():
    assert {cell.victim for cell in reachable(JOB, (Kill(),))} == {"all"}
    assert {cell.victim for cell in reachable(PAIR, (Kill(),))} == {"all", "rank-0", "other-rank"}
    assert {cell.victim for cell in reachable(PAIR, (Maintenance(),))} == {"all"}


def test_no_attempt_is_hit_that_would_not_be_retried():
    one = Scenario(name="a-job-is-hit", why="x", workload=JOB, platform=Platform(max_retries=1), expects=(Completes(),))
    assert {cell.attempt for cell in reachable(one, (Kill(),))} == {"first"}


@pytest.mark.parametrize("faults", [(Kill(),), (Maintenance(),), (Kill(), Terminate(), EndGrace()), (Terminate(), EndGrace())], ids=str)
def test_what_can_be_hit_is_hit_by_as_many_faults_as_it_costs(faults: tuple[Fault, ...]):
    choice = choice_of(PAIR, faults, Known(operations=(AtOperation(operation="rename", path="a", after="save.begin"),)))
    for cell in CELLS:
        ways = list(ways_to_hit(choice, cell, task=0)) if cost(choice, cell) else []
        assert {len(injections) for injections, _ in ways} == ({cost(choice, cell)} if ways else set())


def test_a_commit_that_no_word_tells_is_hit_at_its_operation():
    known = Known(operations=(AtOperation(operation="rename", path="a", after="save.begin"),))
    commit = Cell("commit", "process", "all", "first")

    (way,) = [injections for injections, _ in ways_to_hit(choice_of(JOB, (Kill(),), known), commit, task=0)]

    assert [one.at for one in way] == list(known.operations)
    assert not cost(choice_of(JOB, (Kill(),)), commit)
