"""The result file equals, byte for byte, that of the uninterrupted run."""

from collections.abc import Sequence

from harness.checkers.evidence import Evidence, invalid, unknown, valid
from harness.history import Event, ResultSeen, TaskFinished
from harness.scenario.expectations import SameResult
from harness.verdict import Finding

CHECKER = "same-result"


def check(_expectation: SameResult, evidence: Evidence) -> Finding:
    """Compare digests; without a result of an uninterrupted run that is equal to itself nothing can be compared."""
    mine = _result(evidence.events)
    golden = _result(evidence.golden.events) if evidence.golden else None
    known = evidence.golden_known
    if mine is None:
        return unknown(CHECKER, "the run recorded no result: the workload names no result file, or the run was not closed")
    if golden is None or known is None:
        return unknown(CHECKER, "there is no uninterrupted run with a result to compare with")
    if not golden.sha256:
        return unknown(CHECKER, f"the uninterrupted run left no {golden.path} either: correct `result`, or the job")
    if not known.equal:
        return unknown(CHECKER, f"no uninterrupted run proves what the result must be: {known.detail}")
    if evidence.is_cut_short:
        return unknown(CHECKER, "the run was broken off: its result is not what the job would have left")
    if not evidence.scenario.within_budget and not _has_succeeded(evidence):
        return unknown(CHECKER, "the execution ended as failed, as its faults make it: no result is owed")
    return _compare(mine, golden)


def _compare(mine: ResultSeen, golden: ResultSeen) -> Finding:
    wanted = f"{golden.size_bytes} bytes, sha256 {golden.sha256[:16]}"
    if not mine.sha256:
        return invalid(CHECKER, f"the result {mine.path} is not there at the end; the uninterrupted run's has {wanted}")
    seen = f"{mine.size_bytes} bytes, sha256 {mine.sha256[:16]}"
    if mine.sha256 != golden.sha256:
        return invalid(CHECKER, f"the result {mine.path} differs from the uninterrupted run's: {seen} instead of {wanted}")
    return valid(CHECKER, f"the result {mine.path} is the uninterrupted run's: {seen}", result_bytes=float(mine.size_bytes))


def _has_succeeded(evidence: Evidence) -> bool:
    ended = evidence.of_type(TaskFinished)
    return bool(ended) and all(event.succeeded for event in ended)


def _result(events: Sequence[Event]) -> ResultSeen | None:
    return next((event for event in reversed(events) if isinstance(event, ResultSeen)), None)
