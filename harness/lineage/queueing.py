"""A task in the queue of a cluster: what its workload went through, stay by stay, and each admission among them.

An admission lasts from the condition ``Admitted`` to the eviction, the deactivation or the end of the workload; another flavor without an
eviction in between is another admission, of which the eviction was not seen. An elastic job is a chain of workloads (slices): as long as
one of them is admitted, the task is.

Source: kueue v0.17.0, apis/kueue (workload_types.go) and pkg/workload: ``Evicted`` stays true until quota is reserved again, ``Requeued``
is false during a back-off, ``spec.active`` is false once a check has rejected the workload.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from harness.history import CheckState, ConditionState, WorkloadSeen

StayState = Literal["queued", "backoff", "checking", "admitted", "evicting", "deactivated", "finished"]
"""``queued``: without quota; ``backoff``: not yet back in the queue; ``checking``: quota reserved, a check is not ready; ``evicting``: its
pods are being stopped."""

HOLDING: tuple[StayState, ...] = ("checking", "admitted", "evicting")
"""States in which quota is taken."""

_PRECEDENCE: tuple[StayState, ...] = ("admitted", "evicting", "checking", "backoff", "queued", "deactivated", "finished")
"""Of several workloads of one task the first of these is what the task does."""

OTHER_POD_SETS = frozenset({"head", "submitter"})
"""Pod sets of a RayJob that ask for no chips, as KubeRay's integration in Kueue names them; all others are hosts."""


class Stay(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A time that the task spent in one state.

    Attributes:
        end_s: When the next state was seen; None for the last one.
        flavor: That its chips were assigned; several joined by ``+``; empty without quota.
        notes: What the cluster said of it meanwhile, each text once, with when it was first seen.
        has_checks: Whether some admission check belongs to its flavor: the capacity is provisioned for it.
    """

    state: StayState
    begin_s: float
    end_s: float | None
    flavor: str = ""
    notes: tuple[tuple[float, str], ...] = ()
    has_checks: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """One admission of a task.

    Attributes:
        number: From 0.
        asked_s: Since when the task had waited: from its submission, or the end of the admission before.
        admitted_s: When it was admitted.
        ended_s: When that ended; None when it lasted to the end of the history.
        flavor: That its chips were assigned.
        is_provisioned: Whether an admission check has brought the capacity.
        end: What ended it, in the cluster's words.
    """

    number: int
    asked_s: float
    admitted_s: float
    ended_s: float | None
    flavor: str
    is_provisioned: bool
    end: str = ""

    @property
    def waited_s(self) -> float:
        """From asking to admission."""
        return self.admitted_s - self.asked_s


def state_of(seen: WorkloadSeen) -> StayState:
    """The state that a workload is in; ``Requeued`` speaks of a deactivation for a moment after it was undone, which is no back-off."""
    if seen.holds("Finished"):
        return "finished"
    if not seen.is_active:
        return "deactivated"
    has_quota = seen.holds("QuotaReserved") or seen.holds("Admitted")
    if seen.holds("Evicted") and has_quota:
        return "evicting"
    if seen.holds("Admitted"):
        return "admitted"
    if seen.holds("QuotaReserved"):
        return "checking"
    requeued = seen.condition("Requeued")
    is_put_off = requeued is not None and requeued.status == "False" and not requeued.reason.startswith("Deactivated")
    return "backoff" if is_put_off else "queued"


def flavor_of(seen: WorkloadSeen) -> str:
    """The flavor that the chips of its hosts were assigned; empty without quota."""
    hosts = {flavor for name, flavor in seen.flavors.items() if name not in OTHER_POD_SETS}
    return "+".join(sorted(hosts or set(seen.flavors.values())))


def note_of(seen: WorkloadSeen) -> str:
    """What the cluster says of the state that a workload is in; empty where it speaks of an earlier one.

    ``Evicted`` keeps the message of the last eviction with "Previously: " before it, and ``QuotaReserved`` is renewed with that message
    until the queue has looked at the workload again.

    Source: kueue v0.17.0, pkg/workload (workload.go): resetActiveCondition, UnsetQuotaReservationWithCondition.
    """
    state = state_of(seen)
    evicted, reserved = seen.condition("Evicted"), seen.condition("QuotaReserved")
    if state == "checking":
        return "; ".join(_told_check(check) for check in seen.checks if check.state != "Ready")
    if state in ("evicting", "backoff", "deactivated"):
        return _told(evicted) if seen.holds("Evicted") else ""
    if state == "finished":
        return _told(seen.condition("Finished"))
    is_stale = reserved is not None and seen.holds("Evicted") and evicted is not None and reserved.message == evicted.message
    return _told(reserved) if state == "queued" and not is_stale else ""


def _told(condition: ConditionState | None) -> str:
    if condition is None:
        return ""
    return f"{condition.reason}: {condition.message}" if condition.reason and condition.message else condition.reason or condition.message


def _told_check(check: CheckState) -> str:
    return f"{check.name} {check.state}" + (f": {check.message}" if check.message else "")


def read_stays(seen: Iterable[WorkloadSeen]) -> tuple[Stay, ...]:
    """Follow the workloads of one task; ``seen`` is in order of time. One that was deleted and made anew has the name of the one before."""
    stays: list[Stay] = []
    current: dict[str, WorkloadSeen] = {}
    for event in seen:
        current[event.name] = event
        shown = min(reversed(current.values()), key=lambda each: _PRECEDENCE.index(state_of(each)))
        _take(stays, shown, event.t_s)
    return tuple(stays)


def _take(stays: list[Stay], shown: WorkloadSeen, t_s: float) -> None:
    state, flavor, note = state_of(shown), flavor_of(shown), note_of(shown)
    notes = ((t_s, note),) if note else ()
    before = stays[-1] if stays else None
    if before is not None and before.state == state and flavor in (before.flavor, ""):
        if note and note not in {text for _, text in before.notes}:
            stays[-1] = msgspec.structs.replace(before, notes=before.notes + notes)
        return
    if before is not None:
        stays[-1] = msgspec.structs.replace(before, end_s=t_s)
    stays.append(Stay(state=state, begin_s=t_s, end_s=None, flavor=flavor, notes=notes, has_checks=bool(shown.checks)))


def read_admissions(stays: Sequence[Stay], submitted_s: float | None) -> Iterator[Admission]:
    """The admissions among stays; ``submitted_s`` is when the object was first seen, None when it never was."""
    number = 0
    asked_s = min(stays[0].begin_s, submitted_s if submitted_s is not None else stays[0].begin_s) if stays else 0.0
    for index, stay in enumerate(stays):
        if stay.state != "admitted":
            continue
        after = stays[index + 1] if index + 1 < len(stays) else None
        yield Admission(
            number=number,
            asked_s=asked_s,
            admitted_s=stay.begin_s,
            ended_s=stay.end_s,
            flavor=stay.flavor,
            is_provisioned=stay.has_checks,
            end=_end_of(after),
        )
        number, asked_s = number + 1, stay.end_s if stay.end_s is not None else stay.begin_s


def _end_of(after: Stay | None) -> str:
    if after is None:
        return ""
    if after.state == "admitted":
        return f"admitted to {after.flavor}; the eviction before it was not seen"
    told = {"finished": "finished", "deactivated": "deactivated"}.get(after.state, "evicted")
    said = after.notes[0][1] if after.notes else ""
    if said.startswith("Deactivated: "):
        return f"deactivated: {said.removeprefix('Deactivated: ')}"  # its reason is the word itself
    return f"{told}: {said}" if said else told


def by_task(seen: Iterable[WorkloadSeen]) -> Mapping[int, Sequence[WorkloadSeen]]:
    """What was seen, of each task in order of time."""
    tasks: dict[int, list[WorkloadSeen]] = {}
    for event in seen:
        tasks.setdefault(event.task, []).append(event)
    return {task: sorted(events, key=lambda event: event.t_s) for task, events in tasks.items()}
