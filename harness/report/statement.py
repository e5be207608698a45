"""The verdict in one sentence, and the findings behind it."""

from dataclasses import dataclass

from harness.report.record import Record
from harness.report.wording import count
from harness.verdict import Finding, Outcome

EVIDENCE_MAX = 100
"""Lines of evidence shown of a finding; the rest stands in ``verdict.json``."""

_ORDER = {Outcome.INVALID: 0, Outcome.UNKNOWN: 1, Outcome.VALID: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """What is said first.

    Attributes:
        outcome: ``valid``, ``invalid`` or ``unknown``.
        sentence: Why, in one sentence.
        deciding: The findings that decided it, where it is not valid.
        others: All other findings, the worst first.
    """

    outcome: str
    sentence: str
    deciding: tuple[Finding, ...]
    others: tuple[Finding, ...]


def state(record: Record) -> Statement:
    """Say what became of a run."""
    if record.verdict is None:
        reason = record.problems[-1] if record.problems else "no verdict was written"
        return Statement(outcome=Outcome.UNKNOWN, sentence=f"Nothing is proved: {reason}.", deciding=(), others=())
    findings = record.verdict.findings
    deciding = () if record.verdict.is_valid else record.deciding
    others = tuple(sorted((finding for finding in findings if finding not in deciding), key=lambda finding: _ORDER[finding.outcome]))
    return Statement(outcome=record.verdict.outcome, sentence=_sentence(record, deciding), deciding=deciding, others=others)


def _sentence(record: Record, deciding: tuple[Finding, ...]) -> str:
    assert record.verdict is not None
    total = len(record.verdict.findings)
    if record.verdict.outcome is Outcome.INVALID:
        rest = "" if len(deciding) == 1 else "among them "
        return _ended(f"The job broke {len(deciding)} of {count(total, 'promise')}, {rest}{deciding[0].checker}: {deciding[0].reason}")
    if record.verdict.outcome is Outcome.UNKNOWN:
        if not deciding:
            return "Nothing is proved: nothing was checked."
        return _ended(f"Nothing is proved, for {count(len(deciding), 'check')} of {total} could not be decided: {deciding[0].reason}")
    declared = record.verdict.measure("faults_declared")
    if not declared:
        return f"Left alone, the job kept every promise: all {total} checks hold."
    landed = round(record.verdict.measure("faults_landed") or 0)
    faults = {1: "The fault", 2: "Both faults"}.get(landed, f"All {landed} faults")
    return f"{faults} landed, and the job kept every promise: all {total} checks hold."


def _ended(text: str) -> str:
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
