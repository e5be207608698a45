"""The summary: what fails on top, short enough for a comment, and nothing that others wrote is markup."""

import re

import msgspec
import pytest

from harness.gate.figures import Figure
from harness.gate.judging import judge
from harness.gate.markdown import COMMENT_MAX, write_markdown, write_without_result
from harness.gate.standards import standards_of
from harness.verdict import Outcome
from tests.unit.gate.results import NAME, accepted, config, measured, run, scenario


def markdown(*scenarios, of=None, **fields):
    found = measured(*scenarios, **fields)
    asked = standards_of(config(), NAME)
    return write_markdown(found, judge(found, {each.name: asked for each in scenarios}, of), of)


def test_a_passing_gate_is_a_table_with_what_was_accepted_and_the_change():
    text = markdown(scenario(run(recovery_s=2.5, grace_margin_s=None)), of=accepted(grace_margin_s=8.0), duration_s=61.0)

    assert text.splitlines()[0] == "## The release gate is unknown on target `local`"
    assert "1 scenario: 1 unknown; compared with the result accepted on `2026-01-01`; 61 s." in text
    assert (
        f"| unknown | `{NAME}` | valid | 3 (accepted 3, ±0) | 2.50 s (accepted 2.00 s, +0.50 s) | 50% (accepted 50%, ±0.0 points) "
        "| **-** (accepted 8.00 s) |" in text
    )


def test_what_fails_stands_first_then_what_is_unknown():
    text = markdown(
        scenario(run(), name="c-passes"),
        scenario(run(Outcome.UNKNOWN, ("landed: nothing was seen",)), name="b-unknown"),
        scenario(run(Outcome.INVALID, ("resumes: step 5 was lost",)), name="a-fails"),
    )

    order = [
        text.index(words) for words in ("### What fails", "step 5 was lost", "### What is unknown", "nothing was seen", "| scenario |")
    ]
    assert order == sorted(order)
    assert re.findall(r"^\| (\w+) \| `", text, re.MULTILINE) == ["fail", "unknown", "pass"]


def test_what_was_not_measured_is_a_question_mark():
    assert re.search(r"\| \? \|", markdown(scenario(run(goodput=Figure(missing="no step")))))


HOSTILE = "a | b\n# heading\n<img src=x> @everybody #12 [x](http://evil) `code` ``` \x1b[31m ** \u202e"


def test_what_a_job_says_is_code_and_nothing_else():
    text = markdown(scenario(run(Outcome.INVALID, (HOSTILE,))))

    (line,) = [line for line in text.splitlines() if "everybody" in line]
    assert re.fullmatch(r"  - `[^`]*`", line)
    assert not set("\x1b\u202e|") & set(line)
    assert "\n# heading" not in text


LINKED = "https://evil.example www.evil.example GH-12 me@evil.example 0123456789abcdef0123456789abcdef01234567 ` *star*"


def test_what_documents_say_is_code_wherever_it_stands():
    of = msgspec.structs.replace(
        accepted(name=f"gone {LINKED}"), made_at=LINKED, commit=LINKED, versions={LINKED: LINKED}, surroundings={"at": LINKED}
    )
    of.scenarios[NAME] = msgspec.structs.replace(accepted().scenarios[NAME], seeds=(5,))
    new = scenario(run(goodput=Figure(missing=LINKED)), name=f"new {LINKED}")
    others = accepted(target=f"gcp {LINKED}")
    texts = [
        markdown(scenario(run()), new, of=of, stopped=LINKED),
        markdown(scenario(run()), of=others),
        write_without_result(LINKED),
        write_markdown(
            found := msgspec.structs.replace(measured(scenario(run())), target=LINKED),
            judge(found, {NAME: standards_of(config(), NAME)}, None),
            None,
        ),
    ]

    for text in texts:
        assert "evil.example" in text
        outside = re.sub(r"`[^`\n]*`", "", text)
        for piece in ("evil", "www", "GH-", "@", "0123456", "star", "`"):
            assert piece not in outside.replace("`gate.json`", ""), (piece, outside)


def test_what_makes_a_gate_unknown_as_a_whole_stands_above_the_table():
    text = markdown(scenario(run()), of=accepted(target="gcp"))

    assert text.startswith("## The release gate is unknown on")
    assert text.index("- **unknown**: not compared: the accepted result is of target `gcp`") < text.index("| scenario |")


@pytest.mark.parametrize("outcome", list(Outcome))
@pytest.mark.parametrize("count", [1, 30, 1500])
def test_it_fits_into_a_comment_and_what_has_no_room_is_counted(outcome, count):
    reasons = tuple(f"{number}: {'ü' * 1000}" for number in range(20))
    scenarios = [scenario(run(outcome, reasons), name=f"scenario-{number}-{'x' * 90}") for number in range(count)]
    text = markdown(*scenarios)

    assert len(text.encode()) <= COMMENT_MAX
    rows = len(re.findall(r"^\| (?:pass|fail|unknown) \|", text, re.MULTILINE))
    left = sum(int(found.replace(",", "")) for found in re.findall(r"… ([\d,]+) more scenarios?, in `gate.json`", text))
    assert rows > 0
    assert rows + left == count


def test_a_failing_scenario_keeps_its_place_where_many_pass():
    many = [scenario(run(), name=f"scenario-{number}-{'x' * 90}") for number in range(1500)]
    text = markdown(*many, scenario(run(Outcome.INVALID, ("it broke",)), name="the-last-one-fails"))

    assert "it broke" in text
    assert re.search(r"^\| fail \| `the-last-one-fails`", text, re.MULTILINE)
