"""Whether the cluster target can be used here; starts nothing, and needs neither a cluster nor the Kubernetes client to say no."""

from importlib.util import find_spec

from harness.clock import SystemClock
from harness.kind import find_cluster, lasting_problem, reason_and_advice

INSTALL_ADVICE = "install the extra: pip install 'chaos-harness[kind]'"


def problem_and_advice() -> tuple[str, str]:
    """Why it cannot be used, and what to do; both empty when it can. One whose API server a run beside us has killed is waited for."""
    if find_spec("kubernetes") is None:
        return "the Python package kubernetes is not installed", INSTALL_ADVICE
    problem = lasting_problem(find_cluster(), SystemClock())
    return reason_and_advice(problem) if problem else ("", "")
