"""Every legal sequence of a ProvisioningRequest's conditions against the real Kueue, and what Kueue makes of each.

A trial is a tiny suspended Job in a queue whose only flavor needs the provisioning check; its pod fits on no node, so nothing runs. All trials
take their steps together: after each step the cluster is watched until it has been quiet for a while.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

import msgspec

from harness.clock import SystemClock
from harness.kind import ALLOW_LABEL, RUN_ID_LABEL, KindCluster
from harness.kind.lock import TURN_S_MAX, Turn
from harness.kind.topology import POOL_LABEL, QUEUED_TAINT, TPU_RESOURCE, TPU_TAINT
from harness.scenario import Cluster, ProvisioningScript
from harness.targets.kubernetes.api import (
    ADMISSION_CHECKS,
    CLUSTER_QUEUES,
    JOBS,
    LOCAL_QUEUES,
    NAMESPACES,
    PODS,
    PROVISIONING_CONFIGS,
    PROVISIONING_REQUESTS,
    RESOURCE_FLAVORS,
    WORKLOADS,
    Api,
    Object,
    Resource,
    conditions_of,
    name_of,
    uid_of,
)
from harness.targets.kubernetes.dws_course import Course, Step
from harness.targets.kubernetes.dws_reasons import STOCKOUT, explain_failure
from harness.targets.kubernetes.dws_requests import PROVISIONING_CLASS, asked_by, owner_of
from harness.targets.kubernetes.dws_served import Served, StatusWriter
from harness.targets.kubernetes.dws_states import FOLLOWERS, State
from harness.targets.kubernetes.watching import Watched, Watches

NAME = "dws-trials"
RECORD = Path(__file__).parent / "dws_against_kueue.json"
POLL_S = 0.1
QUIET_S = 3.0
"""Kueue answers a change of a request within a second; on a busy machine in two."""
ROUND_S_MAX = 40.0
READY_S = 60.0

TEST_S_MAX = TURN_S_MAX + 900.0
"""A test may wait for its turn on the cluster before it begins; none takes a quarter of an hour itself."""

CONDITIONS = ("QuotaReserved", "Admitted", "Evicted", "Requeued", "Finished")


@dataclass(frozen=True)
class Context:
    """What else decides: attempts left after the first, and whether another check keeps the workload from being admitted.

    Attributes:
        retries: ``backoffLimitCount``.
        base_s: ``backoffBaseSeconds``; by default so long that the next attempt comes after the trial.
        pool: Node pool of the flavor; its pods ask for chips there, and run. Empty: pods that fit on no node.
        is_checked: Whether the flavor needs the provisioning check.
    """

    retries: int = 3
    is_held_back: bool = False
    base_s: int = 600
    pool: str = ""
    is_checked: bool = True


CONTEXTS: Mapping[str, Context] = {
    "admitted": Context(),
    "held-back": Context(is_held_back=True),
    "admitted-last": Context(retries=0),
    "held-back-last": Context(retries=0, is_held_back=True),
}


class Look(msgspec.Struct, frozen=True, kw_only=True):
    """What Kueue says after a step.

    Attributes:
        checks: States of the check, one after the other since the step before.
        message: Of the check.
        conditions: Of the workload, that hold; with their reasons where they have several.
        is_active: ``spec.active``.
    """

    checks: tuple[str, ...]
    message: str = ""
    conditions: tuple[str, ...] = ()
    is_active: bool = True


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """All looks, by context and sequence (states joined by ``>``)."""

    kueue: str
    looks: dict[str, dict[str, Look]]


def legal_sequences() -> list[tuple[State, ...]]:
    """Every legal sequence to a state after which nothing comes; a request waits in one state at most once."""
    return sorted(_continued(()), key=lambda sequence: (len(sequence), sequence))


def _continued(sequence: tuple[State, ...]) -> Iterator[tuple[State, ...]]:
    seen = sequence[-1] if sequence else State.UNINITIALIZED
    followers = [state for state in sorted(FOLLOWERS[seen]) if state != seen or sequence[-2:-1] != (seen,)]
    if not FOLLOWERS[seen]:
        yield sequence
    for state in followers:
        yield from _continued((*sequence, state))


def named(sequence: Sequence[State]) -> str:
    """A sequence as the record names it."""
    return ">".join(sequence)


@dataclass
class Trial:
    """One Job, its workload and its request."""

    job: str
    context: str
    sequence: tuple[State, ...]
    workload: str = ""
    served: Served | None = None
    trail: list[str] = field(default_factory=list)
    newest: Object = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    looks: dict[str, Look] = field(default_factory=dict)

    def see(self, workload: Object) -> None:
        """Take in the workload as it is now."""
        self.newest = workload
        state = _check_of(workload).get("state", "")
        if state and state not in self.trail[-1:]:
            self.trail.append(state)

    def look(self) -> Look:
        """What Kueue says now; begins a new trail."""
        check = _check_of(self.newest)
        held = {one["type"]: one["reason"] for one in conditions_of(self.newest) if one["status"] == "True"}
        shown = tuple(f"{kind} ({held[kind]})" if kind == "Evicted" else kind for kind in CONDITIONS if kind in held)
        looked = Look(
            checks=tuple(self.trail),
            message=str(check.get("message", "")),
            conditions=shown,
            is_active=bool(self.newest.get("spec", {}).get("active", True)),
        )
        self.trail = self.trail[-1:]
        return looked


def _check_of(workload: Object) -> Object:
    checks = (workload.get("status") or {}).get("admissionChecks") or []
    found: Object = next((check for check in checks if check["name"].startswith(f"{NAME}-prov")), {})
    return found


def step_to(state: State, before: State) -> Step:
    """The step to a state, with a reason where GKE would have one."""
    if state == before:
        return Step(state, STOCKOUT if state == State.ACCEPTED else explain_failure("NodepoolSizeReached", pool="dws-pool"))
    if state == State.FAILED:
        return Step(state, explain_failure("WaitTimeExceeded", pool="dws-pool"))
    return Step(state)


class KueueTrials:
    """Namespaces and queues for trials on one cluster, which they have to themselves; a context manager that leaves nothing behind."""

    def __init__(self, cluster: KindCluster, contexts: Mapping[str, Context]) -> None:
        self.api = Api(cluster.kubeconfig, cluster.context)
        self.writer = StatusWriter(self.api, SystemClock())
        self.trials: list[Trial] = []
        self._image = cluster.job_image
        self._contexts = contexts
        self._clock = SystemClock()
        self._made: list[tuple[Resource, str]] = []
        self._watches: Watches | None = None
        self._alone = ExitStack()
        self._turn = Turn(cluster.name)

    def __enter__(self) -> Self:
        self._alone.enter_context(self._turn.held(self._clock))
        with ExitStack() as otherwise:
            otherwise.push(self)
            self._make_place()
            otherwise.pop_all()
        return self

    def _make_place(self) -> None:
        labels = {ALLOW_LABEL: "true", RUN_ID_LABEL: NAME}
        self._make(NAMESPACES, {"kind": "Namespace", "metadata": {"name": NAME, "labels": labels}})
        for name, context in self._contexts.items():
            self._make_queue(f"{NAME}-{name}", name, context)
        self.wait(self._are_active, READY_S, "the queues of the trials are not active")
        self._watches = Watches(self.api, [Watched(WORKLOADS, NAME), Watched(PROVISIONING_REQUESTS, NAME)])

    def __exit__(self, *_: object) -> None:
        with self._alone:
            self._clear_away()

    def _clear_away(self) -> None:
        if self._watches is not None:
            self._watches.close()
        for job in self.api.list(JOBS, NAME):
            self.api.delete(JOBS, name_of(job), NAME)
        for pod in self.api.list(PODS, NAME):
            self.api.delete(PODS, name_of(pod), NAME, grace_s=0)  # its node may be gone: nobody else would end it for a minute
        for resource, name in reversed(self._made):
            self.api.delete(resource, name)
        self.wait(lambda: all(self.api.get(*one) is None for one in self._made), READY_S, "what the trials have made is still there")
        self.api.close()

    def begin(self, sequences: Sequence[tuple[State, ...]], context: str) -> list[Trial]:
        """Submit a Job for each sequence, and wait for its request."""
        begun = [Trial(f"{context}-{len(self.trials) + number}", context, sequence) for number, sequence in enumerate(sequences)]
        self.trials += begun
        for trial in begun:
            self.api.create(JOBS, self._job(trial), NAME)
        self.wait(lambda: self.turn() and all(trial.served for trial in begun), READY_S, f"Kueue made no request for {context}")
        return begun

    def job_of(self, context: str) -> tuple[Resource, Object]:
        """A Job for a queue without the provisioning check: no request comes of it."""
        return JOBS, self._job(Trial(f"{context}-job", context, ()))

    def run(self) -> None:
        """Take all trials through their sequences, together."""
        for number in range(max(len(trial.sequence) for trial in self.trials)):
            moving = [trial for trial in self.trials if len(trial.sequence) > number]
            for trial in moving:
                assert trial.served is not None
                self.writer.move(trial.served, step_to(trial.sequence[number], trial.served.state))
            self.settle()
            for trial in moving:
                trial.looks[named(trial.sequence[: number + 1])] = trial.look()

    def settle(self) -> None:
        """Watch until nothing has happened for a while."""
        end_s = self._clock.monotonic_s() + ROUND_S_MAX
        quiet_s = self._clock.monotonic_s() + QUIET_S
        while self._clock.monotonic_s() < min(quiet_s, end_s):
            if self._take_in():
                quiet_s = self._clock.monotonic_s() + QUIET_S
            self._clock.sleep(POLL_S)

    def turn(self) -> bool:
        """Take in what has happened; always true, for use in conditions."""
        self._take_in()
        return True

    def wait(self, holds: Callable[[], object], deadline_s: float, otherwise: str) -> None:
        """Wait until something holds."""
        end_s = self._clock.monotonic_s() + deadline_s
        while not holds():
            assert self._clock.monotonic_s() < end_s, f"{otherwise} after {deadline_s:g} s"
            self._clock.sleep(POLL_S)

    def next_request(self, trial: Trial, number: int) -> Served:
        """The request of the nth attempt, from 1, once Kueue has made it."""
        self.wait(lambda: self.turn() and len(trial.requests) >= number, READY_S, f"Kueue made no request {number} for {trial.job}")
        assert trial.served is not None
        return trial.served

    def _take_in(self) -> int:
        assert self._watches is not None
        changes = self._watches.drain()
        by_job = {trial.job: trial for trial in self.trials}
        by_workload = {trial.workload: trial for trial in self.trials if trial.workload}
        for change in changes:
            if change.kind == "deleted":
                continue
            if change.resource == WORKLOADS:
                owner = change.object["metadata"]["ownerReferences"][0]["name"]
                if owner in by_job:
                    trial = by_job[owner]
                    trial.workload = name_of(change.object)
                    by_workload[trial.workload] = trial
                    trial.see(change.object)
        for change in changes:
            found = by_workload.get(owner_of(change.object)) if change.resource == PROVISIONING_REQUESTS else None
            if found is not None and change.kind != "deleted" and uid_of(change.object) not in found.requests:
                found.requests.append(uid_of(change.object))
                found.served = Served(Course(asked_by(change.object), ProvisioningScript(), Cluster(), "dws-pool", seen_s=0.0))
        return len(changes)

    def _make(self, resource: Resource, body: Object) -> None:
        self._made.append((resource, name_of(body)))
        self.api.apply(resource, {"apiVersion": resource.api_version, **body})

    def _make_queue(self, name: str, context_name: str, context: Context) -> None:
        labels = {"nodeLabels": {POOL_LABEL: context.pool}} if context.pool else {}
        self._make(RESOURCE_FLAVORS, {"kind": "ResourceFlavor", "metadata": {"name": name}, "spec": labels})
        checks = self._make_checks(name, context_name, context) if context.is_checked else []
        flavor = {"name": name, "resources": [{"name": resource, "nominalQuota": 100} for resource in ("cpu", TPU_RESOURCE)]}
        group = {"coveredResources": ["cpu", TPU_RESOURCE], "flavors": [flavor]}
        spec: Object = {"namespaceSelector": {}, "resourceGroups": [group], "admissionChecks": checks}
        self._make(CLUSTER_QUEUES, {"kind": "ClusterQueue", "metadata": {"name": name}, "spec": spec})
        queue = {"apiVersion": LOCAL_QUEUES.api_version, "kind": "LocalQueue", "metadata": {"name": name}, "spec": {"clusterQueue": name}}
        self.api.apply(LOCAL_QUEUES, queue, NAME)

    def _make_checks(self, name: str, context_name: str, context: Context) -> list[str]:
        checks = [f"{NAME}-prov-{context_name}"]
        retries = {"backoffLimitCount": context.retries, "backoffBaseSeconds": context.base_s, "backoffMaxSeconds": 1800}
        spec: Object = {"provisioningClassName": PROVISIONING_CLASS, "retryStrategy": retries}
        self._make(PROVISIONING_CONFIGS, {"kind": "ProvisioningRequestConfig", "metadata": {"name": name}, "spec": spec})
        parameters = {"apiGroup": "kueue.x-k8s.io", "kind": "ProvisioningRequestConfig", "name": name}
        spec = {"controllerName": "kueue.x-k8s.io/provisioning-request", "parameters": parameters}
        self._make(ADMISSION_CHECKS, {"kind": "AdmissionCheck", "metadata": {"name": checks[0]}, "spec": spec})
        if context.is_held_back:
            checks.append(f"{NAME}-other-{context_name}")
            spec = {"controllerName": "chaos-harness/nobody"}
            self._make(ADMISSION_CHECKS, {"kind": "AdmissionCheck", "metadata": {"name": checks[1]}, "spec": spec})
            active = {"type": "Active", "status": "True", "reason": "Active", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
            self.api.patch(ADMISSION_CHECKS, checks[1], {"status": {"conditions": [active]}}, subresource="status")
        return checks

    def _are_active(self) -> bool:
        found = [self.api.get(CLUSTER_QUEUES, f"{NAME}-{context}") for context in self._contexts]
        return all(any(one["type"] == "Active" and one["status"] == "True" for one in conditions_of(queue or {})) for queue in found)

    def _job(self, trial: Trial) -> Object:
        pool = self._contexts[trial.context].pool
        requests = {"cpu": "1m"} | ({TPU_RESOURCE: "4"} if pool else {})
        resources = {"requests": requests, "limits": {TPU_RESOURCE: "4"} if pool else {}}
        container = {"name": "nothing", "image": self._image, "command": ["sleep", "600"], "resources": resources}
        selector = {} if pool else {NAME: "nowhere"}
        tolerations = [{"key": key, "operator": "Exists"} for key in (TPU_TAINT, QUEUED_TAINT)]
        pod = {
            "restartPolicy": "Never",
            "nodeSelector": selector,
            "tolerations": tolerations,
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        }
        labels = {"kueue.x-k8s.io/queue-name": f"{NAME}-{trial.context}"}
        return {
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": {"name": trial.job, "labels": labels},
            "spec": {"suspend": True, "template": {"spec": pod}},
        }


def take_record(cluster: KindCluster) -> Record:
    """Run every sequence in every context."""
    with KueueTrials(cluster, CONTEXTS) as trials:
        for context in CONTEXTS:
            trials.begin(sequences_in(context), context)
        trials.run()
        looks: dict[str, dict[str, Look]] = {context: {} for context in CONTEXTS}
        for trial in trials.trials:
            looks[trial.context] |= trial.looks
    return Record(kueue=cluster.versions["kueue"], looks=looks)


def sequences_in(context: str) -> list[tuple[State, ...]]:
    """All of them where nothing else decides; elsewhere those that do not wait, for waiting changes nothing of what follows."""
    every = legal_sequences()
    return every if context == "admitted" else [sequence for sequence in every if len(set(sequence)) == len(sequence)]


def read_record() -> Record:
    """The run that the manual shows."""
    return msgspec.json.decode(RECORD.read_bytes(), type=Record)


def write_record(record: Record) -> None:
    """Keep a run."""
    RECORD.write_text(json.dumps(msgspec.to_builtins(record), indent=1, sort_keys=True) + "\n")
