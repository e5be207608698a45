"""The simulator serves ProvisioningRequests as GKE does: conditions in GKE's order, nodes with them, by the scenario's script."""

from collections.abc import Iterator

import pytest

from harness.clock import ManualClock
from harness.history import Event, PoolScaled
from harness.history.cluster import CLASS_ANNOTATION, CONSUME_ANNOTATION
from harness.kind import DEFAULT_TOPOLOGY
from harness.protocol.attempt_key import AttemptKey
from harness.scenario import Cluster, Phase, ProvisioningScript
from harness.targets.kubernetes.api import (
    JOBS,
    NODES,
    POD_TEMPLATES,
    PODS,
    PROVISIONING_REQUESTS,
    WORKLOADS,
    ApiError,
    Object,
    conditions_of,
    labels_of,
    uid_of,
)
from harness.targets.kubernetes.dws import NO_ROOM_S, UNANSWERED_S, UPDATES_A_LOOP_MAX, DwsSimulator
from harness.targets.kubernetes.dws_course import Course, Step
from harness.targets.kubernetes.dws_nodes import IDLE_S
from harness.targets.kubernetes.dws_requests import PROVISIONING_CLASS, REQUEST_LABEL, asked_by
from harness.targets.kubernetes.dws_served import Served, StatusWriter
from harness.targets.kubernetes.dws_states import IllegalTransitionError, State
from harness.targets.kubernetes.pools import NodePools
from harness.targets.kubernetes.reading import provisioning_seen
from harness.targets.kubernetes.watching import Watched

from .fake_api import FakeApi
from .fake_machines import FakeMachines, finish, pod


def script(*phases: Phase) -> ProvisioningScript:
    return ProvisioningScript(phases=phases)


def phase(state: str, after_s: float = 1.0, **more: str) -> Phase:
    return Phase(state=state, after_s=after_s, **more)  # type: ignore[arg-type]


def consuming(request: str = "job-a-dws-prov-1") -> dict[str, str]:
    """Annotations of a pod."""
    return {CONSUME_ANNOTATION: request, CLASS_ANNOTATION: PROVISIONING_CLASS}


ONLY_PROVISIONED = {"Accepted": "True", "Provisioned": "True"}
EXPIRED = ONLY_PROVISIONED | {"BookingExpired": "True"}
REVOKED = EXPIRED | {"CapacityRevoked": "True"}


class Trial:
    """A simulator on a cluster in memory, moved by hand."""

    def __init__(self, cluster: Cluster, tasks: dict[str, int | None] | None = None) -> None:
        self.api = FakeApi()
        self.machines = FakeMachines(DEFAULT_TOPOLOGY, self.api, off=["dws-pool"])
        self.pools = NodePools(self.machines, DEFAULT_TOPOLOGY)
        self.pools.read()
        self.tasks = tasks or {}
        self.dws = DwsSimulator(self.api, self.pools, ManualClock(), namespace="run", cluster=cluster, task_of=self.task_of)
        self.watches = self.api.watches([Watched(PROVISIONING_REQUESTS), Watched(PODS), Watched(NODES)])
        self.now_s = 0.0
        self.events: list[Event] = []

    def task_of(self, thing: Object) -> int | None:
        return self.tasks.get(thing["metadata"]["name"], 0)

    def ask(self, name: str = "job-a-dws-prov-1", *, pods: int = 4, chips: int = 4, namespace: str = "run", **parameters: str) -> None:
        """Make a request as Kueue does, with its pod template."""
        container = {"name": "host", "resources": {"requests": {"google.com/tpu": str(chips)}}}
        template = {"metadata": {"name": f"ppt-{name}", "namespace": namespace}, "template": {"spec": {"containers": [container]}}}
        self.api.put(POD_TEMPLATES, template)
        self.api.put(
            PROVISIONING_REQUESTS,
            {
                "metadata": {"name": name, "namespace": namespace},
                "spec": {
                    "provisioningClassName": PROVISIONING_CLASS,
                    "podSets": [{"podTemplateRef": {"name": f"ppt-{name}"}, "count": pods}],
                    "parameters": parameters,
                },
            },
        )

    def pass_s(self, seconds: float, step_s: float = 0.5) -> "Trial":
        """Let time pass; machines are quick."""
        for _ in range(max(1, round(seconds / step_s))):
            self.now_s += step_s
            self.turn()
        return self

    def turn(self) -> None:
        for change in self.watches.drain():
            self.dws.see(change)
        self.events += self.pools.tick(self.now_s)
        self.events += self.dws.tick(self.now_s)
        finish(self.pools)

    def request(self, name: str = "job-a-dws-prov-1") -> Object:
        found = self.api.get(PROVISIONING_REQUESTS, name, "run")
        assert found is not None
        return found

    def says(self, name: str = "job-a-dws-prov-1") -> dict[str, str]:
        """Type to ``status:reason``."""
        return {one["type"]: f"{one['status']}:{one['reason']}" for one in conditions_of(self.request(name))}

    def holds(self, name: str = "job-a-dws-prov-1") -> list[str]:
        return [one["type"] for one in conditions_of(self.request(name)) if one["status"] == "True"]

    def written(self, name: str = "job-a-dws-prov-1") -> list[dict[str, str]]:
        """Every set of conditions that the request has had, one after the other."""
        seen: list[dict[str, str]] = []
        for change in self.api.changes:
            if change.resource == PROVISIONING_REQUESTS and change.object["metadata"]["name"] == name and change.kind != "deleted":
                conditions = {one["type"]: one["status"] for one in conditions_of(change.object)}
                seen += [conditions] if conditions and conditions not in seen[-1:] else []
        return seen

    def nodes(self) -> list[str]:
        return sorted(item["metadata"]["name"] for key, item in self.api.objects.items() if key[0] == "nodes" and "dws" in key[2])


@pytest.fixture
def trials() -> Iterator[list[Trial]]:
    made: list[Trial] = []
    yield made
    for trial in made:
        trial.machines.gate.set()
        trial.pools.close()


@pytest.fixture
def begin(trials: list[Trial]):
    def make(*scripts: ProvisioningScript, tasks: dict[str, int | None] | None = None, **more: float) -> Trial:
        trials.append(Trial(Cluster(provisioning=scripts or (ProvisioningScript(),), **more), tasks))
        return trials[-1]

    return make


# ---- granted ---------------------------------------------------------------------------------------------------------


def test_a_granted_request_is_queued_gets_its_nodes_and_only_then_is_provisioned(begin):
    trial = begin()
    trial.ask()
    trial.machines.gate.clear()
    trial.now_s = 1.0
    for _ in range(2):
        for change in trial.watches.drain():
            trial.dws.see(change)
        trial.dws.tick(trial.now_s)
    assert trial.says() == {"Accepted": "True:SuccessfullyQueued"}

    trial.dws.tick(5.0)
    trial.dws.tick(6.0)
    assert trial.holds() == ["Accepted"]  # the machines are on their way

    trial.machines.gate.set()
    finish(trial.pools)
    trial.now_s = 6.0
    trial.pass_s(2)
    assert trial.says() == {"Accepted": "True:SuccessfullyQueued", "Provisioned": "True:Provisioned"}
    assert trial.nodes() == ["dws-pool-0", "dws-pool-1"]
    assert trial.written() == [{"Accepted": "False"}, {"Accepted": "True"}, {"Accepted": "True", "Provisioned": "True"}]


def test_a_provisioned_request_says_what_serves_it_and_so_do_its_nodes(begin):
    trial = begin()
    trial.ask()
    trial.pass_s(4)

    details = trial.request()["status"]["provisioningClassDetails"]
    resize_request = details["ResizeRequestName"]
    assert resize_request == "gke-run-job-a-dws-prov-1-" + resize_request.rpartition("-")[2]
    assert len(resize_request.rpartition("-")[2]) == 16
    assert details | {"ResizeRequestName": ""} == {
        "NodeGroupName": "gke-chaos-harness-dws-pool-grp",
        "ResizeRequestName": "",
        "NodePoolName": "dws-pool",
        "AcceleratorType": "tpu-v6e-slice",
        "SelectedZone": "us-east5-b",
        "NodePoolAutoProvisioned": "false",
        "PodTemplateName": "ppt-job-a-dws-prov-1",
        "ProvisioningMode": "resize_request",
    }
    for name in trial.nodes():
        node = trial.api.get(NODES, name)
        assert node is not None
        assert labels_of(node)[REQUEST_LABEL] == resize_request


def test_a_node_that_comes_back_is_labelled_again(begin):
    trial = begin()
    trial.ask()
    trial.pass_s(4)
    trial.api.remove(NODES, "dws-pool-1")
    trial.pass_s(1)
    trial.api.put(NODES, {"metadata": {"name": "dws-pool-1", "labels": {}}})
    trial.pass_s(1)

    node = trial.api.get(NODES, "dws-pool-1")
    assert node is not None
    assert REQUEST_LABEL in labels_of(node)


def test_only_as_many_nodes_come_as_the_pods_fill(begin):
    trial = begin()
    trial.ask(pods=1)
    trial.pass_s(4)

    assert trial.nodes() == ["dws-pool-0"]
    assert [(event.nodes, event.error) for event in trial.events if isinstance(event, PoolScaled)] == [(1, "")]


def test_conditions_have_the_times_at_which_they_changed(begin):
    trial = begin()
    trial.ask()
    trial.pass_s(4)

    times = {one["type"]: one["lastTransitionTime"] for one in conditions_of(trial.request())}
    assert times == {"Accepted": "2026-01-01T00:00:00Z", "Provisioned": "2026-01-01T00:00:00Z"}
    assert {one["observedGeneration"] for one in conditions_of(trial.request())} == {1}


# ---- waiting ---------------------------------------------------------------------------------------------------------


def test_a_stockout_is_accepted_and_waits_until_it_is_granted(begin):
    trial = begin(script(phase("stockout"), phase("granted", 3.0)))
    trial.ask()
    trial.pass_s(3)

    assert trial.says() == {"Accepted": "True:SuccessfullyQueued", "Provisioned": "False:ResourcePoolExhausted"}
    assert [event.error for event in trial.events if isinstance(event, PoolScaled)] == ["ResourcePoolExhausted"]
    assert trial.nodes() == []
    trial.pass_s(4)
    assert trial.holds() == ["Accepted", "Provisioned"]


def test_exceeded_quota_waits_as_a_stockout_does(begin):
    trial = begin(script(phase("stockout"), phase("quota-exceeded"), phase("never")))
    trial.ask()
    trial.pass_s(10)

    assert trial.says()["Provisioned"] == "False:QuotaExceeded"
    assert "exceeded.  Limit: 16.0" in conditions_of(trial.request())[1]["message"]


def test_a_request_that_never_comes_up_says_nothing_more(begin):
    trial = begin(script(phase("never")))
    trial.ask()
    trial.pass_s(60)

    assert trial.says() == {"Accepted": "True:SuccessfullyQueued"}
    assert trial.nodes() == []


def test_ten_requests_are_told_why_they_wait_in_one_look_and_the_others_later(begin):
    trial = begin(script(phase("stockout", 2.0), phase("never")))
    for number in range(UPDATES_A_LOOP_MAX + 2):
        trial.ask(f"job-{number}-dws-prov-1")
    trial.pass_s(2.5)

    def told() -> int:
        return sum("Provisioned" in trial.says(f"job-{number}-dws-prov-1") for number in range(UPDATES_A_LOOP_MAX + 2))

    while not told():
        trial.pass_s(0.5)
    assert told() == UPDATES_A_LOOP_MAX
    trial.pass_s(1.5)
    assert told() == UPDATES_A_LOOP_MAX + 2


# ---- failed ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("reason", "is_accepted"), [("WaitTimeExceeded", True), ("QueuingInfeasibleNoCapacity", False)])
def test_a_request_fails_in_the_queue_or_before_it_as_its_reason_says(begin, reason: str, is_accepted: bool):
    trial = begin(script(phase("failed", reason=reason)))
    trial.ask()
    trial.pass_s(4)

    accepted = "True:SuccessfullyQueued" if is_accepted else "False:NotAccepted"
    assert trial.says() == {"Accepted": accepted, "Failed": f"True:{reason}"}
    assert [event.error for event in trial.events if isinstance(event, PoolScaled)] == [reason]


@pytest.mark.parametrize(
    ("seconds", "reason"),
    [("599", "InvalidArgument"), ("-5", "InvalidArgument"), ("ten minutes", "InvalidArgumentMaxRunDurationParseError"), ("600", "")],
)
def test_a_maximum_run_time_that_gke_would_not_take_is_refused(begin, seconds: str, reason: str):
    trial = begin(script(phase("never")))
    trial.ask(maxRunDurationSeconds=seconds)
    trial.pass_s(2)

    assert trial.says().get("Failed", "") == (f"True:{reason}" if reason else "")


def test_a_request_fails_when_the_time_that_it_wants_to_wait_is_over(begin):
    trial = begin(script(phase("stockout"), phase("never")))
    trial.ask(ValidUntilSeconds="5")
    trial.pass_s(4)
    assert trial.holds() == ["Accepted"]
    trial.pass_s(2)

    assert trial.says() == {
        "Accepted": "True:SuccessfullyQueued",
        "Provisioned": "False:ResourcePoolExhausted",
        "Failed": "True:WaitTimeExceeded",
    }


def test_a_request_larger_than_the_pool_is_tried_for_a_while_and_then_fails(begin):
    trial = begin()
    trial.ask(pods=5)
    trial.pass_s(5)
    assert trial.says() == {"Accepted": "False:NodepoolSizeReached"}
    assert conditions_of(trial.request())[0]["message"] == "Max nodepool size reached, affected nodepools: dws-pool"

    trial.pass_s(NO_ROOM_S, step_s=10)
    assert trial.says() == {"Accepted": "False:NodepoolSizeReached", "Failed": "True:NodepoolSizeReached"}
    assert trial.nodes() == []


def test_a_request_whose_pods_fit_on_no_node_says_so(begin):
    trial = begin()
    trial.ask(pods=1, chips=16)
    trial.pass_s(2)

    assert trial.says() == {"Accepted": "False:ProvisioningRequestNotSchedulableInNodepool"}


def test_a_request_that_finds_the_pool_taken_is_accepted_when_it_is_free_again(begin):
    trial = begin()
    trial.ask("job-a-dws-prov-1")
    trial.pass_s(4)
    trial.ask("job-b-dws-prov-1")
    trial.pass_s(4)
    assert (trial.holds("job-a-dws-prov-1"), trial.says("job-b-dws-prov-1")) == (
        ["Accepted", "Provisioned"],
        {"Accepted": "False:NodepoolSizeReached"},
    )

    trial.api.remove(PROVISIONING_REQUESTS, "job-a-dws-prov-1", "run")
    trial.pass_s(4)
    assert trial.holds("job-b-dws-prov-1") == ["Accepted", "Provisioned"]


def test_of_two_queued_requests_the_later_waits_for_what_the_first_one_took(begin):
    trial = begin()
    trial.ask("job-a-dws-prov-1")
    trial.ask("job-b-dws-prov-1")
    trial.pass_s(6)
    assert trial.holds("job-a-dws-prov-1") == ["Accepted", "Provisioned"]
    assert trial.says("job-b-dws-prov-1") == {"Accepted": "True:SuccessfullyQueued", "Provisioned": "False:ResourcePoolExhausted"}

    trial.dws.revoke("job-a-dws-prov-1")
    trial.pass_s(4)
    assert trial.holds("job-b-dws-prov-1") == ["Accepted", "Provisioned"]


# ---- the end of a booking and of the capacity ------------------------------------------------------------------------


def test_a_booking_ends_and_the_nodes_of_a_job_that_uses_them_stay(begin):
    trial = begin(booking_s=5.0)
    trial.ask()
    trial.pass_s(4)
    annotations = consuming()
    for number in range(2):
        trial.api.put(*pod(f"host-{number}", node=f"dws-pool-{number}", metadata={"annotations": annotations}))
    trial.pass_s(2 * IDLE_S)

    assert trial.holds() == ["Accepted", "Provisioned", "BookingExpired"]
    assert trial.nodes() == ["dws-pool-0", "dws-pool-1"]

    trial.api.put(*pod("host-0", node="dws-pool-0", metadata={"annotations": annotations}, status={"phase": "Succeeded"}))
    trial.pass_s(IDLE_S - 1)
    assert trial.nodes() == ["dws-pool-0", "dws-pool-1"]  # idle, but not for long
    trial.pass_s(4)
    assert trial.nodes() == ["dws-pool-1"]


@pytest.mark.parametrize(
    "annotations",
    [{}, {CONSUME_ANNOTATION: "job-a-dws-prov-1"}, {CONSUME_ANNOTATION: "another-1", CLASS_ANNOTATION: PROVISIONING_CLASS}],
    ids=["none", "no class", "another request"],
)
def test_nodes_of_pods_without_both_annotations_are_reclaimed_when_the_booking_is_over(begin, annotations: dict[str, str]):
    trial = begin(booking_s=5.0)
    trial.ask()
    trial.pass_s(4)
    trial.api.put(*pod("host-0", node="dws-pool-0", metadata={"annotations": annotations}))
    trial.pass_s(IDLE_S - 3)
    assert trial.nodes() == ["dws-pool-0", "dws-pool-1"]
    trial.pass_s(5)

    assert trial.nodes() == []
    assert ("stop", "dws-pool-0") in trial.machines.calls


def test_a_script_can_end_the_booking_early(begin):
    trial = begin(script(phase("granted"), phase("booking-expired", 2.0)))
    trial.ask()
    trial.pass_s(8)
    assert trial.written()[-2:] == [ONLY_PROVISIONED, EXPIRED]
    trial.pass_s(IDLE_S)

    assert trial.nodes() == []


def test_a_booking_that_ends_at_once_is_never_seen_to_have_begun(begin):
    trial = begin(script(phase("granted"), phase("booking-expired", 0.0)))
    trial.ask()
    trial.pass_s(8)

    assert trial.written() == [{"Accepted": "False"}, {"Accepted": "True"}, EXPIRED]
    told = provisioning_seen(trial.request(), AttemptKey(0, 0), trial.now_s, is_deleted=False)
    assert [one.type for one in told.conditions] == ["Accepted", "Provisioned", "BookingExpired"]
    assert trial.nodes() == ["dws-pool-0", "dws-pool-1"]
    trial.pass_s(IDLE_S)
    assert trial.nodes() == []


def test_steps_of_one_update_are_legal_one_by_one_or_nothing_is_written():
    api = FakeApi()
    thing = {"metadata": {"name": "x", "namespace": "run"}, "spec": {"podSets": []}}
    asked = asked_by(api.put(PROVISIONING_REQUESTS, thing))
    served = Served(Course(asked, ProvisioningScript(), Cluster(), "dws-pool", seen_s=0.0))
    writer = StatusWriter(api, ManualClock())

    with pytest.raises(IllegalTransitionError, match="that is Accepted cannot become BookingExpired"):
        writer.move(served, Step(State.PENDING), Step(State.ACCEPTED), Step(State.BOOKING_EXPIRED))
    assert (served.state, "status" in (api.get(PROVISIONING_REQUESTS, "x", "run") or {})) == (State.UNINITIALIZED, False)


def test_after_the_booking_the_capacity_is_revoked_at_the_maximum_run_time(begin):
    trial = begin(booking_s=3.0, max_run_s=6.0)
    trial.ask()
    trial.pass_s(12)

    assert trial.written()[-3:] == [ONLY_PROVISIONED, EXPIRED, REVOKED]
    assert trial.nodes() == []


def test_a_maximum_run_time_within_the_booking_ends_both_at_once(begin):
    trial = begin(booking_s=600.0, max_run_s=6.0)
    trial.ask()
    trial.pass_s(12)

    assert trial.written()[-2:] == [ONLY_PROVISIONED, REVOKED]
    assert trial.nodes() == []


def test_capacity_is_revoked_on_demand_and_its_nodes_go_with_notice(begin):
    trial = begin()
    trial.ask()
    trial.pass_s(4)

    assert trial.dws.revoke("job-a-dws-prov-1") == ("dws-pool-0", "dws-pool-1")
    trial.pass_s(1)
    assert trial.written()[-2:] == [ONLY_PROVISIONED, REVOKED]
    assert trial.nodes() == []
    assert ("stop", "dws-pool-1") in trial.machines.calls
    assert trial.dws.nodes_of("job-a-dws-prov-1") == ()


def test_what_was_not_provisioned_cannot_be_revoked(begin):
    trial = begin(script(phase("never")))
    trial.ask()
    trial.pass_s(2)

    with pytest.raises(LookupError, match="it is Accepted"):
        trial.dws.revoke("job-a-dws-prov-1")
    with pytest.raises(LookupError, match="there is none"):
        trial.dws.revoke("job-b-dws-prov-1")


# ---- nodes that are needed -------------------------------------------------------------------------------------------


def expired(begin, *, pods: int = 4) -> Trial:
    """A booking that is over, of nodes that nobody has used yet."""
    trial = begin(script(phase("granted"), phase("booking-expired", 0.0)), script(phase("granted")))
    trial.ask(pods=pods)
    trial.pass_s(4)
    assert trial.holds()[-1] == "BookingExpired"
    return trial


def is_closed(trial: Trial, node: str) -> bool:
    found = trial.api.get(NODES, node)
    return found is not None and bool((found.get("spec") or {}).get("unschedulable"))


def await_closing(trial: Trial) -> None:
    while not is_closed(trial, "dws-pool-0"):
        assert trial.nodes() == ["dws-pool-0"], "it went without notice"
        assert trial.now_s < 2 * IDLE_S, "it is not to go"
        trial.pass_s(0.5)


def test_a_pod_that_is_not_bound_yet_keeps_all_nodes_of_its_request(begin):
    trial = expired(begin)
    trial.api.put(*pod("host-0", metadata={"annotations": consuming()}))
    trial.pass_s(2 * IDLE_S)

    assert trial.nodes() == ["dws-pool-0", "dws-pool-1"]


@pytest.mark.parametrize("annotations", [{}, {CONSUME_ANNOTATION: "job-a-dws-prov-1"}], ids=["none", "no class"])
def test_a_pod_that_is_not_bound_yet_and_lacks_annotations_keeps_none(begin, annotations: dict[str, str]):
    trial = expired(begin)
    trial.api.put(*pod("host-0", metadata={"annotations": annotations}))
    trial.pass_s(IDLE_S + 2)

    assert trial.nodes() == []


def test_a_node_that_is_about_to_go_takes_no_new_pods(begin):
    trial = expired(begin, pods=1)
    await_closing(trial)
    assert ("stop", "dws-pool-0") not in trial.machines.calls
    trial.pass_s(1)

    assert trial.nodes() == []


def test_a_pod_that_no_watch_has_told_of_yet_keeps_its_node(begin):
    trial = expired(begin, pods=1)
    await_closing(trial)
    trial.api.put(*pod("host-0", node="dws-pool-0", metadata={"annotations": consuming()}))
    del trial.api.changes[-1]
    trial.pass_s(0.5)

    assert (trial.nodes(), is_closed(trial, "dws-pool-0")) == (["dws-pool-0"], False)


def test_nodes_are_not_taken_away_while_the_api_server_does_not_say_who_is_there(begin):
    trial = expired(begin, pods=1)
    trial.api.failures["list", "pods"] = ApiError(attempted="list", what="pods", status=0, reason="refused")
    trial.pass_s(2 * IDLE_S)
    assert trial.nodes() == ["dws-pool-0"]

    del trial.api.failures["list", "pods"]
    trial.pass_s(UNANSWERED_S + 1)
    assert trial.nodes() == []


def test_a_pod_of_another_request_that_was_bound_to_a_node_keeps_it(begin):
    trial = expired(begin, pods=1)
    trial.ask("job-a-dws-prov-2", pods=1)
    trial.pass_s(4)
    trial.api.put(*pod("host-0", node="dws-pool-0", metadata={"annotations": consuming("job-a-dws-prov-2")}))
    trial.pass_s(2 * IDLE_S)

    assert trial.nodes() == ["dws-pool-0", "dws-pool-1"]


def test_nodes_of_a_deleted_request_go_when_its_pods_are_over(begin):
    trial = begin()
    trial.ask()
    trial.pass_s(4)
    trial.api.put(*pod("host-0", node="dws-pool-0", metadata={"annotations": consuming()}))
    trial.pass_s(1)
    trial.api.remove(PROVISIONING_REQUESTS, "job-a-dws-prov-1", "run")
    trial.pass_s(IDLE_S)
    assert trial.nodes() == ["dws-pool-0"]
    assert trial.dws.nodes_of("job-a-dws-prov-1") == ()

    trial.api.remove(PODS, "host-0", "run")
    trial.pass_s(2)
    assert trial.nodes() == []


def test_a_request_that_is_made_again_by_the_same_name_gets_nodes_of_its_own(begin):
    trial = begin()
    trial.ask()
    trial.pass_s(4)
    trial.api.remove(PROVISIONING_REQUESTS, "job-a-dws-prov-1", "run")
    trial.ask()
    trial.pass_s(8)

    assert trial.holds() == ["Accepted", "Provisioned"]
    assert trial.dws.nodes_of("job-a-dws-prov-1") == ("dws-pool-0", "dws-pool-1")


def test_machines_that_were_on_their_way_to_a_request_that_fails_are_let_go(begin):
    trial = begin()
    trial.ask(ValidUntilSeconds="5")
    trial.machines.gate.clear()
    for now_s in (1.0, 1.5, 3.0, 3.5, 6.0):
        for change in trial.watches.drain():
            trial.dws.see(change)
        trial.dws.tick(now_s)
    assert trial.says()["Failed"] == "True:WaitTimeExceeded"

    trial.machines.gate.set()
    finish(trial.pools)
    trial.now_s = 6.0
    trial.pass_s(2)
    assert (trial.nodes(), trial.pools.spare("dws-pool")) == ([], 2)


# ---- whose request it is ---------------------------------------------------------------------------------------------


def test_each_request_of_a_task_has_its_script_and_the_last_one_holds(begin):
    trial = begin(script(phase("failed")), script(phase("never")), tasks={"job-b-dws-prov-1": 1})
    for name in ("job-a-dws-prov-1", "job-a-dws-prov-2", "job-a-dws-prov-3", "job-b-dws-prov-1"):
        trial.ask(name, pods=1)
        trial.pass_s(4)

    assert [trial.holds(f"job-a-dws-prov-{number}")[-1] for number in (1, 2, 3)] == ["Failed", "Accepted", "Accepted"]
    assert trial.holds("job-b-dws-prov-1")[-1] == "Failed"


def test_a_request_of_another_job_is_granted_once_it_is_sure_that_it_is_nobodys(begin):
    trial = begin(script(phase("never")), tasks={"other-dws-prov-1": None})
    trial.ask("other-dws-prov-1")
    trial.pass_s(1)
    assert trial.holds("other-dws-prov-1") == []
    trial.pass_s(5)

    assert trial.holds("other-dws-prov-1") == ["Accepted", "Provisioned"]


def job_of(trial: Trial, request: str, labels: dict[str, str]) -> None:
    """Let the request be a workload's, and that a job's, neither of which was seen by a watch."""
    job = trial.api.put(JOBS, {"metadata": {"name": "job", "namespace": "run", "labels": labels}})
    owner = [{"kind": "Job", "name": "job", "uid": uid_of(job)}]
    workload = trial.api.put(WORKLOADS, {"metadata": {"name": "workload", "namespace": "run", "ownerReferences": owner}})
    stored = trial.request(request)
    stored["metadata"]["ownerReferences"] = [{"kind": "Workload", "name": "workload", "uid": uid_of(workload)}]
    trial.api.put(PROVISIONING_REQUESTS, stored)


def test_a_request_whose_workload_was_not_seen_gets_the_script_of_its_task_however_late_that_is_known(begin):
    trial = begin(script(phase("never")), tasks={"late-1": None, "workload": None, "job": 0})
    trial.ask("late-1")
    job_of(trial, "late-1", {})
    trial.api.failures["get", "workloads"] = ApiError(attempted="get", what="workloads", status=0, reason="refused")
    trial.pass_s(30)
    assert trial.holds("late-1") == []

    del trial.api.failures["get", "workloads"]
    trial.pass_s(10)
    assert trial.holds("late-1") == ["Accepted"]


def test_a_request_whose_workload_is_another_jobs_is_granted(begin):
    trial = begin(script(phase("never")), tasks={"other-1": None, "workload": None, "job": None})
    trial.ask("other-1")
    job_of(trial, "other-1", {})
    trial.pass_s(6)

    assert trial.holds("other-1") == ["Accepted", "Provisioned"]


def test_a_request_whose_workload_is_gone_is_served_by_no_script(begin):
    trial = begin(tasks={"old-1": None, "workload": None, "job": 0})
    trial.ask("old-1")
    job_of(trial, "old-1", {})
    trial.api.remove(WORKLOADS, "workload", "run")
    trial.pass_s(10)

    assert trial.holds("old-1") == []


def test_a_node_that_is_deleted_while_it_is_named_does_not_end_its_request(begin):
    trial = begin()
    trial.ask()
    trial.api.failures["patch", "nodes"] = ApiError(attempted="patch", what="nodes/x", status=404, reason="NotFound")
    trial.pass_s(6)
    assert trial.holds() == ["Accepted"]

    del trial.api.failures["patch", "nodes"]
    trial.pass_s(3)
    assert trial.holds() == ["Accepted", "Provisioned"]


def test_requests_of_other_classes_and_namespaces_are_not_touched(begin):
    trial = begin()
    trial.ask("elsewhere-1", namespace="other")
    trial.api.put(
        PROVISIONING_REQUESTS,
        {
            "metadata": {"name": "check-1", "namespace": "run"},
            "spec": {"provisioningClassName": "check-capacity.autoscaling.x-k8s.io", "podSets": []},
        },
    )
    trial.pass_s(5)

    assert [call for call in trial.api.calls if call[0] == "patch"] == []


# ---- an API server with troubles -------------------------------------------------------------------------------------


def test_an_api_server_that_does_not_answer_is_asked_again(begin):
    trial = begin()
    trial.ask()
    trial.api.failures["patch", "provisioningrequests"] = ApiError(attempted="patch", what="it", status=0, reason="refused")
    trial.pass_s(0.5)
    asked = len(trial.api.calls)
    trial.turn()
    assert len(trial.api.calls) == asked  # not at once

    del trial.api.failures["patch", "provisioningrequests"]
    trial.pass_s(UNANSWERED_S + 4)
    assert trial.holds() == ["Accepted", "Provisioned"]


def test_what_the_api_server_refuses_is_an_error(begin):
    trial = begin()
    trial.ask()
    trial.api.failures["patch", "provisioningrequests"] = ApiError(attempted="patch", what="it", status=422, reason="Invalid")

    with pytest.raises(ApiError, match="422 Invalid"):
        trial.pass_s(1)


def test_a_request_that_is_gone_is_forgotten_and_its_nodes_go(begin):
    trial = begin(booking_s=3.0)
    trial.ask()
    trial.pass_s(3)
    assert trial.nodes()
    del trial.api.objects["provisioningrequests", "run", "job-a-dws-prov-1"]  # the watch has not said so yet
    trial.pass_s(4)

    assert trial.nodes() == []


def test_a_template_that_is_not_there_yet_is_waited_for(begin):
    trial = begin()
    trial.ask()
    template = trial.api.objects.pop(("podtemplates", "run", "ppt-job-a-dws-prov-1"))
    trial.pass_s(2)
    assert trial.says() == {"Accepted": "False:NotAccepted"}

    trial.api.put(POD_TEMPLATES, template)
    trial.pass_s(4)
    assert trial.holds() == ["Accepted", "Provisioned"]


def test_a_request_is_served_once_however_often_it_is_seen(begin):
    trial = begin()
    trial.ask()
    trial.pass_s(4)
    for change in trial.api.changes[:]:
        trial.dws.see(change)
    trial.pass_s(2)

    assert trial.dws.nodes_of("job-a-dws-prov-1") == ("dws-pool-0", "dws-pool-1")
    assert uid_of(trial.request())
