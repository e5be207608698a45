"""What is wrong with a cluster for good, told from the silence of a moment: a run beside us may have killed its API server just now."""

from harness.clock import Clock
from harness.kind.cluster import KindCluster, problem_with, problem_with_record
from harness.kind.nodes import has_running_control_plane

ANSWER_S = 60.0
"""A killed API server is back after 5 to 30 s."""

ASKED_EVERY_S = 1.0


def lasting_problem(cluster: KindCluster | None, clock: Clock) -> str:
    """As ``problem_with``, but one that does not answer is asked again for a while, as long as its control plane runs."""
    end_s = clock.monotonic_s() + ANSWER_S
    while problem := problem_with(cluster):
        if cluster is None or problem_with_record(cluster) or clock.monotonic_s() > end_s or not has_running_control_plane(cluster):
            break
        clock.sleep(ASKED_EVERY_S)
    return problem
