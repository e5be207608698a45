"""docs/cases.md says what the code says; ``python -m tests.docs.test_cases`` writes it anew."""

from pathlib import Path

from scenarios import CATALOGUE
from scenarios.cases import CASES, FINDINGS
from workloads.broken import BROKEN

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cases.md"

HEAD = """# What breaks in public

Each row is a public report, or a finding of our own. Its kind of failure is caused by the scenarios named beside it, and rebuilt in small by the wrong jobs, which
must be caught (`make detection`). This page is made from `scenarios/cases.py`; a test holds them together.

| case | what broke | right | scenarios | wrong jobs |
| --- | --- | --- | --- | --- |
"""


def rendered() -> str:
    lines = []
    for number, case in CASES.items():
        name = f"[{number}]({case.link})" if case.link else str(number)
        scenarios = "<br>".join(scenario.name for scenario in CATALOGUE.values() if f"case-{number}" in scenario.tags)
        wrong = "<br>".join(f"`{job}`" for job, known in BROKEN.items() if number in known.cases)
        lines.append(f"| {name} | {case.broke} | {case.right} | {scenarios} | {wrong} |")
    findings = [f"| {number} | {text} |" for number, text in FINDINGS.items()]
    foot = "\n## Findings\n\nMeasured with ray 2.60.0, jax 0.10.2, orbax-checkpoint 0.12.8 and kueue v0.17.0; findings 10 and 12 are from Google's documentation.\n\n| finding | |\n| --- | --- |\n"
    return HEAD + "\n".join(lines) + "\n" + foot + "\n".join(findings) + "\n"


def test_the_page_says_what_the_code_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == rendered()


if __name__ == "__main__":
    PAGE.write_text(rendered(), encoding="utf-8")
