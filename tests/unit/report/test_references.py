"""What a scenario's reason refers to is explained on the page."""

import msgspec

from harness.report.page import page_of
from harness.report.record import Record
from harness.report.references import GUIDE_B, references_of
from tests.unit.checkers.builders import resumed
from tests.unit.report.records import record_of


def because(why: str) -> Record:
    record = record_of(resumed())
    assert record.scenario is not None
    return Record(
        directory=record.directory,
        scenario=msgspec.structs.replace(record.scenario, why=why),
        history=record.history,
        verdict=record.verdict,
    )


def test_each_kind_of_reference_is_explained_once():
    told = references_of("guide B: quota; finding 8, cases 5, 14, finding 9")
    assert [sentence.split(" by")[0].split(" is")[0] for sentence in told] == ["A finding", "A case", "Guide B"]


def test_a_reason_without_references_needs_none():
    assert references_of("in case of a fault, and by the guide, 12 steps are lost") == ()


def test_the_page_explains_and_links_them():
    page = page_of(because("guide B: finding 8")).decode()
    assert f'href="{GUIDE_B}"' in page
    assert "docs/cases.md" in page
    assert "docs/cases.md" not in page_of(because("it must resume")).decode()
