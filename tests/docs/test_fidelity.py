"""docs/fidelity.md says what the code says; ``python -m tests.docs.test_fidelity`` writes it anew."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clock import ManualClock
from harness.errors import CapabilityMissingError
from harness.runner import belongs_to
from harness.runner.binding import refuse_missing_capabilities
from harness.scenario import GRACE_PROFILES
from harness.targets import create
from harness.targets.docker.fidelity import FIDELITY as DOCKER
from harness.targets.gcp.fidelity import EMULATED_FIDELITY as GCP_EMULATED
from harness.targets.gcp.fidelity import FIDELITY as GCP
from harness.targets.kubernetes.fidelity import FIDELITY as KIND
from harness.targets.local.fidelity import FIDELITY as LOCAL
from scenarios import CATALOGUE
from tests.docs.target_tables import NAMES, WHY, difference_rows

SECTIONS = {
    "Target `local`: Cloud Run jobs as processes": LOCAL,
    "Target `docker`: Cloud Run jobs as containers": DOCKER,
    "Target `kind`: jobs in the queues of a cluster": KIND,
    "Target `gcp`: Cloud Run jobs on a project": GCP,
    "Target `gcp` on an emulator": GCP_EMULATED,
}

PAGE = Path(__file__).resolve().parents[2] / "docs" / "fidelity.md"

HEAD = """# Fidelity

What is real, what is emulated, what is absent, and which conclusions therefore carry over to the real platform. The same rows stand in every report.
A value marked *unverified* was not found in a source for this very case; it is assumed from the nearest one.

This page is made from the code (`fidelity.py` of each of `harness/targets`, `harness/scenario/platform.py`, what each target can do); a test holds them together.
"""

SAME = """## The same scenario on `local`, `docker` and `gcp`

It has the same verdict, checker by checker, and a job that completes leaves the same result, byte for byte:
`tests/integration/google/test_same_verdicts.py` runs scenarios of each kind on all three, `gcp` on the emulator, right jobs and wrong ones.
What differs is which scenarios are refused, before anything is begun; a batch (`--all`) leaves them out.
"""


def rendered() -> str:
    lines = [HEAD, SAME, *_differences(), ""]
    for title, rows in SECTIONS.items():
        lines += [
            f"## {title}",
            "",
            "| behaviour | here | what differs, and what cannot be concluded | source |",
            "| --- | --- | --- | --- |",
        ]
        for row in rows:
            here = row.here if row.verified else f"{row.here}, *unverified*"
            lines.append(f"| {row.what} | {here} | {row.note} | {_link(row.source)} |")
        lines.append("")
    lines += ["## Grace profiles", "", "| profile | signals | seconds | retry | source |", "| --- | --- | --- | --- | --- |"]
    for profile in GRACE_PROFILES:
        seconds = f"{profile.budget_s:g}" + ("" if profile.verified else ", *unverified*")
        lines.append(f"| `{profile.name}` | {profile.signals} | {seconds} | {profile.retry} | {profile.source} |")
    return "\n".join(lines) + "\n"


def _differences() -> Iterator[str]:
    head, *rows = difference_rows()
    for row in (head, ["---"] * len(head), *rows):
        yield f"| {' | '.join(row)} |"


def _link(source: str) -> str:
    return f"[source]({source})" if source.startswith("http") else source


def test_the_page_says_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == rendered()


@pytest.mark.parametrize("target", NAMES)
def test_a_scenario_that_is_refused_on_one_of_three_targets_is_refused_for_what_the_table_gives_a_reason_for(target: str) -> None:
    elsewhere = {name: create(name, ManualClock()) for name in NAMES}
    refused = [
        scenario
        for scenario in CATALOGUE.values()
        if any(belongs_to(scenario, other) for other in elsewhere.values()) and not belongs_to(scenario, elsewhere[target])
    ]
    assert bool(refused) == (target != "local")

    for scenario in refused:
        with pytest.raises(CapabilityMissingError) as told:
            refuse_missing_capabilities(scenario, elsewhere[target])
        assert any(f"({capability})" in str(told.value) for capability in WHY), told.value


if __name__ == "__main__":
    PAGE.write_text(rendered(), encoding="utf-8")
