"""What a scenario promises, as data; what checks it is in ``harness.checkers``, one module a promise.

That every fault landed and that the history was fully recorded is expected always and need not be said.
"""

from typing import Literal

import msgspec

from harness.scenario.rules import positive, regular_expression, require


class Completes(msgspec.Struct, frozen=True, kw_only=True, tag="completes", tag_field="type", forbid_unknown_fields=True):
    """The durable step becomes the final step, within the deadline and the budget of attempts. Exit 0 alone is not completion.

    Outside the budget (``Scenario.within_budget`` false) a clean, bounded failure is owed instead: the execution ends by itself, as
    failed, after no more attempts than allowed, with the last good checkpoint intact.
    """


class ExitCodes(msgspec.Struct, frozen=True, kw_only=True, tag="exit-codes", tag_field="type", forbid_unknown_fields=True):
    """Attempts end with the codes of the contract.

    ``after_sigterm`` where SIGTERM was sent and grace sufficed, 0 where the job was done, and never 0 where it was not done.
    """

    after_sigterm: tuple[int, ...] = (143,)


class IntactCheckpoints(msgspec.Struct, frozen=True, kw_only=True, tag="intact-checkpoints", tag_field="type", forbid_unknown_fields=True):
    """No torn or foreign state is loaded, the last good checkpoint is never lost, retention keeps one, no incomplete step is restored."""


class ResumesFromNewestDurable(
    msgspec.Struct, frozen=True, kw_only=True, tag="resumes-from-newest-durable", tag_field="type", forbid_unknown_fields=True
):
    """Attempts after the first restore the newest durable, undamaged step, repeat no more than ``lost_steps_max`` steps and skip none.

    ``lost_steps_after_sigterm_max`` holds for attempts whose predecessor had its grace: there the final save is owed.
    """

    lost_steps_max: int
    lost_steps_after_sigterm_max: int | None = None

    def __post_init__(self) -> None:
        require(self.lost_steps_max >= 0, "lost_steps_max", self.lost_steps_max, "a number of steps >= 0")
        if self.lost_steps_after_sigterm_max is not None:
            require(
                self.lost_steps_after_sigterm_max >= 0,
                "lost_steps_after_sigterm_max",
                self.lost_steps_after_sigterm_max,
                "a number of steps >= 0",
            )


class BitExactResume(msgspec.Struct, frozen=True, kw_only=True, tag="bit-exact-resume", tag_field="type", forbid_unknown_fields=True):
    """Each part of the state at each step equals that of the uninterrupted run. ``parts`` empty: every part that the job reports."""

    parts: tuple[str, ...] = ()


class ExactlyOnceData(msgspec.Struct, frozen=True, kw_only=True, tag="exactly-once-data", tag_field="type", forbid_unknown_fields=True):
    """The samples of the retained steps are those of the uninterrupted run, each once, in the same order."""


class WithinRetries(msgspec.Struct, frozen=True, kw_only=True, tag="within-retries", tag_field="type", forbid_unknown_fields=True):
    """No more than ``attempts_max`` attempts a task; each retry is explained by an injected death or as one of ``own_failures_max``."""

    attempts_max: int
    own_failures_max: int = 0

    def __post_init__(self) -> None:
        require(self.attempts_max >= 1, "attempts_max", self.attempts_max, "at least one attempt")
        require(self.own_failures_max >= 0, "own_failures_max", self.own_failures_max, "a number >= 0")


class GraceConduct(msgspec.Struct, frozen=True, kw_only=True, tag="grace-conduct", tag_field="type", forbid_unknown_fields=True):
    """After SIGTERM: noticed, saved, durable, gone, with ``margin_s_min`` seconds of the grace left; no new periodic save begins."""

    margin_s_min: float = 0.0
    saves: bool = True

    def __post_init__(self) -> None:
        positive("margin_s_min", self.margin_s_min, zero_allowed=True)


class SingleWriter(msgspec.Struct, frozen=True, kw_only=True, tag="single-writer", tag_field="type", forbid_unknown_fields=True):
    """Once a newer attempt trains, no older one commits a checkpoint."""


class MakesProgress(msgspec.Struct, frozen=True, kw_only=True, tag="makes-progress", tag_field="type", forbid_unknown_fields=True):
    """No more than ``cycles_max`` consecutive attempts end without a higher durable step, nor by the same death after the same step."""

    cycles_max: int = 2

    def __post_init__(self) -> None:
        require(self.cycles_max >= 1, "cycles_max", self.cycles_max, "at least 1")


class NoHang(msgspec.Struct, frozen=True, kw_only=True, tag="no-hang", tag_field="type", forbid_unknown_fields=True):
    """No live rank is silent for ``quiet_s`` seconds. Our own watchdog: no layer below gives one (Ray and JAX wait for ever)."""

    quiet_s: float = 30.0

    def __post_init__(self) -> None:
        positive("quiet_s", self.quiet_s)


class LogOrder(msgspec.Struct, frozen=True, kw_only=True, tag="log-order", tag_field="type", forbid_unknown_fields=True):
    """Lines that match ``patterns`` appear in this order (others may stand between); system lines and the job's alike.

    A line is searched in its first 4,096 characters.
    """

    patterns: tuple[str, ...]

    def __post_init__(self) -> None:
        require(bool(self.patterns), "patterns", self.patterns, "at least one regular expression")
        for pattern in self.patterns:
            regular_expression("patterns", pattern)


class Goodput(msgspec.Struct, frozen=True, kw_only=True, tag="goodput", tag_field="type", forbid_unknown_fields=True):
    """Bounds on the ledger of time; the ledger itself is kept in every run, and adds up to the wall time or the finding is unknown."""

    ratio_min: float = 0.0
    recovery_s_max: float | None = None

    def __post_init__(self) -> None:
        require(0 <= self.ratio_min <= 1, "ratio_min", self.ratio_min, "a ratio, 0 <= x <= 1")
        if self.recovery_s_max is not None:
            positive("recovery_s_max", self.recovery_s_max)


class SavesAtCadence(msgspec.Struct, frozen=True, kw_only=True, tag="saves-at-cadence", tag_field="type", forbid_unknown_fields=True):
    """In every attempt each executed multiple of ``every`` is committed, after a resume too; up to ``missed_max`` saves may fail."""

    every: int
    missed_max: int = 0

    def __post_init__(self) -> None:
        require(self.every >= 1, "every", self.every, "at least 1 step")
        require(self.missed_max >= 0, "missed_max", self.missed_max, "a number >= 0")


class SameResult(msgspec.Struct, frozen=True, kw_only=True, tag="same-result", tag_field="type", forbid_unknown_fields=True):
    """The result file of the workload equals, byte for byte, that of the uninterrupted run."""


class RanksAgree(msgspec.Struct, frozen=True, kw_only=True, tag="ranks-agree", tag_field="type", forbid_unknown_fields=True):
    """All ranks of an incarnation restore one step."""


WATCHED_S = 10.0
"""For how long nothing must have changed before a deadline is taken for the end of it. Kueue answers within a second, the emulated
autoscalers within five, and a pod that replaces a failed one comes after ten."""


class AdmittedTo(msgspec.Struct, frozen=True, kw_only=True, tag="admitted-to", tag_field="type", forbid_unknown_fields=True):
    """By task, the flavors to which its chips were admitted, admission by admission: on-demand first, then dws.

    ``within_s``: an admission that follows an eviction, or the first after the submission, comes no later; 0: whenever. ``watched_s``: that
    no other one comes is proved only where the workload has finished, or has stood where it stands for so long at the deadline.
    """

    flavors: tuple[tuple[str, ...], ...]
    within_s: float = 0.0
    watched_s: float = WATCHED_S

    def __post_init__(self) -> None:
        require(bool(self.flavors), "flavors", self.flavors, "the flavors of at least one task")
        positive("within_s", self.within_s, zero_allowed=True)
        positive("watched_s", self.watched_s)


class SubmittedOnce(msgspec.Struct, frozen=True, kw_only=True, tag="submitted-once", tag_field="type", forbid_unknown_fields=True):
    """Each task is one object for the whole run: whatever happens to it, nobody submits it again."""


class SameRun(msgspec.Struct, frozen=True, kw_only=True, tag="same-run", tag_field="type", forbid_unknown_fields=True):
    """The job goes on in the run that it began: its durable step never falls, and no second run directory appears beside the first."""


class ConsumesProvisioning(
    msgspec.Struct, frozen=True, kw_only=True, tag="consumes-provisioning", tag_field="type", forbid_unknown_fields=True
):
    """Hosts that run on provisioned capacity, or wait for it, carry both annotations that tie them to their ProvisioningRequest.

    Without them GKE reclaims the nodes when the booking is over.
    Source: kueue, pkg/controller/admissionchecks/provisioning (podSetUpdates); a public DWS runbook (case 61).
    """


class WorkloadEnds(msgspec.Struct, frozen=True, kw_only=True, tag="workload-ends", tag_field="type", forbid_unknown_fields=True):
    """Where Kueue's workload of each task stands at the end of the run.

    ``finished``; ``admitted`` (still holding its quota); ``pending`` (waiting in the queue or for a check, with ``message`` found in what
    its conditions and checks say); ``deactivated`` (which nothing undoes by itself). ``watched_s``: one other than ``finished`` is
    proved only where the workload has stood there for so long at the deadline.
    """

    state: Literal["finished", "admitted", "pending", "deactivated"] = "finished"
    message: str = ""
    watched_s: float = WATCHED_S

    def __post_init__(self) -> None:
        regular_expression("message", self.message)
        positive("watched_s", self.watched_s)


class ChargesRetries(msgspec.Struct, frozen=True, kw_only=True, tag="charges-retries", tag_field="type", forbid_unknown_fields=True):
    """At most ``failed_max`` failures are charged to the retry budget of the submitted object; evictions by Kueue are charged to none."""

    failed_max: int = 0

    def __post_init__(self) -> None:
        require(self.failed_max >= 0, "failed_max", self.failed_max, "a number >= 0")


class LeavesNothing(msgspec.Struct, frozen=True, kw_only=True, tag="leaves-nothing", tag_field="type", forbid_unknown_fields=True):
    """When the job is over nothing of it is left in the cluster: no RayCluster, no pod that runs, no request that waits, no quota reserved.

    Kueue's own books are read for that as well. Nodes that came for it are the autoscaler's to take away, and are not looked at.
    """


class RecoversWithin(msgspec.Struct, frozen=True, kw_only=True, tag="recovers-within", tag_field="type", forbid_unknown_fields=True):
    """From each fault to the first new step it takes no longer than ``total_s``; told in parts.

    The parts: detect, requeue, provision, start, restore, compile.
    """

    total_s: float

    def __post_init__(self) -> None:
        positive("total_s", self.total_s)


Expectation = (
    Completes
    | ExitCodes
    | IntactCheckpoints
    | ResumesFromNewestDurable
    | BitExactResume
    | ExactlyOnceData
    | WithinRetries
    | GraceConduct
    | SingleWriter
    | MakesProgress
    | NoHang
    | LogOrder
    | Goodput
    | SavesAtCadence
    | SameResult
    | RanksAgree
    | AdmittedTo
    | SubmittedOnce
    | SameRun
    | ConsumesProvisioning
    | WorkloadEnds
    | ChargesRetries
    | LeavesNothing
    | RecoversWithin
)


def name_of(expectation: Expectation) -> str:
    """The expectation's name in documents and reports, like ``bit-exact-resume``."""
    return str(expectation.__struct_config__.tag)
