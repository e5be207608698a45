"""Where the time went, as tables: the ledger of each task, recoveries, the budget of each notice, advice on the interval of saves."""

import statistics
from collections.abc import Iterator
from dataclasses import dataclass

from harness.ledger import CATEGORIES, Advice, Category, Ledger, Recovery, advise, young_interval_s
from harness.report.notices import Notice
from harness.report.record import Record
from harness.report.wording import NONE, duration

MEANINGS: dict[Category, str] = {
    "productive": "steps that were retained",
    "lost": "steps that were not, and the one that a death cut short",
    "save": "the job stood still to save",
    "provision": "from the start of an attempt to the first word of the job; on a cluster from quota to a node for each host",
    "start": "up to the choice of a checkpoint, or to training from scratch; to the first step, where the job says neither",
    "restore": "loading the checkpoint",
    "compile": "what the first step took more than the others",
    "wind-down": "from the notice, or the last word, to the exit",
    "requeue": "between two attempts; on a cluster without quota, or before a pod was made",
    "detect": "dead, and nobody had noticed",
}

RECOVERY_PARTS = ("detect", "requeue", "provision", "start", "restore", "compile", "replay", "save", "wind-down")
"""In the order in which they come; ``detect`` is from the fault until it was noticed, ``replay`` the repetition of lost steps."""

LEDGERS_MAX = 12
"""Tasks whose ledger is shown: the least productive, in order of the tasks."""

RECOVERIES_MAX = 24


@dataclass(frozen=True, slots=True)
class Entry:
    """A line of a ledger."""

    category: str
    meaning: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """The ledger of a task; ``adds_up`` false: some of the wall time is in no line."""

    ledger: Ledger
    entries: tuple[Entry, ...]
    sum_s: float
    adds_up: bool


def accounts_of(record: Record) -> tuple[Account, ...]:
    """The ledgers; where there are too many, those of the least productive tasks."""
    ledgers = sorted((ledger for ledger in record.ledgers if ledger.wall_s > 0), key=lambda ledger: ledger.goodput)
    return tuple(_account(ledger) for ledger in sorted(ledgers[:LEDGERS_MAX], key=lambda ledger: ledger.task))


def _account(ledger: Ledger) -> Account:
    totals = {category: ledger.total(category) for category in CATEGORIES}
    entries = tuple(Entry(category, MEANINGS[category], seconds) for category, seconds in totals.items() if seconds > 0)
    sum_s = sum(span.seconds for span in ledger.spans)
    return Account(ledger=ledger, entries=entries, sum_s=sum_s, adds_up=ledger.adds_up)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryRow:
    """A recovery; ``parts`` in the order in which they come, those without time left out."""

    task: int
    recovery: Recovery
    parts: tuple[Entry, ...]


def recoveries_of(record: Record) -> tuple[RecoveryRow, ...]:
    """The recoveries of all tasks, in order of time."""
    found = sorted(
        ((ledger.task, recovery) for ledger in record.ledgers for recovery in ledger.recoveries), key=lambda item: item[1].fault_s
    )
    return tuple(_recovery_row(task, recovery) for task, recovery in found[:RECOVERIES_MAX])


def _recovery_row(task: int, recovery: Recovery) -> RecoveryRow:
    names = [*RECOVERY_PARTS, *sorted(set(recovery.parts) - set(RECOVERY_PARTS))]
    parts = tuple(Entry(name, "", recovery.parts[name]) for name in names if recovery.parts.get(name, 0.0) > 0)
    return RecoveryRow(task=task, recovery=recovery, parts=parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetRow:
    """What became of one notice: each leg with its words, and the parts of the grace as shares of it.

    Attributes:
        notice: The SIGTERM.
        legs: From moment to moment; a leg whose end was not seen says so.
        used, left: Shares of the grace period.
    """

    notice: Notice
    legs: tuple[tuple[str, str], ...]
    used: float
    left: float


def budgets_of(notices: tuple[Notice, ...]) -> tuple[BudgetRow, ...]:
    """The rows between SIGTERM and the end of the grace period, for each notice."""
    return tuple(_budget(notice) for notice in notices)


def _budget(notice: Notice) -> BudgetRow:
    used = 1.0
    if notice.exit_s is not None and notice.grace_s > 0:
        used = min(max((notice.exit_s - notice.sent_s) / notice.grace_s, 0.0), 1.0)
    return BudgetRow(notice=notice, legs=tuple(_legs(notice)), used=used, left=1.0 - used)


def _legs(notice: Notice) -> Iterator[tuple[str, str]]:
    """Each leg starts where the last one that was seen ended."""
    moments = [
        ("noticed", notice.seen_s),
        ("last step done", notice.last_step_s),
        ("save begun", notice.save_s),
        ("durable", notice.durable_s),
        ("exit", notice.exit_s),
    ]
    previous_s = notice.sent_s
    for name, t_s in moments:
        if t_s is None:
            yield name, NONE if name == "last step done" else "not seen"
            continue
        yield name, f"+{duration(max(t_s - previous_s, 0.0))}"
        previous_s = max(t_s, previous_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class Advising:
    """Advice on the interval between checkpoints, and what it rests on."""

    save_s: float
    saves: int
    step_s: float
    restart_s: float | None
    rows: tuple[tuple[Advice, float], ...]


def advising_of(record: Record) -> Advising | None:
    """Advice from the first task that saved and stepped; None where nothing was measured."""
    for ledger in record.ledgers:
        rows = advise(ledger)
        if not rows:
            continue
        save_s = statistics.median(ledger.save_s)
        return Advising(
            save_s=save_s,
            saves=len(ledger.save_s),
            step_s=statistics.median(span.seconds for span in ledger.spans if span.step >= 0),
            restart_s=statistics.median(recovery.restart_s for recovery in ledger.recoveries) if ledger.recoveries else None,
            rows=tuple((row, young_interval_s(save_s, row.mtti_s)) for row in rows),
        )
    return None
