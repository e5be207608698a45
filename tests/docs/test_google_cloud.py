"""What docs/google-cloud.md shows is run, on the emulator; its numbers are those of the code."""

import re

import pytest

from harness.scenario import Scenario
from harness.targets.gcp import pace, target
from harness.targets.gcp.guard import ALLOWED_LABEL, ALLOWED_VALUE, RUN_LABEL, RUN_PREFIX
from harness.targets.gcp.lock_holders import LEASE_S, SKEW_S
from harness.targets.gcp.lock_objects import lock_name
from harness.targets.gcp.planning import EXPIRES_AFTER_S
from harness.targets.gke import target as gke_target
from scenarios import CATALOGUE
from tests.docs.pages import DOCS, files_of, matches, run_page

NAME = "google-cloud.md"
PAGE = (DOCS / NAME).read_text(encoding="utf-8")


def test_a_project_goes_from_a_plan_to_nothing_left(tmp_path, own_state, monkeypatch):
    for line, expected, printed in run_page(NAME, tmp_path, files=[files_of("own-job.md")]):
        assert matches(expected, printed), f"$ {line}\n{printed}"


SAID = {
    f"{ALLOWED_LABEL}={ALLOWED_VALUE}": True,
    f"{RUN_LABEL}=RUN_ID": True,
    f"{RUN_PREFIX}RUN_ID/": True,
    lock_name("PROJECT"): True,
    "within the hour": EXPIRES_AFTER_S == 3600,
    "for twelve minutes": LEASE_S + SKEW_S == 720,
    "up to four times a second": pace.PROJECT.reports_s == 0.25,
    "ten times a second": pace.PROJECT.look_every_s == 0.1,
    "a read every three seconds": pace.PROJECT.log_s == 3.0,
    "40 a minute while there is more than a page": pace.PROJECT.log_page_s == 60 / 40,
    "495 s on Cloud Run": target.ENDING_S_MAX == 495.0,
    "69 minutes on a cluster": gke_target.ENDING_S_MAX == 69 * 60.0,
}
"""What the page says, and whether the code does."""


@pytest.mark.parametrize("words", SAID)
def test_what_it_says_is_what_the_code_does(words: str):
    assert words in " ".join(PAGE.split())
    assert SAID[words]


def test_the_scenario_that_it_names_is_one():
    (name,) = re.findall(r"^\$ harness run --target gcp --emulator (\S+)$", PAGE, re.MULTILINE)

    assert isinstance(CATALOGUE[name], Scenario)
