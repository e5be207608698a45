"""A simulator of what Google runs behind ProvisioningRequests of class ``queued-provisioning.gke.io``: the cluster autoscaler and DWS.

It writes the conditions that GKE writes, in GKE's order, by the scenario's script, and makes the nodes of the queued pool come and go with
them. What it does not play is written in docs/dws.md.

Source: module k8s.io/gke-autoscaling/cluster-autoscaler, packages provisioningrequests/{manager,reconciler,scaleup,processors}.
"""

from collections.abc import Callable

from harness.clock import Clock
from harness.history import Event, PoolScaled
from harness.scenario import Cluster
from harness.targets.kubernetes.api import NOT_FOUND, POD_TEMPLATES, PROVISIONING_REQUESTS, Api, ApiError, Object, uid_of
from harness.targets.kubernetes.dws_course import Step
from harness.targets.kubernetes.dws_intake import Intake
from harness.targets.kubernetes.dws_nodes import IDLE_S, RequestNodes
from harness.targets.kubernetes.dws_owners import Owners
from harness.targets.kubernetes.dws_reasons import PODS_FIT_NOWHERE, POOL_SIZE_REACHED, STOCKOUT, explain_failure
from harness.targets.kubernetes.dws_requests import Asked, chips_of, nodes_needed
from harness.targets.kubernetes.dws_served import Served, StatusWriter
from harness.targets.kubernetes.dws_states import State
from harness.targets.kubernetes.pools import DWS_POOL, NodePools
from harness.targets.kubernetes.watching import Change

LOOP_S = 1.0
"""One look of the autoscaler. GKE's takes ten seconds and more; scenarios last seconds."""

UPDATES_A_LOOP_MAX = 10
"""Accepted requests whose message is renewed in one look: with more in the queue the texts lag.
Source: GKE's autoscaler, package reconciler, defaultAcceptedProvReqUpdatesLimit."""

NO_ROOM_S = 120.0
"""A new request that no pool can serve is looked at again for so long before it fails.
Source: GKE's autoscaler, package scaleup, pendingProvisioningRequestRetryPeriod."""

UNANSWERED_S = 1.0
"""An API server that restarts is asked again after so long."""


class DwsSimulator:
    """Serves the requests of one namespace: ``see`` every change, ``tick`` often. Neither waits for a machine."""

    def __init__(
        self,
        api: Api,
        pools: NodePools,
        clock: Clock,
        *,
        namespace: str,
        cluster: Cluster,
        task_of: Callable[[Object], int | None],
        pool: str = DWS_POOL,
    ) -> None:
        """Make it.

        Args:
            api: The cluster.
            pools: Its machines.
            clock: For the times of conditions.
            namespace: Whose requests are served.
            cluster: The scripts, and how long capacity is booked and lasts.
            task_of: The task that an object belongs to, as far as it is known. A request of no task's is granted at once.
            pool: The queued pool.

        Raises:
            UnknownNameError: When there is no such pool.
        """
        self._api, self._pools, self._writer = api, pools, StatusWriter(api, clock)
        self._namespace, self._pool = namespace, pools.pool(pool)
        self._intake = Intake(cluster, Owners(api, task_of), pool)
        self._nodes = RequestNodes(api, pools, namespace=namespace, pool=pool)
        self._served: dict[str, Served] = {}
        self._loop_s, self._updates, self._now_s = 0.0, 0, 0.0
        self._events: list[Event] = []

    def see(self, change: Change) -> None:
        """Take note of a change of a request, a pod or a node; others are passed over."""
        thing = change.object
        if change.resource != PROVISIONING_REQUESTS:
            self._nodes.see(change)
        elif thing["metadata"].get("namespace") == self._namespace:
            if change.kind == "deleted":
                self._forget(uid_of(thing))
            else:
                self._intake.see(thing, self._now_s)

    def tick(self, now_s: float) -> list[Event]:
        """Let every request take its next step, if one is due, and say what the pool could not do.

        Raises:
            ApiError: When the API server refuses what GKE would write.
        """
        self._now_s = now_s
        if now_s >= self._loop_s + LOOP_S:
            self._loop_s, self._updates = now_s, 0
        for served in self._intake.ready(now_s):
            self._served[served.asked.uid] = served
            self._nodes.names.add(served.asked.name)
        for served in sorted(self._served.values(), key=lambda served: served.course.phase_s):  # who has waited longest comes first
            if now_s >= served.quiet_until_s:
                self._attend(served)
        events, self._events = self._events, []
        return events

    def revoke(self, name: str) -> tuple[str, ...]:
        """Play the end of a request's maximum run time now; returns the nodes that go.

        GKE declares the end only of a request whose booking is over: both are said at once, so that Kueue takes it for nothing else.

        Raises:
            LookupError: When no request of that name is provisioned.
            ApiError: When the API server does not take it.
        """
        served = self._named(name)
        if served is None or served.state not in {State.PROVISIONED, State.BOOKING_EXPIRED}:
            seen = "there is none" if served is None else f"it is {served.state}"
            raise LookupError(f"ProvisioningRequest {name!r} has no capacity to revoke: {seen}")
        nodes = served.nodes
        steps = [Step(State.BOOKING_EXPIRED)] if served.state == State.PROVISIONED else []
        self._revoke(served, *steps, Step(State.CAPACITY_REVOKED))
        return nodes

    def nodes_of(self, name: str) -> tuple[str, ...]:
        """Nodes of the request of that name; none when it has none."""
        served = self._named(name)
        return () if served is None else served.nodes

    def _named(self, name: str) -> Served | None:
        return next((served for served in self._served.values() if served.asked.name == name and not served.is_deleted), None)

    def _forget(self, uid: str) -> None:
        """A request was deleted: what is left of it are its nodes."""
        self._intake.forget(uid)
        if uid in self._served:
            self._served[uid].is_deleted = True

    def _attend(self, served: Served) -> None:
        """Serve a request; one that is gone was deleted, and a server that does not answer is asked again later."""
        try:
            self._serve(served)
        except ApiError as error:
            if error.status == NOT_FOUND:
                self._forget(served.asked.uid)
            elif error.is_passing:
                served.quiet_until_s = self._now_s + UNANSWERED_S
            else:
                raise

    def _serve(self, served: Served) -> None:
        self._nodes.note_use(served, self._now_s)
        if served.is_deleted:
            self._clear(served)
            return
        self._nodes.label(served)
        if served.state == State.BOOKING_EXPIRED:
            self._nodes.reclaim(served, self._now_s, idle_s=IDLE_S, why="the booking is over and no pod of it is there")
        steps = served.course.next_steps(served.state, self._now_s)
        if steps:
            self._take(served, *steps)

    def _clear(self, served: Served) -> None:
        """See to the nodes of a request that was deleted: nobody new can use them, but who is there may stay."""
        self._nodes.reclaim(served, self._now_s, idle_s=0.0, why="it was deleted")
        if not served.nodes:
            del self._served[served.asked.uid]

    def _take(self, served: Served, *steps: Step) -> None:
        first, last = steps[0], steps[-1]
        if first.state == State.ACCEPTED and served.state == State.PENDING:
            self._accept(served)
        elif first.state == State.ACCEPTED:
            self._explain(served, first)
        elif first.state == State.PROVISIONED:
            self._grant(served, *steps)
        elif last.state == State.CAPACITY_REVOKED:
            self._revoke(served, *steps)
        else:
            self._move(served, *steps)
            if last.state == State.FAILED:
                self._nodes.release(served, served.nodes, "it failed")  # they were still on their way

    def _accept(self, served: Served) -> None:
        """Queue a request that the pool has room for; one without is looked at again for a while, and then fails."""
        pods = self._chips(served.asked)
        if pods is None:
            return
        needed = nodes_needed(pods, self._pool.tpu_chips)
        if needed is not None and needed <= self._pools.spare(self._pool.name):
            served.needed = needed
            self._writer.assign(served, self._pool)
            self._move(served, Step(State.ACCEPTED))
            return
        explanation = explain_failure(PODS_FIT_NOWHERE if needed is None else POOL_SIZE_REACHED, pool=self._pool.name)
        is_over = self._now_s >= served.course.seen_s + NO_ROOM_S
        self._move(served, Step(State.FAILED if is_over else State.PENDING, explanation))

    def _chips(self, asked: Asked) -> list[int] | None:
        """Chips of each pod that is asked for; None while a template is not there, which Kueue makes beside the request."""
        pods: list[int] = []
        for name, count in asked.templates:
            template = self._api.get(POD_TEMPLATES, name, asked.namespace)
            if template is None:
                return None
            pods += [chips_of(template["template"]["spec"])] * count
        return pods

    def _explain(self, served: Served, step: Step) -> None:
        if self._updates < UPDATES_A_LOOP_MAX:
            self._updates += 1
            self._move(served, step)

    def _grant(self, served: Served, *steps: Step) -> None:
        """Let the nodes come, and say so when all are there with their label. What others have taken meanwhile is waited for."""
        if not served.nodes and self._pools.spare(self._pool.name) < served.needed:
            self._say(served, Step(State.ACCEPTED, STOCKOUT))
        elif not served.nodes:
            self._nodes.grow(served)
        elif self._nodes.are_there(served):
            self._move(served, *steps)

    def _revoke(self, served: Served, *steps: Step) -> None:
        self._move(served, *steps)
        self._nodes.release(served, served.nodes, "its capacity was revoked")

    def _move(self, served: Served, *steps: Step) -> None:
        before = served.state
        self._say(served, *steps)
        for step in steps:
            served.course.took(step, before, self._now_s)
            before = step.state

    def _say(self, served: Served, *steps: Step) -> None:
        """Write steps, and note for the history what the pool could not do."""
        before = served.conditions
        self._writer.move(served, *steps)
        for explanation in (step.explanation for step in steps if served.conditions != before):
            if explanation is not None:
                why = f"ProvisioningRequest {served.asked.name}: {explanation.message}"
                nodes = self._pools.size(self._pool.name)
                self._events.append(PoolScaled(t_s=self._now_s, pool=self._pool.name, nodes=nodes, why=why, error=explanation.reason))
