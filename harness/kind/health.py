"""What keeps the cluster from being used: its record, its machines, its silence, its operators. Each in one sentence with what to do."""

from collections.abc import Callable

from harness.clock import Clock
from harness.kind.cache import has_state
from harness.kind.cluster import API_S, CLUSTER_NAME, KindCluster, cluster_uid, kubectl, problem_with_record
from harness.kind.commands import CommandFailedError
from harness.kind.nodes import NodeState, control_plane_name, machine_states
from harness.kind.operators import OPERATORS

UP = "run `harness up kind`"
ANEW = "run `harness down kind`, then `harness up kind`"

ANSWER_S = 60.0
"""A killed API server is back after 5 to 30 s."""

OPERATORS_S = 120.0
"""Kueue restarts when it has lost the API server: it is ready 20 to 40 s after that, on a machine that is busy later."""

ASKED_EVERY_S = 1.0


def problem_with(cluster: KindCluster | None) -> str:
    """Why the cluster cannot be used, with what to do; nothing when it can.

    Raises:
        OSError: Never; what cannot be read is a problem of the cluster.
    """
    if cluster is None:
        return f"the cluster {CLUSTER_NAME} is only half up or half down; {UP}" if has_state(CLUSTER_NAME) else f"no cluster is up; {UP}"
    return problem_for_good(cluster) or _problem_with_answer(cluster)


def problem_for_good(cluster: KindCluster) -> str:
    """What does not pass by itself: another version, or a machine that is gone. Nothing when Docker does not say."""
    problem = problem_with_record(cluster)
    if problem:
        return problem
    states = machine_states(cluster)
    gone = [name for name, state in states.items() if state is None]
    if gone:
        return f"of the cluster {cluster.name} the containers {', '.join(gone)} are gone; {UP}, which makes it again"
    state = states.get(control_plane_name(cluster), NodeState.RUNNING)
    return f"the control plane of the cluster {cluster.name} is {state}; {UP}" if state is not NodeState.RUNNING else ""


def problem_with_operators(cluster: KindCluster) -> str:
    """Which of Kueue and KubeRay is not ready, as one that was scaled to none; nothing when both are."""
    columns = 'jsonpath={range .items[*]}{.metadata.namespace} {.metadata.name} {.status.availableReplicas}{"\\n"}{end}'
    try:
        listed = kubectl(cluster, "get", "deployments", "--all-namespaces", "--output", columns, deadline_s=API_S)
    except CommandFailedError as error:
        return f"the cluster {cluster.name} does not say whether Kueue and KubeRay are ready: {error}; {UP}"
    available = {tuple(words[:2]) for line in listed.splitlines() if len(words := line.split()) == 3 and words[2] != "0"}
    lacking = [f"{name} in {namespace}" for namespace, name in OPERATORS if (namespace, name) not in available]
    return f"of the cluster {cluster.name} the deployment {' and '.join(lacking)} is not ready; {UP}" if lacking else ""


def lasting_problem(cluster: KindCluster | None, clock: Clock) -> str:
    """As ``problem_with``, but told from the silence of a moment: a run beside us may have killed its API server just now.

    One that does not answer is asked again for a while, as long as its machines are there.
    """
    return _lasting(lambda: problem_with(cluster), lambda: cluster is None or bool(problem_for_good(cluster)), clock, patience_s=ANSWER_S)


def lasting_problem_with_operators(cluster: KindCluster, clock: Clock) -> str:
    """As ``problem_with_operators``, asked again for a while. Only for who has the turn: a run beside us may have killed one."""
    return _lasting(lambda: problem_with_operators(cluster), lambda: False, clock, patience_s=OPERATORS_S)


def _lasting(ask: Callable[[], str], is_for_good: Callable[[], bool], clock: Clock, *, patience_s: float) -> str:
    """The problem that is there still after a while, or that does not pass by itself; empty when it has passed."""
    end_s = clock.monotonic_s() + patience_s
    while problem := ask():
        if is_for_good() or clock.monotonic_s() > end_s:
            break
        clock.sleep(ASKED_EVERY_S)
    return problem


def reason_and_advice(problem: str) -> tuple[str, str]:
    """A problem parted into what is wrong and what to do, for messages that say the two apart."""
    reason, _, advice = problem.rpartition("; ")
    return (reason, advice) if reason and advice.startswith("run `harness") else (problem, UP)


def _problem_with_answer(cluster: KindCluster) -> str:
    try:
        uid = cluster_uid(cluster)
    except CommandFailedError as error:
        return f"the cluster {cluster.name} does not answer: {error}; {UP}"
    if uid != cluster.uid:
        seen = f"its uid is {uid}, not {cluster.uid}"
        return f"another cluster answers in place of {cluster.name} ({seen}); {ANEW}"
    return ""
