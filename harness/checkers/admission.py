"""Each task was admitted to the flavors that the queue promises, in their order, and in time: on-demand first, then dws."""

from collections.abc import Sequence

from harness.checkers.cluster import admissions_of, last_stay, too_short, unseen
from harness.checkers.evidence import Evidence, Ruling
from harness.checkers.landed import missed
from harness.lineage import Admission
from harness.scenario.expectations import AdmittedTo
from harness.verdict import Finding

CHECKER = "admitted-to"


def check(expectation: AdmittedTo, evidence: Evidence) -> Finding:
    """Compare the admissions of each task; its flavor is that of the pods that ask for chips."""
    ruling = Ruling()
    ruling.doubt_lost(evidence.lost("cluster"))
    admitted = 0
    waits_s: list[float] = []
    for task in range(len(expectation.flavors)):
        if not evidence.lineage.stays_of(task):
            ruling.doubts.append(f"task {task}: {unseen('no workload', evidence)}")
            continue
        admissions = admissions_of(task, evidence)
        admitted += len(admissions)
        waits_s += [admission.waited_s for admission in admissions]
        ruling.facts += [_told(task, admission) for admission in admissions]
        _judge_flavors(task, admissions, expectation, evidence=evidence, ruling=ruling)
        _judge_waits(task, admissions, expectation.within_s, ruling)
    ruling.measures = {"admissions": float(admitted)}
    if waits_s:
        ruling.measures["queued_s_max"] = max(waits_s)
    kept = "; ".join(f"task {task} was admitted to {_named(flavors)}" for task, flavors in enumerate(expectation.flavors))
    return ruling.conclude(CHECKER, kept)


def _told(task: int, admission: Admission) -> str:
    end = f" until {admission.ended_s:.2f} s ({admission.end})" if admission.ended_s is not None else ""
    when = f"at {admission.admitted_s:.2f} s, {admission.waited_s:.2f} s after it had asked"
    return f"task {task} was admitted to {admission.flavor or 'no flavor'} {when}{end}"


def _named(flavors: Sequence[str]) -> str:
    return ", then ".join(flavor or "no flavor" for flavor in flavors) or "nothing"


def _judge_flavors(task: int, admissions: Sequence[Admission], expectation: AdmittedTo, *, evidence: Evidence, ruling: Ruling) -> None:
    """One more may have come yet where the run was broken off or ended too soon; where a fault did not land nobody owes what it brings."""
    seen, flavors = [admission.flavor for admission in admissions], expectation.flavors[task]
    early = too_short(task, evidence, expectation.watched_s, is_quiet=seen == list(flavors))
    if evidence.is_cut_short:
        early = "the run was broken off: another one might have come"
    if seen == list(flavors):
        if early:
            ruling.doubts.append(f"task {task} was admitted to {_named(seen)}; {early}")
        return
    wrong = f"task {task} was admitted to {_named(seen)}, and {_named(flavors)} is promised"
    stay = last_stay(task, evidence)
    said = stay.notes[-1][1] if stay is not None and stay.notes else ""
    is_short = seen == list(flavors[: len(seen)])
    if stay is not None and is_short and said and stay.state != "finished":
        wrong += f"; at the end it was {stay.state}: {said}"
    doubt = missed(evidence) or (early if is_short else "")
    if doubt:
        ruling.doubts.append(f"{wrong}; {doubt}")
    else:
        ruling.broken.append(wrong)


def _judge_waits(task: int, admissions: Sequence[Admission], within_s: float, ruling: Ruling) -> None:
    """Each admission comes in time; one that never comes is missing among the flavors."""
    if not within_s:
        return
    for admission in admissions:
        if admission.waited_s > within_s:
            after = "its submission" if admission.number == 0 else "the end of the admission before"
            late = f"task {task} was admitted to {admission.flavor} {admission.waited_s:.2f} s after {after}"
            ruling.broken.append(f"{late}, {within_s:g} s are promised")
