"""The work was done, and what says so is what storage holds: exit 0 alone is not completion.

Three notions of the last step are kept apart. *Executed*: the highest step that was done. *Reported*: the step of ``done``. *Durable*: the
newest sound checkpoint when everything had ended. Completion means the durable one. It falls back to the reported one and the result file,
and says so, only where no checkpoint of the final step is owed.
"""

from collections.abc import Sequence

from harness.checkers.accounts import Account, account_of
from harness.checkers.cluster import last_stay
from harness.checkers.evidence import Evidence, Ruling, unknown
from harness.checkers.storage import losses_of_last_good
from harness.checkers.unstarted import was_submitted, why_never_run, why_pods_ended
from harness.history import AttemptStarted, FaultFailed, RunClosed
from harness.scenario import kind_of
from harness.scenario.expectations import Completes
from harness.scenario.faults import CancelExecution
from harness.verdict import Finding, Outcome, counted

CHECKER = "completes"

CANCEL = kind_of(CancelExecution())


def check(_expectation: Completes, evidence: Evidence) -> Finding:
    """Judge by what was owed: the whole work, or outside the budget a clean, bounded failure, or after a cancel a clean end."""
    closed = evidence.closed
    if closed is None or closed.reason in ("interrupted", "error"):
        how = "was never closed" if closed is None else f"was closed as {closed.reason} at {closed.t_s:.2f} s{_after(closed.detail)}"
        return unknown(CHECKER, f"the run {how}, so nobody knows how it would have ended")
    taken = evidence.taken_away
    if taken is not None:
        what = f"{taken.object_kind} {taken.name} of task {taken.task} was deleted at {taken.t_s:.2f} s, by no fault, before it had ended"
        return unknown(CHECKER, f"{what}: nobody knows how it would have")
    accounts = [account_of(task, evidence) for task in range(evidence.scenario.platform.tasks)]
    ruling = Ruling(facts=[str(account) for account in accounts])
    final = max(account.final for account in accounts)
    ruling.measures = {"final_step": float(final)} if final else {}
    ruling.measures["executed_step"] = float(min(account.executed for account in accounts))
    durable = [account.durable for account in accounts if account.durable is not None]
    if len(durable) == len(accounts):
        ruling.measures["durable_step"] = float(min(durable))
    if closed.reason != "finished" and not _stands_still(accounts, evidence):
        _judge_cut(accounts, closed, evidence, ruling)
    else:
        _judge_ends(accounts, evidence, ruling)
    return ruling.conclude(CHECKER, "; ".join(f"{account}{_notion(account, evidence)}" for account in accounts))


def _judge_ends(accounts: Sequence[Account], evidence: Evidence, ruling: Ruling) -> None:
    """By how each task has ended: after a cancel, within the budget, outside of it."""
    if any(isinstance(injection.fault, CancelExecution) for injection in evidence.scenario.injections):
        _judge_cancel(accounts, evidence, ruling)
    elif evidence.scenario.within_budget:
        _judge_work(accounts, evidence, ruling)
    else:
        _judge_failure(accounts, evidence, ruling)


def _stands_still(accounts: Sequence[Account], evidence: Evidence) -> bool:
    """Whether each task has ended or was deactivated by its queue: no waiting would have changed anything, and a failure was owed."""
    ended = [account.finished is not None or _is_deactivated(account.task, evidence) for account in accounts]
    return all(ended) and not evidence.scenario.within_budget


def _judge_cut(accounts: Sequence[Account], closed: RunClosed, evidence: Evidence, ruling: Ruling) -> None:
    """A run that had to be ended is blamed on what did not end; what nobody has submitted was given no time to.

    Where every task has ended, they are judged by that, and nobody is blamed that more was waited for. And whether a log of which lines are
    lost was silent nobody knows.
    """
    unfinished = [account for account in accounts if account.finished is None]
    given = [account for account in unfinished if was_submitted(account.task, evidence)]
    cut = f"the run had to be ended at {closed.t_s:.2f} s: {closed.reason}{_after(closed.detail)}"
    if not unfinished:
        ruling.doubts.append(f"{cut}; every task had ended by then")
        _judge_ends(accounts, evidence, ruling)
        return
    if closed.reason == "hang" and evidence.may_be_unheard:
        ruling.doubt_lost(evidence.lost_words())
        ruling.doubts.append(cut)
        return
    if not given:
        ruling.doubts.append(f"{cut}, before task {unfinished[0].task} was submitted")
        return
    why = next((told for account in given if (told := why_never_run(account.task, evidence))), "")
    blamed = given[0]
    ruling.broken.append(f"{why}; {cut}" if why else f"{cut}; {blamed}{_because(blamed, evidence)}")


def _is_deactivated(task: int, evidence: Evidence) -> bool:
    """Whether its workload was deactivated, which nothing undoes by itself; its quota is free, and it holds no capacity."""
    stay = last_stay(task, evidence)
    return stay is not None and stay.state == "deactivated"


def _notion(account: Account, evidence: Evidence) -> str:
    if account.finished is None or not account.finished.succeeded:
        return ""
    return f" (complete by the {account.completeness(evidence).notion})"


def _because(account: Account, evidence: Evidence) -> str:
    why = why_pods_ended(account.task, evidence)
    return f"; {why}" if why else ""


def _after(detail: str) -> str:
    return f" ({detail})" if detail else ""


def _judge_work(accounts: Sequence[Account], evidence: Evidence, ruling: Ruling) -> None:
    """Every task has ended as a success with its work done."""
    for account in accounts:
        if account.finished is None:
            ruling.doubts.append(f"task {account.task} was never seen to end, although the run was closed as finished")
        elif not account.finished.succeeded:
            why = why_never_run(account.task, evidence)
            told = f"{why}; {account}" if why else f"{account}{_after(account.finished.detail)}{_because(account, evidence)}"
            ruling.broken.append(told)
        else:
            _judge_success(account, evidence, ruling)


def _judge_success(account: Account, evidence: Evidence, ruling: Ruling) -> None:
    """A success with the work missing is the worst of all ends: nobody will look again."""
    completeness = account.completeness(evidence)
    if completeness.outcome is Outcome.INVALID:
        ruling.broken.append(f"task {account.task} ended as a success and {completeness.why}: {account}")
    elif completeness.outcome is Outcome.UNKNOWN:
        ruling.doubts.append(f"task {account.task} ended as a success, and {completeness.why}")


def _judge_failure(accounts: Sequence[Account], evidence: Evidence, ruling: Ruling) -> None:
    """Each task has ended by itself, within its attempts, with its last good checkpoint; to have done the work is better than owed."""
    attempts_max = evidence.scenario.platform.max_retries + 1
    for account in accounts:
        if account.finished is None and _is_deactivated(account.task, evidence):
            ruling.facts.append(f"task {account.task} was stopped by its queue: its workload is deactivated")
            ruling.broken.extend(losses_of_last_good(evidence, account.task))
            continue
        if account.finished is None:
            ruling.doubts.append(f"task {account.task} was never seen to end, although the run was closed as finished")
            continue
        if account.finished.attempts > attempts_max:
            had = counted(account.finished.attempts, "attempt")
            ruling.broken.append(f"task {account.task} had {had}, and {attempts_max} were allowed")
        if account.finished.succeeded:
            _judge_success(account, evidence, ruling)
        ruling.broken.extend(losses_of_last_good(evidence, account.task))


def _judge_cancel(accounts: Sequence[Account], evidence: Evidence, ruling: Ruling) -> None:
    """Nothing is tried again after a cancel, and the last good checkpoint stays."""
    failed = {(event.injection, event.attempt) for event in evidence.of_type(FaultFailed)}
    cancels = (fault for fault in evidence.requested() if fault.fault == CANCEL and (fault.injection, fault.attempt) not in failed)
    cancelled = next(cancels, None)
    if cancelled is None:
        ruling.doubts.append("the execution was never cancelled")
        return
    for event in evidence.of_type(AttemptStarted):
        if event.t_s > cancelled.t_s:
            who = f"task {event.task} attempt {event.attempt}"
            ruling.broken.append(f"{who} began at {event.t_s:.2f} s, and the execution was cancelled at {cancelled.t_s:.2f} s")
    for account in accounts:
        ruling.broken.extend(losses_of_last_good(evidence, account.task))
