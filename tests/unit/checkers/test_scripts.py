"""What the emulated platform was scripted to say must have been said."""

import pytest

from harness.checkers.landed import check
from harness.checkers.scripts import ON_DEMAND_POOL, ON_DEMAND_SELECTOR, POOL_ERRORS, WAITING_REASONS
from harness.history import ConditionState, PoolScaled
from harness.kind.topology import POOL_LABEL
from harness.scenario import Cluster, Phase, PoolAnswer, ProvisioningScript, Scenario
from harness.targets.kubernetes import autoscaler, dws_reasons, pools
from harness.verdict import Finding, Outcome
from scenarios import CATALOGUE
from tests.unit.checkers.builders import Run, uninterrupted
from tests.unit.checkers.cluster_builders import ClusterRun, condition

ACCEPTED, PROVISIONED = condition("Accepted"), condition("Provisioned")
EXPIRED, REVOKED = condition("BookingExpired"), condition("CapacityRevoked")
GRANTED = ProvisioningScript()


def judge(run: Run, cluster: Cluster) -> Finding:
    return check(run.evidence(cluster=cluster))


def script(*phases: Phase) -> ProvisioningScript:
    return ProvisioningScript(phases=phases)


def asked(*conditions: tuple[ConditionState, ...]) -> ClusterRun:
    """One request, as it was seen after another."""
    run = ClusterRun().submit().reserve()
    for seen in conditions:
        run.provisioning(*seen)
    return run


def waiting(reason: str) -> ConditionState:
    return condition("Provisioned", "False", reason)


def failed(reason: str) -> ConditionState:
    return condition("Failed", "True", reason)


PHASES = {
    "stockout": (Phase(state="stockout"), (ACCEPTED, waiting("ResourcePoolExhausted"))),
    "quota-exceeded": (Phase(state="quota-exceeded"), (ACCEPTED, waiting("QuotaExceeded"))),
    "failed": (Phase(state="failed", reason="NodepoolSizeReached"), (failed("NodepoolSizeReached"),)),
    "never": (Phase(state="never"), (ACCEPTED,)),
}


@pytest.mark.parametrize("state", PHASES)
def test_what_was_scripted_has_landed_when_the_request_says_so(state: str):
    phase, says = PHASES[state]
    finding = judge(asked((), says), Cluster(provisioning=(script(phase),)))
    assert (finding.outcome, finding.measures["faults_landed"]) == (Outcome.VALID, 1.0)
    assert finding.evidence[0].startswith(f"{state}")


@pytest.mark.parametrize("state", PHASES)
def test_a_request_that_is_granted_at_once_has_passed_its_script_over(state: str):
    finding = judge(asked((), (ACCEPTED,), (ACCEPTED, PROVISIONED)), Cluster(provisioning=(script(PHASES[state][0]),)))
    assert finding.outcome is Outcome.UNKNOWN
    assert "of job-0-dws-prov-1 was due from" in finding.reason


@pytest.mark.parametrize(("phase", "says"), [(Phase(state="stockout"), waiting("QuotaExceeded")), (PHASES["failed"][0], failed("Another"))])
def test_another_reason_is_another_fault(phase: Phase, says: ConditionState):
    assert judge(asked((ACCEPTED, says)), Cluster(provisioning=(script(phase),))).outcome is Outcome.UNKNOWN


def test_each_request_has_its_own_script_and_the_last_one_holds_for_all_that_follow():
    first, second = "OutOfResources", "ZoneNotSupported"
    twice = Cluster(provisioning=(script(Phase(state="failed", reason=first)), script(Phase(state="failed", reason=second))))
    run = asked((failed(first),))
    assert judge(run, twice).outcome is Outcome.VALID
    assert judge(run.fork().provisioning(PROVISIONED, number=2), twice).outcome is Outcome.UNKNOWN
    run.provisioning(failed(second), number=2).provisioning(number=3)
    assert judge(run, twice).outcome is Outcome.VALID
    assert judge(run.provisioning(PROVISIONED, number=3), twice).outcome is Outcome.UNKNOWN


def test_a_booking_that_is_scripted_to_expire_must():
    expires = Cluster(provisioning=(script(Phase(state="granted"), Phase(state="booking-expired")), GRANTED))
    assert judge(asked((ACCEPTED, PROVISIONED)), expires).outcome is Outcome.UNKNOWN
    assert judge(asked((ACCEPTED, PROVISIONED), (ACCEPTED, PROVISIONED, EXPIRED)), expires).outcome is Outcome.VALID


def test_a_time_that_was_brought_nearer_must_have_come():
    short = Cluster(booking_s=4.0, max_run_s=10.0)
    run = asked((ACCEPTED, PROVISIONED), (ACCEPTED, PROVISIONED, EXPIRED))
    finding = judge(run, short)
    assert finding.outcome is Outcome.UNKNOWN
    assert "1 of 2 faults landed: the end of a maximum run time of 10 s" in finding.reason
    assert judge(run.provisioning(ACCEPTED, PROVISIONED, EXPIRED, REVOKED), short).outcome is Outcome.VALID


def test_where_nobody_asked_for_capacity_no_refusal_was_told():
    finding = judge(ClusterRun().submit().admit("on-demand"), Cluster(provisioning=(script(Phase(state="stockout")),)))
    assert finding.outcome is Outcome.UNKNOWN
    assert finding.reason.endswith("stockout of a request was never told: nobody asked for that capacity")


@pytest.mark.parametrize("answer", ["stockout", "quota-exceeded"])
def test_a_refusal_of_on_demand_nodes_must_have_been_told(answer):
    cluster = Cluster(on_demand=PoolAnswer(answer=answer))
    run = ClusterRun().submit().admit().pod()
    assert judge(run, cluster).outcome is Outcome.UNKNOWN
    run.add(PoolScaled, pool=ON_DEMAND_POOL, nodes=0, why="no machine", error=POOL_ERRORS[answer])
    assert judge(run, cluster).outcome is Outcome.VALID


def test_a_job_that_finds_a_node_in_an_empty_pool_has_not_waited_for_one():
    cluster = Cluster(on_demand_nodes=0)
    run = ClusterRun().submit().admit().pod()
    assert judge(run, cluster).outcome is Outcome.UNKNOWN
    assert judge(run.fork().add(PoolScaled, pool=ON_DEMAND_POOL, nodes=0, why="", error="GCE_STOCKOUT"), cluster).outcome is Outcome.UNKNOWN
    assert judge(run.add(PoolScaled, pool=ON_DEMAND_POOL, nodes=1, why="1 pods waited for a node"), cluster).outcome is Outcome.VALID


ASKS = {"node": "", "pool": "", "phase": "Pending", "selector": (f"{POOL_LABEL}={ON_DEMAND_POOL}", "cloud.google.com/gke-tpu-topology=2x2")}


@pytest.mark.parametrize("answer", ["stockout", "quota-exceeded"])
def test_a_pod_that_waits_for_a_node_has_asked_for_it(answer):
    cluster = Cluster(on_demand_nodes=0, on_demand=PoolAnswer(answer=answer, for_s=30.0))
    run = ClusterRun().submit().admit().pod(**ASKS)
    finding = judge(run, cluster)
    assert finding.outcome is Outcome.UNKNOWN
    assert f"{answer} of nodes of {ON_DEMAND_POOL} was due from {run.t_s:.2f} s on, when capacity was asked for" in finding.reason
    run.add(PoolScaled, pool=ON_DEMAND_POOL, nodes=0, why="no machine", error=POOL_ERRORS[answer])
    assert judge(run.fork().watch(29.0).close("deadline"), cluster).outcome is Outcome.VALID  # refused to the end
    finding = judge(run.fork().watch(31.0).close("deadline"), cluster)
    assert finding.outcome is Outcome.UNKNOWN
    assert f"1 of 2 faults landed: a scale-up of {ON_DEMAND_POOL} from 0 was due" in finding.reason
    run.add(PoolScaled, pool=ON_DEMAND_POOL, nodes=1, why="1 pods waited for a node")
    assert judge(run.watch(31.0).close("deadline"), cluster).outcome is Outcome.VALID


def test_a_pool_that_is_empty_and_stays_so_for_who_waits_is_a_scale_up_that_was_not_seen():
    run = ClusterRun().submit().admit().pod(**ASKS)
    finding = judge(run.fork().close("deadline"), Cluster(on_demand_nodes=0))
    assert finding.outcome is Outcome.UNKNOWN
    assert f"0 of 1 faults landed: a scale-up of {ON_DEMAND_POOL} from 0 was due from" in finding.reason


def test_a_pod_of_another_pool_or_of_a_request_asks_for_no_on_demand_node():
    cluster = Cluster(on_demand_nodes=0)
    run = ClusterRun().submit().admit()
    other = run.fork().pod(**{**ASKS, "selector": (f"{POOL_LABEL}=dws-pool",)}).pod("head", role="head", rank=-1, **ASKS)
    tied = run.fork().pod(**ASKS, provisioning_request="job-0-dws-prov-1")
    for one in (run, other, tied):
        assert judge(one.close("deadline"), cluster).reason == "no fault was declared"


def is_scripted(scenario: Scenario) -> bool:
    cluster, usual = scenario.cluster, Cluster()
    is_nearer = cluster.booking_s < usual.booking_s or cluster.max_run_s < usual.max_run_s
    return cluster.provisioning != usual.provisioning or cluster.on_demand != usual.on_demand or cluster.on_demand_nodes == 0 or is_nearer


@pytest.mark.parametrize("scenario", [*filter(is_scripted, CATALOGUE.values())], ids=lambda scenario: scenario.name)
def test_no_scenario_is_proved_on_a_platform_that_grants_everything_at_once(scenario: Scenario):
    run = asked((ACCEPTED,), (ACCEPTED, PROVISIONED)).admit("dws").attempt(0).pod().begin().steps(1, 20).complete()
    finding = judge(run, scenario.cluster)
    assert (finding.outcome, finding.measures["faults_landed"]) == (Outcome.UNKNOWN, 0.0)


def test_without_a_cluster_no_script_is_due():
    cluster = Cluster(provisioning=(script(Phase(state="stockout")),), on_demand=PoolAnswer(answer="stockout"), booking_s=5.0)
    assert judge(uninterrupted(), cluster).reason == "no fault was declared"


def test_the_words_are_those_of_the_emulated_platform():
    assert {name: refusal.code for name, refusal in autoscaler.REFUSALS.items()} == POOL_ERRORS
    said = {"stockout": dws_reasons.STOCKOUT.reason, "quota-exceeded": dws_reasons.quota_exceeded(pool="p").reason}
    assert said == WAITING_REASONS
    assert pools.ON_DEMAND_POOL == ON_DEMAND_POOL
    assert f"{POOL_LABEL}={pools.ON_DEMAND_POOL}" == ON_DEMAND_SELECTOR
