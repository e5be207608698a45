"""Entries of a Cloud Run job, read as the time-line of one execution.

An execution is told by its label, never by the job's name: entries of older executions stand beside it in a query by job.

Source: https://docs.cloud.google.com/run/docs/logging; shapes of public exports of Cloud Run job logs.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import msgspec

from harness.history import AttemptExited, AttemptStarted, Cause, Event, LogLine, SignalSent, SigtermSeen
from harness.incidents.entries import Entry, Export
from harness.incidents.execution_ends import ending_of, granted_by, is_refused, with_timeout
from harness.incidents.platform_texts import PREEMPTED_REASON, PlatformWord, word_of
from harness.incidents.sightings import Seen, UnknownEntries, in_order
from harness.incidents.timeline import AttemptStory, Ending, Granted, Timeline, was_cancelled
from harness.incidents.timestamps import NANOSECONDS
from harness.incidents.words import JobWords, WordReader

EXECUTION_LABEL = "run.googleapis.com/execution_name"
TASK_LABEL = "run.googleapis.com/task_index"
ATTEMPT_LABEL = "run.googleapis.com/task_attempt"
RESOURCE = "cloud_run_job"

TASK_DIGITS, ATTEMPT_DIGITS = 4, 3
"""Cloud Run grants 10,000 tasks and 10 retries; an index with more digits is no index.
Source: https://docs.cloud.google.com/run/docs/reference/rest/v2/projects.locations.jobs#TaskTemplate"""

_OUTPUT: Mapping[str, Literal["stdout", "stderr"]] = {"run.googleapis.com/stdout": "stdout", "run.googleapis.com/stderr": "stderr"}
_SYSTEM = ("run.googleapis.com/varlog/system", "run.googleapis.com//var/log/system")
"""The platform's own log has two names. Source: public lists of the logs of projects with jobs, and public exports."""
PLAYED_LOG, PLAYED_LABEL = "harness", "harness/played"
"""Where the harness writes what it plays in the platform's place, and the label that it bears there."""
_AUDIT = "cloudaudit.googleapis.com/"
_END_LOG = "cloudaudit.googleapis.com/system_event"
_KNOWN_METHODS = ("Jobs.RunJob", "Jobs.CreateJob", "Jobs.UpdateJob", "Jobs.ReplaceJob", "Executions.DeleteExecution", "Jobs.DeleteJob")
"""Acts of somebody that say nothing of how an execution went."""


def execution_of(entry: Entry) -> str:
    """The execution that an entry belongs to; empty where it belongs to none."""
    named = entry.labels.get(EXECUTION_LABEL, "")
    if named or entry.resource_type not in ("", RESOURCE):
        return named
    name = entry.payload.get("resourceName")
    return name.rpartition("/executions/")[2] if isinstance(name, str) and "/executions/" in name else ""


def read_execution(export: Export, execution: str, words: JobWords) -> Timeline:
    """The time-line of an execution that the export holds."""
    entries = [entry for entry in export.entries if execution_of(entry) == execution]
    reading = _Reading(epoch_ns=entries[0].t_ns, words=words)
    for entry in entries:
        reading.read(entry)
    for entry in export.entries:
        if not execution_of(entry) and entry.resource_type in (RESOURCE, ""):
            reading.unknown.add(entry, "of no execution")
            reading.unplaced_count += not entry.log.startswith(_AUDIT)  # what somebody did to the job is no word of an attempt
    stories = reading.stories()
    return Timeline(
        platform="cloud-run",
        name=execution,
        job=next((entry.resource["job_name"] for entry in entries if entry.resource.get("job_name")), execution),
        epoch_ns=entries[0].t_ns,
        export_end_ns=export.entries[-1].t_ns,
        seen=tuple(in_order([*reading.others, *(seen for story in stories for seen in story.seen)])),
        attempts=tuple(stories),
        granted=reading.granted,
        ending=reading.ending,
        cancel_asked=reading.cancel_asked,
        words=words,
        unknown=reading.unknown,
        entry_count=len(entries),
        unplaced_count=export.malformed_kinds + reading.unplaced_count,
    )


@dataclass(slots=True, kw_only=True)
class _Reading:
    """What was read of an execution so far."""

    epoch_ns: int
    words: JobWords
    unknown: UnknownEntries = field(default_factory=UnknownEntries)
    others: list[Seen] = field(default_factory=list)
    granted: Granted = field(default_factory=Granted)
    ending: Ending | None = None
    cancel_asked: Entry | None = None
    unplaced_count: int = 0
    _seen: dict[tuple[int, int], list[Seen]] = field(default_factory=lambda: defaultdict(list))
    _platform: dict[tuple[int, int], dict[PlatformWord, Entry]] = field(default_factory=lambda: defaultdict(dict))
    _readers: dict[tuple[int, int], WordReader] = field(default_factory=dict)

    def read(self, entry: Entry) -> None:
        """Read one entry."""
        if entry.log.startswith(_AUDIT):
            self._read_audit(entry)
            return
        place = _place_of(entry)
        if place is None:
            self.unknown.add(entry, f"{entry.log or 'no log'} without a task and an attempt")
            self.unplaced_count += 1
        elif entry.log in _OUTPUT:
            self._read_output(entry, place)
        elif entry.log in _SYSTEM or (entry.log == PLAYED_LOG and PLAYED_LABEL in entry.labels):
            self._read_system(entry, place)
        else:
            self.unknown.add(entry)

    def stories(self) -> list[AttemptStory]:
        """The attempts, complete: when each began, and who ended it."""
        places = sorted(self._seen)
        return [self._story(place, is_last=(place[0], place[1]) == max(each for each in places if each[0] == place[0])) for place in places]

    def _t_s(self, entry: Entry) -> float:
        return (entry.t_ns - self.epoch_ns) / NANOSECONDS

    def _line(
        self, entry: Entry, place: tuple[int, int], stream: Literal["stdout", "stderr", "system", "audit"], reason: str = ""
    ) -> LogLine:
        task, attempt = place
        return LogLine(
            t_s=self._t_s(entry), task=task, attempt=attempt, stream=stream, text=entry.text, severity=entry.severity, reason=reason
        )

    def _read_output(self, entry: Entry, place: tuple[int, int]) -> None:
        line = self._line(entry, place, _OUTPUT[entry.log])
        reader = self._readers.setdefault(place, WordReader(self.words))
        self._seen[place] += [Seen(line, entry), *(Seen(event, entry) for event in reader.read(line))]

    def _read_system(self, entry: Entry, place: tuple[int, int]) -> None:
        found = word_of(entry)
        reason = PREEMPTED_REASON if found is not None and found[0] == "preempted" else ""
        seen: list[Event] = [self._line(entry, place, "system", reason)]
        if found is None:
            self.unknown.add(entry, "a line of the platform's log that is not known")
        else:
            word, match = found
            self._platform[place].setdefault(word, entry)
            if match is not None and word in ("exited", "killed"):
                seen.append(self._exited(entry, place, match.groupdict()))
            elif match is not None and word == "timed-out":
                self.granted = with_timeout(self.granted, float(match["seconds"]))
        self._seen[place] += [Seen(event, entry) for event in seen]

    def _exited(self, entry: Entry, place: tuple[int, int], figures: Mapping[str, str]) -> AttemptExited:
        code, signal = figures.get("code"), figures.get("signal")
        return AttemptExited(
            t_s=self._t_s(entry),
            task=place[0],
            attempt=place[1],
            exit_code=None if code is None else int(code),
            signal=None if signal is None else int(signal),
        )

    def _read_audit(self, entry: Entry) -> None:
        method = entry.payload.get("methodName")
        method = method if isinstance(method, str) else ""
        ending = ending_of(entry) if entry.log == _END_LOG and method.endswith("Jobs.RunJob") else None
        if ending is not None:
            self.ending = ending
            self.granted = granted_by(entry, self.granted)
        elif method.endswith("CancelExecution"):
            if not is_refused(entry):
                self.cancel_asked = self.cancel_asked or entry
        elif not method.endswith(_KNOWN_METHODS):
            self.unknown.add(entry, f"{entry.log}: {method or 'no method'}")
        self.others.append(Seen(self._line(entry, (0, 0), "audit"), entry))

    def _story(self, place: tuple[int, int], *, is_last: bool) -> AttemptStory:
        task, number = place
        platform = self._platform[place]
        seen = _with_one_exit(in_order(self._seen[place]))
        plain = AttemptStory(task=task, number=number, seen=tuple(seen), platform=platform)
        is_cancelled = is_last and was_cancelled(self.cancel_asked, self.ending)
        notice, exit_ = _cause_of_notice(plain, is_cancelled=is_cancelled), _cause_of_exit(plain, is_cancelled=is_cancelled)
        begun = AttemptStarted(t_s=self._t_s(seen[0].entry), task=task, attempt=number, pid=0)
        told: list[Seen] = [Seen(begun, seen[0].entry)]
        for each in seen:
            if isinstance(each.event, AttemptExited):
                told.append(Seen(msgspec.structs.replace(each.event, cause=exit_, retried=not is_last), each.entry))
                continue
            if isinstance(each.event, SigtermSeen) and each.entry is plain.sigterm:
                sent = SignalSent(t_s=each.event.t_s, task=task, attempt=number, signal="SIGTERM", cause=notice, pids=())
                told.append(Seen(sent, each.entry))
            told.append(each)
        return AttemptStory(task=task, number=number, seen=tuple(told), platform=platform)


def _place_of(entry: Entry) -> tuple[int, int] | None:
    task = _index(entry.labels.get(TASK_LABEL, ""), TASK_DIGITS)
    attempt = _index(entry.labels.get(ATTEMPT_LABEL, ""), ATTEMPT_DIGITS)
    return None if task is None or attempt is None else (task, attempt)


def _index(text: str, digits: int) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= digits else None


def _with_one_exit(seen: Sequence[Seen]) -> list[Seen]:
    """Of several ends of one attempt only the last counts: a sidecar may end before the job.

    That which the harness has told counts before the platform's own: the container's exit code is that of the agent around the job, and 143
    does not say whether the job died of SIGTERM or left by itself.
    """
    ends = sorted((each for each in seen if isinstance(each.event, AttemptExited)), key=lambda each: PLAYED_LABEL in each.entry.labels)
    return [each for each in seen if not isinstance(each.event, AttemptExited) or each is ends[-1]]


def _cause_of_notice(story: AttemptStory, *, is_cancelled: bool) -> Cause:
    """Who sent SIGTERM: what the platform says of itself first; a job under no other threat was cancelled, where somebody cancelled."""
    if "timed-out" in story.platform:
        return "timeout"
    return "cancel" if is_cancelled and "preempted" not in story.platform else "platform"


def _cause_of_exit(story: AttemptStory, *, is_cancelled: bool) -> Cause:
    notice = _cause_of_notice(story, is_cancelled=is_cancelled)
    if story.succeeded and story.notice is None:
        return "job"
    if story.notice is not None:
        return "grace" if story.signal == 9 else notice
    if "out-of-memory" in story.platform or story.signal == 9:
        return "cancel" if is_cancelled else "platform"
    return "job"
