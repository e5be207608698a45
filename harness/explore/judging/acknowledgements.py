"""What was acknowledged must still be there: by what a recovery does, says and saves, and by what an inspection finds. Pure."""

from harness.explore.judging.case import Case
from harness.explore.judging.rulings import KEEPS, KEPT, Ruling, broken, unknown


def keeps(case: Case) -> Ruling:
    """It goes on from the newest acknowledged step or a newer one; before anything was acknowledged, from scratch is right.

    What it does counts before what it says: steps that are done again were lost, whatever it said to have restored.
    """
    promised, first = case.promised, case.first
    if not promised:
        return None
    lost = _lost(case)
    if lost:
        return broken(KEEPS, f"step {promised} had been acknowledged, and {lost}")
    doubt = _doubt(case) if first.restored_step >= 0 else _silence(case)
    if not doubt:
        return KEPT
    return unknown(KEEPS, f"step {promised} had been acknowledged, and {doubt}") if case.ended_well else None


def _lost(case: Case) -> str:
    """What shows that it went on from less than was promised; empty: nothing does."""
    promised, first = case.promised, case.first
    if 0 <= first.restored_step < promised:
        return f"it went on from {f'step {first.restored_step}' if first.restored_step else 'scratch'}"
    newest = case.newest_start(first)
    if newest is not None and newest < promised:
        said = f"it said that it restored step {first.restored_step}, and did" if first.restored_step >= 0 else "it did"
        return f"{said} step {min(first.digests)} again"
    saved = [save.step for save in first.saves if 0 < save.step < promised]
    if saved and case.saves_each_once:
        return f"it saved step {min(saved)} again"
    if first.restored_step >= 0 or case.shows_steps_from(promised):
        return ""
    if case.saves_each_once and _saved_what_is_gone(case):
        return f"it saved step {promised} again, whose checkpoint was not there any more"
    found = _found_less(case)
    return f"the inspection found {found} before recovery" if found else ""


def _doubt(case: Case) -> str:
    """Why a step that it says to have restored is none that it can have gone on from; empty: it can be."""
    promised, first = case.promised, case.first
    newest = case.newest_start(first)
    says = f"it said that it restored step {first.restored_step}, and"
    if newest is not None and newest < first.restored_step:
        return "" if case.shows_steps_from(promised) else f"{says} did step {min(first.digests)} after that"
    if case.expected.digests_at(first.restored_step, case.at) and first.restored_digests:
        return ""  # what it had in memory is compared with what was there before the save
    if _saved_what_is_gone(case):
        return f"{says} saved step {promised} again, whose checkpoint was not there any more"
    found = _found_less(case)
    return f"{says} the inspection found {found} before that" if found else ""


def _silence(case: Case) -> str:
    """Of one that does not say what it restored, why nothing else tells that it went on from what was promised; empty: something does."""
    found = case.first.inspected_before
    stood = case.can_inspect and found is not None and found >= case.promised
    if case.shows_steps_from(case.promised) or (stood and case.ended_well and not _saved_again(case)):
        return ""
    saved = f"it saved step {case.promised} again and" if _saved_again(case) else "it"
    return f"{saved} does not say from which step it went on; have it tell what it restores (`resumed`) or each step (`step`)"


def _found_less(case: Case) -> str:
    """What an inspection found before recovery, where it is less than was promised; empty: it is not, or nobody inspects."""
    found = case.first.inspected_before
    if not case.can_inspect or found is None or not 0 <= found < case.promised:
        return ""
    return f"step {found}" if found else "nothing"


def _saved_what_is_gone(case: Case) -> bool:
    """Whether it acknowledged once more what had been promised, and is not there any more."""
    return _saved_again(case) and case.is_gone(case.promised)


def _saved_again(case: Case) -> bool:
    """Whether it acknowledged once more what had been promised, which it need not where that stands."""
    return any(save.step == case.promised for save in case.first.saves)
