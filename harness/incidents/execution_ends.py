"""The audit entry at the end of an execution: how it ended, and what its specification granted.

Source: shapes of public exports of Cloud Run job logs; the response is an Execution of the v1 API.
"""

import re
from collections.abc import Mapping
from typing import cast

from harness.incidents.entries import Entry
from harness.incidents.timeline import Ending, Granted

_FAILED_TASK = re.compile(r"\bTask \S{1,120}-task(?P<task>\d{1,4}) failed\b", re.ASCII)


def ending_of(entry: Entry) -> Ending | None:
    """The end that an audit entry tells; None where its execution goes on."""
    status = _mapping(_mapping(entry.payload.get("response")).get("status"))
    conditions = status.get("conditions")
    completed = next((_mapping(each) for each in (conditions if isinstance(conditions, list) else []) if _is_completed(each)), {})
    code = _mapping(entry.payload.get("status")).get("code")
    if completed.get("status") not in ("True", "False") and not isinstance(code, int):
        return None
    counts = {name: _count(status.get(f"{name}Count")) for name in ("succeeded", "failed", "cancelled", "retried")}
    if not any(counts[name] for name in ("succeeded", "failed", "cancelled")):
        counts["succeeded" if completed.get("status") == "True" else "cancelled" if code == 1 else "failed"] = 1
    message = completed.get("message")
    named = _FAILED_TASK.finditer(message[:10_000]) if isinstance(message, str) else ()
    return Ending(entry=entry, failed_tasks=frozenset(int(found["task"]) for found in named), **counts)


def is_refused(entry: Entry) -> bool:
    """Whether what an audit entry tells of was asked for and not done, as its status says."""
    code = _mapping(entry.payload.get("status")).get("code")
    return isinstance(code, int) and code != 0


def _is_completed(condition: object) -> bool:
    return _mapping(condition).get("type") == "Completed"


def granted_by(entry: Entry, known: Granted) -> Granted:
    """What the execution's own specification says it was granted."""
    spec = _mapping(_mapping(entry.payload.get("response")).get("spec"))
    task = _mapping(_mapping(spec.get("template")).get("spec"))
    timeout = _count(task.get("timeoutSeconds"))
    return Granted(
        tasks=_count(spec.get("taskCount")) or known.tasks,
        max_retries=_count(task.get("maxRetries")) if "maxRetries" in task else known.max_retries,
        timeout_s=float(timeout) if timeout else known.timeout_s,
    )


def with_timeout(known: Granted, timeout_s: float) -> Granted:
    """What is known, with the timeout that the platform told when it was reached."""
    return Granted(tasks=known.tasks, max_retries=known.max_retries, timeout_s=timeout_s)


def _count(value: object) -> int:
    """A count, or a number of seconds, as JSON has it; 0 where it is none."""
    if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) <= 9:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1_000_000_000 else 0


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, dict) else {}
