"""docs/fidelity.md says what the code says; ``python -m tests.docs.test_fidelity`` writes it anew."""

from pathlib import Path

from harness.scenario import GRACE_PROFILES
from harness.targets.docker.fidelity import FIDELITY as DOCKER
from harness.targets.kubernetes.fidelity import FIDELITY as KIND
from harness.targets.local.fidelity import FIDELITY as LOCAL

SECTIONS = {
    "Target `local`: Cloud Run jobs as processes": LOCAL,
    "Target `docker`: Cloud Run jobs as containers": DOCKER,
    "Target `kind`: jobs in the queues of a cluster": KIND,
}

PAGE = Path(__file__).resolve().parents[2] / "docs" / "fidelity.md"

HEAD = """# Fidelity

What is real, what is emulated, what is absent, and which conclusions therefore carry over to the real platform. The same rows stand in every report.
A value marked *unverified* was not found in a source for this very case; it is assumed from the nearest one.

This page is made from the code (`fidelity.py` of each of `harness/targets`, `harness/scenario/platform.py`); a test holds them together.
"""


def rendered() -> str:
    lines = [HEAD]
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


def _link(source: str) -> str:
    return f"[source]({source})" if source.startswith("http") else source


def test_the_page_says_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == rendered()


if __name__ == "__main__":
    PAGE.write_text(rendered(), encoding="utf-8")
