"""The page of a run: whole by itself, harmless whatever it shows, small however long the run, and there however little is left of it."""

import base64
import hashlib
import re
from dataclasses import replace
from html.parser import HTMLParser

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings

from harness.history import History, LogLine, RunOpened
from harness.report import write_run
from harness.report.page import page_of
from harness.report.record import Record, read_record
from harness.report.summary import Summary
from harness.store import RunDirectory
from harness.verdict import Finding, Outcome, merge
from tests.unit.checkers.builders import Run, resumed, scenario_of, uninterrupted
from tests.unit.report.events import TAME, WILD
from tests.unit.report.records import ASSUMED, INVALID, KILL, PLAYED, bare, keep, record_of

VOID = {"meta", "br", "input", "link", "img", "hr", "rect", "path", "circle"}
ATTACK = "</title></script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&"


class Reader(HTMLParser):
    """Elements, attributes and text of a page; unbalanced tags are an error."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID or tag in ("rect", "path"):
            self._open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self._open, f"</{tag}> closes nothing"
        assert self._open.pop() == tag, f"</{tag}> closes another element"

    def handle_data(self, data):
        self.text.append(data)

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def read(page: bytes) -> Reader:
    reader = Reader()
    reader.feed(page.decode())
    reader.close()
    assert reader._open == []
    return reader


def words(page: bytes) -> str:
    return re.sub(r"\s+", " ", "".join(read(page).text))


def test_a_page_is_whole_by_itself():
    page = read(page_of(record_of(resumed(), injections=(KILL,), fidelity=(PLAYED,))))

    loaded = [
        value
        for _, attributes in page.elements
        for name, value in attributes.items()
        if name in ("src", "srcset", "data", "poster", "action")
    ]
    assert loaded == []
    assert page.of("link") == []
    assert {attributes["href"] for attributes in page.of("a") if not (attributes["href"] or "").startswith("#")} == {
        "../../index.html",
        "https://example.org/a?b=1&c=2",
    }
    assert "@import" not in "".join(page.text)
    assert "url(" not in "".join(page.text).replace("url(#", "")


def test_a_page_forbids_everything_but_its_own_script():
    page = page_of(record_of(resumed())).decode()
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)

    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in policy.replace("&#39;", "'")
    assert "default-src 'none'" in policy.replace("&#39;", "'")


def test_no_element_acts_by_an_attribute():
    page = read(page_of(record_of(resumed(), injections=(KILL,))))

    assert [name for _, attributes in page.elements for name in attributes if name.startswith("on")] == []


def test_what_others_wrote_is_shown_and_does_nothing():
    run = resumed()
    run.here(LogLine, stream="stdout", text=ATTACK, reason=ATTACK, severity=ATTACK)
    run.add(
        RunOpened,
        schema=1,
        run_id=ATTACK,
        scenario=ATTACK,
        target=ATTACK,
        seed=0,
        opened_at=ATTACK,
        commit=ATTACK,
        argv=(ATTACK,),
        versions={ATTACK: ATTACK},
    )
    run.put(25, content=ATTACK).survey("end")
    verdict = merge([Finding(checker=ATTACK, outcome=Outcome.INVALID, reason=ATTACK, evidence=(ATTACK,), measures={ATTACK: 1.0})])
    hostile = msgspec.structs.replace(PLAYED, what=ATTACK, note=ATTACK, source=f"javascript:alert(1) {ATTACK}")
    scenario = scenario_of(run.workload, injections=(KILL,))
    record = Record(
        directory=RunDirectory(record_of(run).directory.path),
        scenario=msgspec.structs.replace(scenario, why=ATTACK, tags=(ATTACK,)),
        history=run.history(),
        verdict=verdict,
        fidelity=(hostile,),
        problems=(ATTACK,),
    )

    page = read(page_of(record))

    assert len(page.of("script")) == 1
    assert page.of("img") == []
    assert all((attributes["href"] or "").startswith(("https://", "#", "..")) for attributes in page.of("a"))
    assert [name for _, attributes in page.elements for name in attributes if name.startswith("on")] == []


def test_control_characters_do_not_reach_the_page():
    run = uninterrupted()
    run.here(LogLine, stream="stdout", text="a\x00b\x1b[31mred\x1b[0m\x07 \u202etxt.exe \ud800")

    page = page_of(record_of(run)).decode()

    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", page)
    assert "a␀bred␇" in page


def test_a_line_of_a_megabyte_is_cut():
    run = uninterrupted()
    run.here(LogLine, stream="stdout", text="x" * 1_000_000)

    page = page_of(record_of(run))

    assert len(page) < 200_000
    assert b"(1,000,000 characters)" in page


def test_the_verdict_comes_first_then_what_decided_it():
    page = words(page_of(record_of(resumed(), injections=(KILL,), verdict=INVALID)))

    order = ["The job broke 1 of 2 promises", "What decided it", "Time-line", "Other findings", "Where the time went", "The same run again"]
    assert [page.index(text) for text in order] == sorted(page.index(text) for text in order)


def test_evidence_is_open_where_it_decided_and_closed_elsewhere():
    verdict = merge([*INVALID.findings, Finding(checker="grace", outcome=Outcome.VALID, reason="kept", evidence=("line",))])
    page = page_of(record_of(resumed(), verdict=verdict)).decode()

    decided, others = page.split('id="timeline"')
    assert decided.count("<details open") == 1
    assert re.search(r'id="finding-grace".*?<details>', others, re.DOTALL)


def test_the_ledger_shows_that_it_adds_up():
    page = words(page_of(record_of(resumed())))

    assert re.search(r"sum of the ledger; wall time is (\d+\.\d+) s, so it adds up\s*\1\s*100%", page)


def test_what_is_assumed_is_marked():
    page = words(page_of(record_of(resumed(), fidelity=(PLAYED, ASSUMED))))

    assert page.count("assumed, not verified") == 1


def test_a_run_without_a_record_of_what_was_played_warns_instead():
    assert "conclude nothing about the real platform" in words(page_of(record_of(resumed())))


def test_the_commands_to_run_it_again_are_there():
    page = words(page_of(record_of(resumed())))

    path = "runs/a-job-is-judged/20260101T000000.000Z-0"
    assert f"sh {path}/replay.sh" in page
    assert f"harness replay {path}" in page


def test_the_scenario_is_there_to_its_last_character():
    record = record_of(resumed(), injections=(KILL,))
    long = msgspec.structs.replace(record.scenario, tags=tuple(f"tag-{number}" for number in range(5_000)))

    assert "tag-4999" in words(page_of(replace(record, scenario=long)))


def test_advice_says_what_is_measured_and_what_is_a_parameter():
    page = words(page_of(record_of(resumed())))

    assert "C = 0.10 s, the median of 4 saves" in page
    assert "it is a parameter of each row" in page


def test_a_page_and_its_summary_are_written_whole(tmp_path):
    directory = keep(tmp_path, resumed().events)

    assert write_run(directory) == directory.report_path
    assert msgspec.json.decode(directory.summary_path.read_bytes(), type=Summary).outcome == "valid"
    assert sorted(path.suffix for path in directory.path.iterdir() if path.name.endswith(".tmp")) == []


def test_an_empty_directory_has_a_page_too(tmp_path):
    directory = RunDirectory(tmp_path / "some-scenario" / "some-run")
    directory.path.mkdir(parents=True)

    page = words(write_run(directory).read_bytes())

    assert "Nothing is proved" in page
    assert "Nothing was recorded that has a place in time." in page


def test_a_job_that_says_nothing_is_shown_from_outside():
    run = Run(is_surveyed=False).attempt(0).exit(1).attempt(1).exit(0)

    page = words(page_of(record_of(run)))

    assert "attempt 1" in page
    assert "Storage was never looked at as a whole." in page


def test_a_hundred_thousand_events_fit_a_small_page():
    run = Run(is_surveyed=False)
    for number in range(4):
        run.attempt(number).begin()
        for step in range(1, 8_000):
            run.step(step, digests={}, batch_ids=())
            if step % 4 == 0:
                run.begin_save(step).here(LogLine, stream="stdout", text=f"saved {step}")
        run.killed()

    page = page_of(record_of(run))

    assert len(run.events) > 40_000
    assert len(page) < 400_000


@pytest.mark.parametrize("outcome", list(Outcome))
def test_each_outcome_is_said_in_words_and_not_by_a_colour_alone(outcome):
    verdict = merge([Finding(checker="c", outcome=outcome, reason="because")])

    page = read(page_of(record_of(resumed(), verdict=verdict)))

    assert "".join(page.text).count(str(outcome)) >= 2


@given(TAME)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_events_that_meet_can_be_shown(events):
    read(page_of(bare(*events)))


@given(TAME)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
def test_any_events_of_a_known_scenario_can_be_shown(events):
    read(page_of(replace(record_of(Run(), injections=(KILL,)), history=History(events=tuple(events)))))


@given(WILD)
@settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.function_scoped_fixture])
def test_any_history_on_disk_can_be_shown(tmp_path, events):
    directory = RunDirectory(tmp_path)
    directory.history_path.write_bytes(msgspec.json.Encoder().encode_lines(events))

    read(page_of(read_record(directory)))
