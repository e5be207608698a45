"""No torn or foreign state is loaded, the last good checkpoint is never lost, nothing incomplete is offered or restored."""

from collections.abc import Iterator, Sequence

from harness.checkers.evidence import Evidence, Ruling
from harness.checkers.states import SavedStates
from harness.checkers.storage import Offer, losses_of_last_good, offer_to, tells_steps_of
from harness.checkers.successions import name_of_life
from harness.history import RestoreBegun, Restored
from harness.lineage import Incarnation, Survey
from harness.scenario.expectations import IntactCheckpoints
from harness.verdict import Finding, counted

CHECKER = "intact-checkpoints"


def check(_expectation: IntactCheckpoints, evidence: Evidence) -> Finding:
    """Judge what was loaded, by the job's own fingerprints and by storage, and what each survey found."""
    ruling = Ruling()
    restores = compared = surveys = 0
    for task in evidence.lineage.tasks:
        saved = SavedStates(evidence.lineage, task)
        lives = evidence.lineage.incarnations_of(task)
        for life in lives:
            restores += len(life.restores)
            compared += sum(saved.compare(event) is not None for event in life.restores)
            _judge_life(life, saved, evidence, ruling)
        ruling.broken.extend(_crashes_at_restore(lives))
        ruling.broken.extend(losses_of_last_good(evidence, task))
        surveys += _judge_surveys(task, evidence, ruling)
    ruling.doubt_lost([*evidence.lost("checkpoints"), *evidence.lost_words()])
    ruling.measures = {"restores": float(restores), "surveys": float(surveys)}
    nothing = "" if surveys else "no survey found a committed checkpoint, so there was nothing to judge"
    if evidence.scenario.workload.layout == "files" and not compared:
        nothing = nothing or "nothing is known of these files, and no fingerprint tells what was loaded: they may have been torn"
    loaded = f"{counted(restores, 'restore')} loaded what was saved and committed"
    found = f"{counted(surveys, 'survey')} found a good checkpoint from the first one on"
    return ruling.conclude(CHECKER, f"{loaded}, and {found}", nothing=nothing)


# ---- what was loaded -------------------------------------------------------------------------------------------------


def _judge_life(life: Incarnation, saved: SavedStates, evidence: Evidence, ruling: Ruling) -> None:
    offer = offer_to(life, evidence)
    who = name_of_life(life)
    for event in life.restores:
        if event.step > 0:
            _judge_standing(event, offer, who=who, evidence=evidence, ruling=ruling)
            _judge_state(event, offer, saved, who=who, evidence=evidence, ruling=ruling)
    chosen = _died_restoring(life)
    if chosen is not None and offer.standing_of(chosen.step) == "uncommitted":
        how = _seen_as(chosen.step, offer)
        ruling.broken.append(f"{who} chose step {chosen.step} at {chosen.t_s:.2f} s, {how}, and died of it before it could start")
    acknowledged = [step for step, is_acknowledged in offer.saved.items() if is_acknowledged]
    if not offer.tells_steps and offer.required_step and life.restored_step == 0 and acknowledged:
        ruling.broken.append(f"{who} found nothing to restore, although step {max(acknowledged)} had been acknowledged")


def _judge_standing(event: Restored, offer: Offer, *, who: str, evidence: Evidence, ruling: Ruling) -> None:
    """What is restored was committed."""
    standing = offer.standing_of(event.step)
    what = f"{who} restored step {event.step} on rank {event.rank} at {event.t_s:.2f} s"
    if standing == "foreign":
        target = ruling.doubts if evidence.lost_words() or evidence.lost("checkpoints") else ruling.broken
        target.append(f"{what}, which nobody had saved")
    elif standing == "uncommitted":
        target = ruling.doubts if evidence.lost("checkpoints") else ruling.broken
        target.append(f"{what}, {_seen_as(event.step, offer)}")
    else:
        ruling.facts.append(f"{what}: {standing}")


def _judge_state(event: Restored, offer: Offer, saved: SavedStates, *, who: str, evidence: Evidence, ruling: Ruling) -> None:
    """What is in memory after a restore is what was in memory when it was saved, part by part."""
    what = f"{who} restored step {event.step} on rank {event.rank} at {event.t_s:.2f} s"
    part = saved.compare(event)
    if part:
        ruling.broken.append(f"{what}, and its {part} {event.digests[part]} is not what was saved")
    elif part is None and offer.standing_of(event.step) == "damaged":
        ruling.doubts.append(f"{what}, which a fault had damaged, and no fingerprint tells what it loaded")
    elif part is None and evidence.scenario.workload.speaks_protocol and offer.standing_of(event.step) != "foreign":
        ruling.doubts.append(f"{what}, and no fingerprint tells whether that is what was saved")


def _died_restoring(life: Incarnation) -> RestoreBegun | None:
    """The checkpoint that a life had chosen when it died by itself, before it was ready to train."""
    chosen = life.of_type(RestoreBegun)
    has_failed = life.exit is not None and life.exit.cause == "job" and life.exit.exit_code != 0
    return chosen[-1] if chosen and has_failed and life.restored_step is None else None


def _crashes_at_restore(lives: Sequence[Incarnation]) -> Iterator[str]:
    """One death at a restore may be bad luck, or the next attempt falls back; a second one at the same step is a crash loop."""
    before: RestoreBegun | None = None
    for life in lives:
        chosen = _died_restoring(life)
        if chosen is not None and before is not None and chosen.step == before.step:
            yield f"{name_of_life(life)} died restoring step {chosen.step} at {chosen.t_s:.2f} s, as attempt {before.attempt} had before it"
        if chosen is not None or life.restored_step is not None:
            before = chosen


def _seen_as(step: int, offer: Offer) -> str:
    stored = offer.held.get(step)
    return f"which was {stored.state} on storage ({stored.path})" if stored is not None else "which was not on storage"


# ---- what storage held -----------------------------------------------------------------------------------------------


def _judge_surveys(task: int, evidence: Evidence, ruling: Ruling) -> int:
    """Go through the surveys of a task; returns how many there were from the first with a committed checkpoint on."""
    is_readable = evidence.scenario.workload.layout != "files"  # what lies there may be anything, and may change
    surveys = 0
    newest: tuple[int, float] | None = None
    changed: set[int] = set()
    for survey in evidence.lineage.surveys(task):
        if surveys or any(stored.is_good for stored in survey.looked_at):
            surveys += 1
        if not is_readable:
            continue
        ruling.broken.extend(_changes(task, survey, changed))
        if survey.is_after_damage:
            newest = None
        if survey.seen.is_whole and evidence.lineage.is_quiet_at(task, survey.seen.t_s):
            ruling.broken.extend(_wrong_offers(task, survey))
            if tells_steps_of(evidence, task, survey.held):
                newest = _judge_newest(task, survey, newest, ruling)
    return surveys


def _changes(task: int, survey: Survey, changed: set[int]) -> Iterator[str]:
    """Bytes under a committed checkpoint that changed although nobody saved that step and no fault came: it is written in place."""
    for stored in survey.looked_at:
        step = stored.step
        if stored.change == "unexplained" and step not in changed:
            changed.add(step)
            yield (
                f"task {task}: the committed checkpoint of step {step} had changed at {survey.seen.t_s:.2f} s ({survey.seen.occasion}), "
                "and neither a save of that step nor a fault explains it"
            )


def _wrong_offers(task: int, survey: Survey) -> Iterator[str]:
    for stored in survey.looked_at:
        if stored.is_latest and stored.state != "committed" and stored.change != "fault":
            yield (
                f"task {task}: storage offered step {stored.step} ({stored.path}) to the next restore at {survey.seen.t_s:.2f} s, "
                f"and it was {stored.state}"
            )


def _judge_newest(task: int, survey: Survey, before: tuple[int, float] | None, ruling: Ruling) -> tuple[int, float] | None:
    """The newest good step never falls, but for damage."""
    t_s = survey.seen.t_s
    good = [stored.step for stored in survey.looked_at if stored.is_good]
    if not good:
        return before
    if before is not None and max(good) < before[0]:
        ruling.broken.append(f"task {task}: the newest good step fell from {before[0]} at {before[1]:.2f} s to {max(good)} at {t_s:.2f} s")
    return max(good), t_s
