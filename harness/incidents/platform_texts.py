"""Lines of the platform's own log that say why a container of a Cloud Run job ended.

Source: texts as in public exports of Cloud Run job logs and in the guide for long GPU jobs; that of a preemption is the guide's, and no
public sample of its entry is known. Of want of memory there are two texts: the second one is that of the second generation of the
execution environment.
"""

import re
from typing import Literal

from harness.incidents.entries import Entry

PlatformWord = Literal["preempted", "timed-out", "out-of-memory", "exited", "killed"]

PREEMPTED_REASON = "INSTANCE_PREEMPTED"

_TEXTS: tuple[tuple[PlatformWord, re.Pattern[str]], ...] = (
    ("preempted", re.compile(r"^Container instance preemption initiated by the platform")),
    (
        "timed-out",
        re.compile(r"^Terminating task because it has reached the maximum timeout of (?P<seconds>\d{1,9}(?:\.\d{1,9})?) seconds"),
    ),
    (
        "out-of-memory",
        re.compile(
            r"^(?:Memory limit of [\d.]{1,12} ?\w{1,3} exceeded|The machine has run out of memory|Out of memory"
            r"|Out-of-memory event detected in container)"
        ),
    ),
    ("exited", re.compile(r"^Container called exit\((?P<code>\d{1,3})\)")),
    ("killed", re.compile(r"^Container terminated on signal (?P<signal>\d{1,2})\b")),
)


def word_of(entry: Entry) -> tuple[PlatformWord, re.Match[str] | None] | None:
    """What a line of the platform says, with its figures; None: a line that nobody has told us of."""
    for word, pattern in _TEXTS:
        match = pattern.search(entry.text)
        if match is not None:
            return word, match
    return ("preempted", None) if PREEMPTED_REASON in _reasons(entry) else None


def _reasons(entry: Entry) -> tuple[object, ...]:
    """Where a reason may stand: no public sample of a preemption is known, so all places that the shapes of other entries have."""
    return entry.labels.get("reason"), entry.labels.get("run.googleapis.com/reason"), entry.payload.get("reason")
