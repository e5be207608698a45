"""What docs/reproduce.md shows is run, and what it lists is all that can be found."""

import re
from typing import get_args

from harness.incidents.advice import ADVICE
from harness.incidents.diagnosis import DiagnosisKind
from tests.docs.pages import DOCS, files_of, matches, run_page

PAGE = "reproduce.md"


def test_an_incident_goes_from_an_export_to_a_run_of_its_scenario(tmp_path):
    for line, expected, printed in run_page(PAGE, tmp_path, files=[files_of("own-job.md")]):
        assert matches(expected, printed), f"$ {line}\n{printed}"


def test_every_diagnosis_is_listed_and_has_advice():
    section = (DOCS / PAGE).read_text(encoding="utf-8").partition("## What can be found")[2].partition("\n## ")[0]
    rows = [line.split("|")[1] for line in section.splitlines() if line.startswith("| `")]

    assert {name for row in rows for name in re.findall(r"`([a-z0-9-]+)`", row)} == set(get_args(DiagnosisKind)) == set(ADVICE)
