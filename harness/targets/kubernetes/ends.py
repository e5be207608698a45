"""How pods ended, and who is behind it: by what was done before, not a guess from the code."""

from dataclasses import dataclass

from harness.history import Cause
from harness.targets.kubernetes.api import Object, conditions_of
from harness.targets.kubernetes.inventory import phase_of
from harness.targets.kubernetes.reading import KILLED, exit_code_of, signal_in

SIGKILL, SIGTERM = 9, 15

OWN_CODE_MAX = 128
"""Above it a code stands for a signal, or, as 255, for an end that the container runtime has not seen."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """The end of a pod; exactly one of ``exit_code`` and ``signal`` is set."""

    t_s: float
    exit_code: int | None
    signal: int | None
    cause: Cause

    @property
    def is_success(self) -> bool:
        """Whether it did what it was to do."""
        return self.exit_code == 0

    def __str__(self) -> str:
        return f"signal {self.signal}" if self.exit_code is None else f"exit code {self.exit_code}"


def end_of(pod: Object, t_s: float, *, is_deleted: bool, signalled_by: Cause | None, is_hurt: bool) -> End | None:
    """The end of a pod as the API has it; None while it has not ended.

    A pod that is gone and never said how its container ended was killed: its node died, or it was removed without grace.

    Args:
        pod: As it was seen last.
        t_s: Now.
        is_deleted: Whether the object is gone.
        signalled_by: Who has sent its processes a signal that ends them.
        is_hurt: Whether an injection took it, or its node, away.
    """
    if not is_deleted and phase_of(pod) not in ("Succeeded", "Failed"):
        return None
    code = exit_code_of(pod)
    number = SIGKILL if code is None else signal_in(code)
    cause = signalled_by or _cause(pod, code, is_hurt=is_hurt)
    return End(t_s=t_s, exit_code=None if number else code, signal=number, cause="job" if code == 0 else cause)


def _cause(pod: Object, code: int | None, *, is_hurt: bool) -> Cause:
    """Who took a pod away, if anybody did: a kill at the end of a grace that it had is the grace's.

    An exit that nobody had asked for is the job's, whatever was done to its node before.
    """
    metadata = pod["metadata"]
    is_disrupted = any(one["type"] == "DisruptionTarget" and one["status"] == "True" for one in conditions_of(pod))
    is_asked = bool(metadata.get("deletionTimestamp")) or is_disrupted
    if code is not None and 0 < code <= OWN_CODE_MAX and not is_asked:
        return "job"
    is_taken = is_hurt or is_asked
    if is_taken and code == KILLED and metadata.get("deletionGracePeriodSeconds"):
        return "grace"
    if is_hurt:
        return "fault"
    return "platform" if is_taken or code is None else "job"
