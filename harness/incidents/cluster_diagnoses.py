"""Diagnoses of a job on a cluster: what it waited for, what took its place away, and whether it came back.

Source: facts of the guide for TPU training that falls back to DWS flex-start; ``harness.incidents.cluster_words``.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from harness.history import ClusterEventSeen, Event, PoolScaled, ProvisioningSeen, SubmissionSeen, WorkloadSeen
from harness.incidents.advice import ADVICE
from harness.incidents.cadence import Cadence
from harness.incidents.cluster_words import (
    AUTOSCALER_ERRORS,
    EVICTED_PREFIX,
    INSTANCE_EVENTS,
    MAINTENANCE,
    NO_QUOTA,
    OUT_OF_MEMORY,
    PREEMPTED_REASONS,
    PROJECT_QUOTA,
    STOCKOUT,
)
from harness.incidents.completion import finished_as
from harness.incidents.continuity import diagnose_continuity
from harness.incidents.diagnosis import Certainty, Diagnosis, DiagnosisKind, evidence_of
from harness.incidents.entries import Entry
from harness.incidents.execution_diagnoses import RETRY_WAIT_S
from harness.incidents.finishes import diagnose_finish
from harness.incidents.progress import Progress
from harness.incidents.resumes import diagnose_resumes, diagnose_saves
from harness.incidents.sightings import Seen
from harness.incidents.timeline import Timeline
from harness.verdict import Outcome

_LIMITS_REACHED = frozenset({"BackoffLimitExceeded"})


def diagnose_cluster(timeline: Timeline) -> list[Diagnosis]:
    """Everything that the entries show of a job on a cluster, but whether all is well."""
    case = _Case(timeline)
    found = [*_quota(case), *_fallback(case), *_stockout(case), *_evictions(case), *_machines(case), *_revoked(case), *_ends(case)]
    stories, cadence = timeline.attempts, Cadence(Progress(timeline))
    for index, story in enumerate(stories):
        found += diagnose_saves(story, stories[index + 1 :], is_over=index + 1 < len(stories))
        found += diagnose_resumes(stories[:index], story)
        found += diagnose_continuity(stories[:index], story, cadence)
        found += diagnose_finish(stories, story, cadence)
    return found


@dataclass(frozen=True)
class _Case:
    """The time-line, asked for what follows a moment."""

    timeline: Timeline

    @cached_property
    def events(self) -> Sequence[Seen]:
        """Kubernetes events, and those of machines."""
        return [each for each in self.timeline.seen if isinstance(each.event, ClusterEventSeen)]

    @cached_property
    def waits(self) -> Sequence[tuple[Entry, str]]:
        """All that says why something is waited for, with its words: events, checks, conditions of requests."""
        return [(each.entry, text) for each in self.timeline.seen for text in _messages(each.event)]

    def admitted_after(self, entry: Entry) -> Entry | None:
        """The next admission."""
        return self._next(entry, lambda event: isinstance(event, ClusterEventSeen) and event.reason == "Admitted")

    def reserved_after(self, entry: Entry) -> Entry | None:
        """The next time that quota was reserved, or that it was admitted."""
        return self._next(entry, lambda event: isinstance(event, ClusterEventSeen) and event.reason in ("QuotaReserved", "Admitted"))

    def ran_after(self, entry: Entry) -> Entry | None:
        """The next sign that it runs: an admission, or a word of its pods."""
        spoken = [story.first for story in self.timeline.attempts if story.first.t_ns > entry.t_ns]
        later = [each.last for each in self.timeline.attempts if each.last.t_ns > entry.t_ns and each.first.t_ns <= entry.t_ns]
        admitted = self.admitted_after(entry)
        return min([*spoken, *later, *([admitted] if admitted is not None else [])], key=lambda each: each.t_ns, default=None)

    def spoke_anew_after(self, entry: Entry) -> Entry | None:
        """The first word of pods that began after a moment."""
        return next((story.first for story in self.timeline.attempts if story.first.t_ns > entry.t_ns), None)

    def outcome(self, entry: Entry, back: Entry | None) -> Outcome:
        """Survived where it came back; else wrong, or not known where the export ends soon after."""
        if back is not None:
            return Outcome.VALID
        return Outcome.INVALID if self.timeline.looked_on_s(entry) >= RETRY_WAIT_S else Outcome.UNKNOWN

    def _next(self, entry: Entry, holds: Callable[[Event], bool]) -> Entry | None:
        return next((each.entry for each in self.timeline.seen if each.entry.t_ns > entry.t_ns and holds(each.event)), None)


def _messages(event: Event) -> Iterator[str]:
    if isinstance(event, ClusterEventSeen):
        yield event.message
    elif isinstance(event, ProvisioningSeen):
        yield from (condition.message for condition in event.conditions)
    elif isinstance(event, WorkloadSeen):
        yield from (condition.message for condition in event.conditions if condition.status == "False")


def _waited_s(case: _Case, since: Entry, until: Entry | None) -> str:
    seconds = (case.timeline.export_end_ns if until is None else until.t_ns) - since.t_ns
    return f"{seconds / 1e9:.0f} s" if until is not None else f"{seconds / 1e9:.0f} s, and to the end of the export"


def _quota(case: _Case) -> Iterator[Diagnosis]:
    """It waited for quota, Kueue's or the project's."""
    errors = [each.entry for each in _errors(case, "project-quota")]
    told = [entry for entry, text in case.waits if NO_QUOTA.search(text)]
    project = [entry for entry, text in case.waits if PROJECT_QUOTA.search(text)] + errors
    for entries, whose in ((told, "quota of its queue"), (project, "quota of the project")):
        if entries:
            until = case.reserved_after(entries[-1]) or case.ran_after(entries[-1])
            how = f"waited {_waited_s(case, entries[0], until)} for {whose}"
            yield _of(case, "waited-for-quota", case.outcome(entries[-1], until), "seen", how, entries[0], entries[-1], until)


def _fallback(case: _Case) -> Iterator[Diagnosis]:
    """It was given to DWS: a request for capacity was made for it."""
    made = [each.entry for each in case.events if _event(each).reason == "ProvisioningRequestCreated"]
    made += [each.entry for each in case.timeline.seen if isinstance(each.event, ProvisioningSeen)]
    if made:
        first = min(made, key=lambda entry: entry.t_ns)
        admitted = case.admitted_after(first)
        how = "fell back to DWS: a request for provisioned capacity was made for it"
        yield _of(case, "fell-back-to-dws", Outcome.VALID, "seen", how, first, admitted)


def _stockout(case: _Case) -> Iterator[Diagnosis]:
    """Capacity was missing."""
    errors = [each.entry for each in _errors(case, "stockout")]
    told = [entry for entry, text in case.waits if STOCKOUT.search(text)]
    entries = sorted([*errors, *told], key=lambda entry: entry.t_ns)
    if entries:
        until = _provisioned_after(case, entries[-1]) or case.ran_after(entries[-1])
        how = f"met a stockout: for {_waited_s(case, entries[0], until)} there was not enough capacity"
        yield _of(case, "stockout", case.outcome(entries[-1], until), "seen", how, entries[0], entries[-1], until)


def _provisioned_after(case: _Case, entry: Entry) -> Entry | None:
    later = (each for each in case.timeline.seen if each.entry.t_ns > entry.t_ns and isinstance(each.event, ProvisioningSeen))
    return next((each.entry for each in later if _holds(each.event, "Provisioned")), None)


def _holds(event: Event, kind: str) -> bool:
    assert isinstance(event, ProvisioningSeen)
    return any(condition.type == kind and condition.status == "True" for condition in event.conditions)


def _errors(case: _Case, kind: str) -> list[Seen]:
    return [each for each in case.timeline.seen if isinstance(each.event, PoolScaled) and AUTOSCALER_ERRORS.get(each.event.error) == kind]


def _evictions(case: _Case) -> Iterator[Diagnosis]:
    """Kueue took its quota away; an eviction and the preemption that caused it are two events of one thing.

    That a workload is deactivated after its capacity was revoked is told with that.
    """
    told: set[int] = set()
    for each in case.events:
        event = _event(each)
        is_preempted = event.reason in PREEMPTED_REASONS
        if not event.object_name.startswith("Workload/") or not (is_preempted or event.reason.startswith(EVICTED_PREFIX)):
            continue
        back = case.admitted_after(each.entry)
        round_ = back.t_ns if back is not None else -1
        is_revoked = "Deactivated" in event.reason and any(_revocations(case))
        if is_revoked or (is_preempted and round_ in told):
            continue
        told.add(round_)
        why = event.reason.removeprefix(EVICTED_PREFIX)
        after = (
            f", and was admitted again {_waited_s(case, each.entry, back)} later" if back is not None else ", and was not admitted again"
        )
        kind: DiagnosisKind = "preempted-in-the-queue" if is_preempted else "evicted"
        yield _of(case, kind, case.outcome(each.entry, back), "seen", f"was evicted by its queue ({why}){after}", each.entry, back)


def _machines(case: _Case) -> Iterator[Diagnosis]:
    """What befell the machines it was on."""
    for each in case.events:
        event = _event(each)
        kind = INSTANCE_EVENTS.get(event.reason)
        certainty: Certainty = "seen"
        if kind is None and event.object_name.startswith("Node/") and MAINTENANCE.search(f"{event.reason} {event.message}"):
            kind, certainty = "node-maintenance", "assumed"
        if kind is None:
            continue
        back = case.spoke_anew_after(each.entry) or case.admitted_after(each.entry)
        if event.reason == "compute.instances.migrateOnHostMaintenance":
            back = back or each.entry  # it lives on, on another host
        after = "" if back is not None else ", and no pod of the job was seen after it"
        how = f"lost {event.object_name.partition('/')[2]}: {event.message or event.reason}{after}"
        yield _of(case, kind, case.outcome(each.entry, back), certainty, how, each.entry, back)


def _revoked(case: _Case) -> Iterator[Diagnosis]:
    """Its provisioned capacity was reclaimed: Kueue deactivates the workload, for good."""
    revoked = list(_revocations(case))
    if revoked:
        back = case.admitted_after(revoked[0])
        how = "lost its provisioned capacity (CapacityRevoked)" + ("" if back is not None else ", and was not admitted again")
        outcome = Outcome.VALID if back is not None else Outcome.INVALID
        yield _of(case, "capacity-revoked", outcome, "seen", how, revoked[0], _deactivated(case), back)


def _revocations(case: _Case) -> Iterator[Entry]:
    seen = (each for each in case.timeline.seen if isinstance(each.event, ProvisioningSeen))
    return (each.entry for each in seen if _holds(each.event, "CapacityRevoked"))


def _deactivated(case: _Case) -> Entry | None:
    return next((each.entry for each in case.timeline.seen if isinstance(each.event, WorkloadSeen) and not each.event.is_active), None)


def _ends(case: _Case) -> Iterator[Diagnosis]:
    memory = [each.entry for each in case.events if OUT_OF_MEMORY.search(f"{_event(each).reason} {_event(each).message}")]
    if memory:
        yield _of(case, "out-of-memory", Outcome.INVALID, "seen", "had a container killed for want of memory", *memory)
    for each in case.timeline.seen:
        if isinstance(each.event, SubmissionSeen) and each.event.status == "Failed":
            how = f"failed for good ({each.event.reason})"
            kind: DiagnosisKind = "retries-exhausted" if each.event.reason in _LIMITS_REACHED else "failed-by-itself"
            yield _of(case, kind, Outcome.INVALID, "seen", how, each.entry)
    yield from _failed_workload(case)


def _failed_workload(case: _Case) -> Iterator[Diagnosis]:
    """Its workload says that it failed, and no event of the job itself: KubeRay has none for that."""
    seen = case.timeline.seen
    if any(isinstance(each.event, SubmissionSeen) and each.event.status == "Failed" for each in seen):
        return
    found = next((each.entry for each in seen if isinstance(each.event, WorkloadSeen) and finished_as(each.event) == "Failed"), None)
    if found is not None:
        yield _of(case, "failed-by-itself", Outcome.INVALID, "seen", "failed for good, as its workload says", found)


def _event(each: Seen) -> ClusterEventSeen:
    assert isinstance(each.event, ClusterEventSeen)
    return each.event


def _of(case: _Case, kind: DiagnosisKind, outcome: Outcome, certainty: Certainty, how: str, *entries: Entry | None) -> Diagnosis:
    return Diagnosis(
        kind=kind,
        outcome=outcome,
        certainty=certainty,
        says=f"{case.timeline.name} {how}",
        advice=ADVICE[kind],
        evidence=evidence_of(*entries),
    )
