"""Admissions are those that the queue promises: their flavors, their order, their time."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.checkers.admission import check
from harness.history import ObservationLost
from harness.scenario import Injection, Platform
from harness.scenario.cluster_faults import PreemptWorkload
from harness.scenario.expectations import AdmittedTo
from harness.scenario.triggers import AtStep
from harness.verdict import Finding, Outcome
from tests.unit.checkers.builders import Run, resumed
from tests.unit.checkers.cluster_builders import NO_QUOTA, STOCKOUT, ClusterRun, condition, fallen_back


def judge(run: Run, *flavors: tuple[str, ...], within_s: float = 0.0) -> Finding:
    return check(AdmittedTo(flavors=flavors or (("on-demand", "dws"),), within_s=within_s), run.evidence())


def test_the_promised_flavors_in_their_order_are_right():
    finding = judge(fallen_back())
    assert finding.outcome is Outcome.VALID
    assert finding.measures["admissions"] == 2.0
    assert "evicted: Preempted: by a job of higher priority" in finding.evidence[0]


@pytest.mark.parametrize("flavors", [("dws", "on-demand"), ("on-demand",), ("on-demand", "on-demand"), ("dws",), ()])
def test_another_order_another_flavor_and_one_too_many_are_broken(flavors: tuple[str, ...]):
    finding = judge(fallen_back(), flavors)
    assert finding.outcome is Outcome.INVALID
    assert "was admitted to on-demand, then dws, and" in finding.reason


def test_one_too_few_is_broken_and_says_what_the_queue_said():
    run = ClusterRun().submit().queued().reserve("dws", said=STOCKOUT).watch().close("deadline")
    finding = judge(run, ("dws",))
    assert finding.outcome is Outcome.INVALID
    assert STOCKOUT in finding.reason
    assert judge(run, ()).outcome is Outcome.VALID  # to wait for ever may be the right outcome


def test_that_no_admission_comes_is_proved_by_watching_for_as_long_as_is_promised():
    run = ClusterRun().submit().queued().reserve("dws").provisioning(condition("Accepted"))
    promise = AdmittedTo(flavors=((),), watched_s=20.0)
    early = check(promise, run.fork().watch(19.0).close("deadline").evidence())
    assert early.outcome is Outcome.UNKNOWN
    assert "task 0 was watched for 19.10 s, since when it was pending, and something might have come within the 20 s" in early.reason
    assert check(promise, run.fork().watch(20.0).close("deadline").evidence()).outcome is Outcome.VALID
    answered = run.fork().watch(20.0).provisioning(condition("Accepted"), condition("Failed"))
    assert check(promise, answered.close("deadline").evidence()).outcome is Outcome.UNKNOWN  # the answer is what Kueue acts on


def test_one_that_never_had_the_time_to_be_admitted_is_not_accused():
    run = ClusterRun().submit().queued()
    assert judge(run.fork().close("deadline"), ("on-demand",)).outcome is Outcome.UNKNOWN
    assert judge(run.fork().watch(5.0).queued("other words").watch(5.0).close("deadline"), ("on-demand",)).outcome is Outcome.INVALID


def test_what_has_finished_needs_no_watching():
    assert judge(ClusterRun().submit().admit("on-demand").end_workload().close("deadline"), ("on-demand",)).outcome is Outcome.VALID
    assert judge(ClusterRun().submit().admit("on-demand").close("deadline"), ("on-demand",)).outcome is Outcome.UNKNOWN


def test_the_head_s_flavor_is_not_that_of_the_chips():
    run = ClusterRun().submit().queued().admit("on-demand", head="default-cpu").end_workload().close()
    assert judge(run, ("on-demand",)).outcome is Outcome.VALID
    assert judge(run, ("default-cpu",)).outcome is Outcome.INVALID


def test_a_run_that_was_broken_off_may_have_come_to_more():
    run = ClusterRun().submit().queued().admit("on-demand")
    assert judge(run.fork().close("interrupted")).outcome is Outcome.UNKNOWN
    assert judge(run.fork().close("interrupted"), ("on-demand",)).outcome is Outcome.UNKNOWN
    assert judge(run.fork().watch().close("deadline")).outcome is Outcome.INVALID
    assert judge(run.fork().close("interrupted"), ("dws",)).outcome is Outcome.INVALID


def test_an_admission_in_time_counts_from_the_eviction_or_the_submission():
    run = ClusterRun().submit().queued()
    run.t_s += 9
    run.admit("on-demand").close()
    assert judge(run, ("on-demand",), within_s=10).outcome is Outcome.VALID
    late = judge(run, ("on-demand",), within_s=5)
    assert late.outcome is Outcome.INVALID
    assert "9.20 s after its submission, 5 s are promised" in late.reason
    run = ClusterRun().submit().admit("on-demand").evict()
    run.t_s += 9
    finding = judge(run.admit("on-demand").close(), ("on-demand", "on-demand"), within_s=5)
    assert "after the end of the admission before" in finding.reason


def test_words_of_an_admitted_workload_are_no_further_admissions():
    run = ClusterRun().submit().admit("on-demand").kueue(condition("PodsReady")).kueue(condition("PodsReady", "False")).close()
    assert judge(run, ("on-demand",)).outcome is Outcome.VALID


def test_an_eviction_that_was_not_seen_is_told_by_another_flavor():
    finding = judge(ClusterRun().submit().admit("on-demand").admit("dws").close())
    assert finding.outcome is Outcome.VALID
    assert "the eviction before it was not seen" in finding.evidence[0]


def test_a_slice_of_an_elastic_job_is_no_further_admission():
    run = ClusterRun().submit().admit("on-demand")
    known = run.conditions[0]
    run.conditions[0] = {}
    run.kueue(condition("QuotaReserved", "False"), uid="u-2", name="slice-2", flavors={}).kueue(
        condition("QuotaReserved"), condition("Admitted"), uid="u-2", name="slice-2"
    )
    run.conditions[0] = known
    run.kueue(condition("Finished", "True", "WorkloadSliceReplaced")).close()
    assert judge(run, ("on-demand",)).outcome is Outcome.VALID


def test_each_task_has_flavors_of_its_own():
    run = ClusterRun(platform=Platform(tasks=2)).submit().admit("on-demand").submit(task=1).queued().reserve().admit("dws").close()
    assert judge(run, ("on-demand",), ("dws",)).outcome is Outcome.VALID
    assert judge(run, ("on-demand",), ("on-demand",)).outcome is Outcome.INVALID
    assert judge(run, ("on-demand",)).outcome is Outcome.VALID


def test_a_task_that_nobody_saw_in_the_queue_is_unknown():
    finding = judge(resumed())
    assert finding.outcome is Outcome.UNKNOWN
    assert "target kind" in finding.reason
    assert judge(ClusterRun().submit().admit("on-demand").close(), ("on-demand",), ("dws",)).outcome is Outcome.UNKNOWN


def test_what_was_not_seen_of_the_cluster_may_have_been_an_admission():
    run = ClusterRun().submit().admit("on-demand").add(ObservationLost, what="cluster", count=1, detail="the watch was interrupted").close()
    assert judge(run, ("on-demand",)).outcome is Outcome.UNKNOWN


@given(st.lists(st.sampled_from(["on-demand", "dws"]), max_size=5), st.lists(st.sampled_from(["on-demand", "dws"]), max_size=5))
def test_only_the_very_same_admissions_are_right(seen: list[str], promised: list[str]):
    run = ClusterRun().submit().queued()
    for flavor in seen:
        run.admit(flavor).evict().queued(NO_QUOTA)
    finding = judge(run.close(), tuple(promised))
    assert finding.outcome is (Outcome.VALID if seen == promised else Outcome.INVALID)


def test_what_a_fault_brings_is_not_owed_where_it_did_not_land():
    preempt = Injection(fault=PreemptWorkload(), at=AtStep(step=7), name="preempt")
    run = ClusterRun().submit().admit("on-demand").attempt(0).begin().steps(1, 7).request("preempt", "preempt-workload")
    promise = AdmittedTo(flavors=(("on-demand", "dws"),))
    finding = check(promise, run.fork().close().evidence(injections=(preempt,)))
    assert finding.outcome is Outcome.UNKNOWN
    assert "not every fault has landed" in finding.reason
    assert check(promise, run.observe("preempt").close().evidence(injections=(preempt,))).outcome is Outcome.INVALID


def test_what_healing_brings_is_no_admission():
    waiting = ClusterRun().submit().queued(NO_QUOTA).watch()
    healed = waiting.fork().admit("on-demand")
    assert judge(healed.fork().close("deadline", ended_s=waiting.t_s), ()).outcome is Outcome.VALID
    assert judge(healed.fork().close("deadline", ended_s=waiting.t_s), ("on-demand",)).outcome is Outcome.INVALID
    assert judge(healed.close("deadline", ended_s=healed.t_s), ()).outcome is Outcome.INVALID


def test_an_admission_that_our_cleaning_ends_had_not_ended():
    run = ClusterRun().submit().admit("on-demand").watch()
    finding = judge(run.fork().evict().close("deadline", ended_s=run.t_s), ("on-demand",))
    assert finding.outcome is Outcome.VALID
    assert "until" not in finding.evidence[0]
