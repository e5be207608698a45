"""When the job is over nothing of it is left in the cluster: no RayCluster, no pod that runs, no quota that is still taken."""

from harness.checkers.cluster import unseen
from harness.checkers.evidence import Evidence, Ruling
from harness.history import ClusterLeft
from harness.scenario.expectations import LeavesNothing
from harness.verdict import Finding

CHECKER = "leaves-nothing"


def check(_expectation: LeavesNothing, evidence: Evidence) -> Finding:
    """Take what the look after the end found; without one nothing is known."""
    ruling = Ruling()
    ruling.doubt_lost(evidence.lost("cluster"))
    looked = evidence.of_type(ClusterLeft)
    left = [event for event in looked if event.what != "none"]
    ruling.broken += [_told(event) for event in left]
    ruling.measures = {"left": float(len(left))}
    nothing = "" if looked else "nobody looked at what was left in the cluster: " + unseen("no such look", evidence)
    return ruling.conclude(CHECKER, "the look after the end found nothing of the job in the cluster", nothing=nothing)


def _told(left: ClusterLeft) -> str:
    detail = f" ({left.detail})" if left.detail else ""
    return f"{left.what} {left.name} was left at {left.t_s:.2f} s{detail}"
