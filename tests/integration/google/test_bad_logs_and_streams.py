"""A run on Google Cloud while answers are partial, slow or cut off, tokens expire, and its log is late, long or without end."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace as changed
from pathlib import Path

import pytest
from msgspec.structs import replace

from harness.emulator import Emulator, InjectedFault
from harness.emulator.failures import invalid_argument
from harness.emulator.logging import listing
from harness.emulator.logging.disturbances import Disturbance
from harness.emulator.logging.notices import lost_notice
from harness.emulator.session import PROJECT
from harness.gate.measuring import measure
from harness.history import AttemptExited, ExecutionStarted, LogLine, ObservationLost, RunClosed, StepDone
from harness.protocol.lines import LOG_LINE_BYTES_MAX
from harness.report.record import read_record
from harness.runner import Run
from harness.scenario import Injection, Scenario
from harness.scenario.expectations import Completes, LogOrder, WithinRetries
from harness.scenario.faults import Kill
from harness.scenario.triggers import AtStep
from harness.targets.gcp import bucket, log_following, log_reader, log_reading, target
from harness.targets.gcp.connection import Clients, connect
from harness.verdict import Outcome
from scenarios.jobs import COUNTER
from tests.integration.google.conftest import RunIt, jobs_left, objects_left
from tests.integration.google.same_scenarios import AT_SOME_STEP, FOLLOWED, ON_ITS_WORDS

ROOT = Path(__file__).resolve().parents[3]

LIST_ENTRIES = "google.logging.v2.LoggingServiceV2/ListLogEntries"

KILLED = Scenario(
    name="a-killed-job-is-tried-again",
    why="a host error",
    workload=replace(COUNTER, steps=10, environment={"STEPS": "10", "STEP_SECONDS": "0.02", "SAVE_EVERY": "5"}),
    injections=(Injection(fault=Kill(), at=AtStep(step=7)),),
    expects=(Completes(), WithinRetries(attempts_max=2), LogOrder(patterns=(r"^Resuming from",))),
    deadline_s=90.0,
)
"""What is promised rests on what the job says, on storage, and on the log."""

UNSAID = replace(KILLED, expects=(Completes(), WithinRetries(attempts_max=2), LogOrder(patterns=(r"^Nobody says this",))))
"""Invalid by a log that is whole; by one that is not, nobody knows."""


SILENT = replace(
    KILLED,
    name="a-killed-job-that-is-followed-by-its-log-resumes",
    workload=FOLLOWED,
    injections=(AT_SOME_STEP,),
    expects=ON_ITS_WORDS,
)
"""What is promised rests on the log alone, but for storage."""


class When:
    """Does something once, at the first event of a kind."""

    def __init__(self, kind: type, act: Callable[[], None]) -> None:
        self._kind, self._act, self._is_done = kind, act, False

    def waits(self, scenario: Scenario, why: str) -> None:
        pass

    def saw(self, scenario: Scenario, events: object) -> None:
        if not self._is_done and any(isinstance(event, self._kind) for event in events):  # type: ignore[attr-defined]
            self._is_done = True
            self._act()


def printed(run: Run) -> list[str]:
    return [event.text for event in run.history.events if isinstance(event, LogLine) and event.stream == "stdout"]


def lost(run: Run) -> list[str]:
    return [event.detail for event in run.history.events if isinstance(event, ObservationLost) and event.what == "logs"]


def assert_nothing_is_left(emulator: Emulator) -> None:
    assert jobs_left() == []
    assert objects_left(emulator) == []


# ---- answers ---------------------------------------------------------------------------------------------------------

READS = [LIST_ENTRIES, "storage.objects.list", "storage.objects.get", "google.cloud.run.v2.Tasks/ListTasks"]

TROUBLES = {
    "cut short": {"is_partial": True},
    "slow": {"delay_s": 0.3},
    "dropped before": {"drop": "before"},
    "dropped after": {"drop": "after"},
}


@pytest.mark.parametrize("trouble", TROUBLES)
def test_answers_that_are_partial_slow_or_cut_off_cost_nothing_that_was_seen(run_it: RunIt, emulator: Emulator, trouble: str):
    for method in READS:
        emulator.world.injections.add(InjectedFault(method=method, nth=3, times=2, **TROUBLES[trouble]))

    run = run_it(KILLED)

    assert run.verdict.is_valid, run.explain()
    struck = [fault.method for fault, count in emulator.world.injections.all() if count >= 3]
    assert struck == READS
    assert max(Counter(printed(run)).values()) == 1
    assert_nothing_is_left(emulator)


def test_a_token_that_expires_while_the_job_runs_is_renewed(run_it: RunIt, emulator: Emulator, monkeypatch: pytest.MonkeyPatch):
    renewed: list[str] = []

    def renew() -> None:
        renewed.append("again")
        emulator.world.callers.renew("")

    def connected(*asked: object) -> Clients:
        return changed(connect(*asked), renew=renew)  # type: ignore[arg-type]

    monkeypatch.setattr(target, "connect", connected)
    run = run_it(KILLED, progress=When(ExecutionStarted, lambda: emulator.world.callers.expire("")))

    assert run.verdict.is_valid, run.explain()
    assert renewed
    assert any(call.outcome == "UNAUTHENTICATED" for call in emulator.world.calls.all())


# ---- the log ---------------------------------------------------------------------------------------------------------


def test_a_token_of_a_page_of_the_log_that_has_expired_costs_no_line(run_it: RunIt, emulator: Emulator, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(log_reading, "PAGE_ENTRIES", 2)
    place_of, tokens = listing._place, list[str]()

    def expiring(query: listing.Query) -> object:
        tokens.extend([query.page_token] if query.page_token else [])
        if query.page_token and len(tokens) % 3 == 0:
            raise invalid_argument("page_token", "it has expired")
        return place_of(query)

    monkeypatch.setattr(listing, "_place", expiring)
    run = run_it(KILLED)

    assert run.verdict.is_valid, run.explain()
    assert lost(run) == []
    assert max(Counter(printed(run)).values()) == 1
    assert "INVALID_ARGUMENT" in [call.outcome for call in emulator.world.calls.all()]


def test_a_line_that_is_not_in_a_whole_log_was_not_said(run_it: RunIt):
    assert run_it(UNSAID).verdict.outcome is Outcome.INVALID


def test_entries_of_a_megabyte_are_cut_and_told_and_nothing_rests_on_them(run_it: RunIt, emulator: Emulator):
    emulator.log.disturb(Disturbance(padded_bytes=1 << 20, filter='textPayload:"Resuming"'))

    run = run_it(UNSAID)

    assert run.verdict.outcome is Outcome.UNKNOWN, run.explain()
    assert any("longer than a line may be" in detail for detail in lost(run))
    assert max(len(text) for text in printed(run)) <= LOG_LINE_BYTES_MAX


def test_a_log_that_is_longer_than_what_is_read_of_it_is_told_and_nothing_rests_on_it(
    run_it: RunIt, emulator: Emulator, monkeypatch: pytest.MonkeyPatch
):
    for module in (log_reader, log_following):
        monkeypatch.setattr(module, "ENTRIES_MAX", 4)

    run = run_it(UNSAID)

    assert run.verdict.outcome is Outcome.UNKNOWN, run.explain()
    assert [detail for detail in lost(run) if "4 log entries" in detail] == lost(run)
    assert len(printed(run)) <= 4
    system = [event.text for event in run.history.events if isinstance(event, LogLine) and event.stream == "system"]
    assert any("exit(0)" in text for text in system), "the platform's own line is read all the same"
    assert_nothing_is_left(emulator)


def test_entries_that_the_emulator_has_lost_are_told_and_nothing_rests_on_the_log(run_it: RunIt, emulator: Emulator):
    def tell(events: list[str]) -> Callable[[], None]:
        def act() -> None:
            (name,) = {call.resource for call in emulator.world.calls.all() if "/executions/" in call.resource}
            emulator.log.append([lost_notice(PROJECT, name.rpartition("/")[2], count=7, why="no room")])
            events.append(name)

        return act

    told: list[str] = []
    run = run_it(UNSAID, progress=When(AttemptExited, tell(told)))

    assert told
    assert run.verdict.outcome is Outcome.UNKNOWN, run.explain()
    assert any("no room" in detail for detail in lost(run))


def test_a_log_that_cannot_be_read_to_its_end_when_all_is_over_is_a_gap(run_it: RunIt, monkeypatch: pytest.MonkeyPatch):
    def endless(reader: log_reader.LogReader, deadline_s: float = 0.0) -> log_reader.Entries:
        return []

    monkeypatch.setattr(log_reader.LogReader, "look_back", endless)
    monkeypatch.setattr(target, "EMULATED", changed(target.EMULATED, last_look_s_max=0.5))
    run = run_it(UNSAID)

    assert run.verdict.outcome is Outcome.UNKNOWN, run.explain()
    assert any("had not come to its end" in detail for detail in lost(run))


def test_a_job_whose_log_comes_after_its_deadline_has_kept_it(run_it: RunIt, emulator: Emulator):
    emulator.log.disturb(Disturbance(late_s=9.0, filter='logName:"cloudaudit"'))
    left_alone = replace(KILLED, injections=(), expects=(Completes(), WithinRetries(attempts_max=1)), deadline_s=6.0)

    run = run_it(left_alone)

    (closed,) = [event for event in run.history.events if isinstance(event, RunClosed)]
    assert run.verdict.is_valid, run.explain()
    assert closed.reason == "finished"
    assert closed.t_s > left_alone.deadline_s


OF_THE_FIRST = 'labels."run.googleapis.com/task_attempt"="0"'


def test_what_a_job_says_in_its_log_is_judged_where_none_of_it_is_lost(run_it: RunIt):
    run = run_it(SILENT)

    assert run.verdict.is_valid, run.explain()
    assert measure(read_record(run.directory))["lost_steps"].missing == ""


def test_lines_of_a_followed_job_that_never_come_are_its_words_and_nothing_rests_on_them(run_it: RunIt, emulator: Emulator):
    emulator.log.disturb(Disturbance(copies=0, filter=f'{OF_THE_FIRST} AND textPayload=~"^step [12][0-9]"'))
    emulator.log.disturb(Disturbance(copies=0, filter=f'{OF_THE_FIRST} AND logName:"varlog"'))
    emulator.log.disturb(Disturbance(copies=0, filter='textPayload:"terminated"'))

    run = run_it(SILENT)

    assert lost(run)
    assert max(event.step for event in run.history.events if isinstance(event, StepDone) and event.attempt == 0) < 20
    outcomes = {finding.checker: finding.outcome for finding in run.verdict.findings}
    assert {outcomes[name] for name in ("resumes-from-newest-durable", "makes-progress", "recording")} == {Outcome.UNKNOWN}, run.explain()
    assert {figure.value for figure in measure(read_record(run.directory)).values()} == {None}
    assert all(figure.missing for figure in measure(read_record(run.directory)).values())


def test_an_interrupt_reads_neither_the_log_nor_checkpoints_any_more(run_it: RunIt, emulator: Emulator, monkeypatch: pytest.MonkeyPatch):
    """However long the log is, and however large they are: who interrupts waits half a minute."""
    read: list[str] = []
    monkeypatch.setattr(log_reader.LogReader, "look_back", lambda *_: read.append("log") or [])
    read_file = bucket.BucketPrefix.read_file

    def noting(prefix: bucket.BucketPrefix, *asked: object, **more: object) -> bool:
        read.append("checkpoint")
        return read_file(prefix, *asked, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(bucket.BucketPrefix, "read_file", noting)

    def interrupt() -> None:
        read.clear()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_it(KILLED, progress=When(AttemptExited, interrupt))

    assert read == []
    assert_nothing_is_left(emulator)
