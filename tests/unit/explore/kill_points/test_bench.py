"""What a kill point came to, in words: what to mend comes first."""

from pathlib import Path

import pytest

from harness.explore.kill_points import KillPointRun
from harness.explore.result import Vulnerability
from harness.store import RunDirectory
from harness.verdict import Finding, Outcome, merge

REPLAY = "harness explore --replay runs/explore-job/r 290a"


def run(outcome: Outcome, *reasons: str, vulnerabilities: tuple[Vulnerability, ...] = ()) -> KillPointRun:
    findings = [Finding(checker="recovers", outcome=outcome, reason=reason, evidence=("290a",)) for reason in reasons]
    right = Finding(checker="kill-points", outcome=Outcome.VALID, reason="recovery keeps every promise", evidence=("0000",))
    return KillPointRun(
        id="job:posix:node:start",
        verdict=merge([*findings, right]),
        directory=RunDirectory(Path("runs/explore-job/r")),
        vulnerabilities=vulnerabilities,
        replay=REPLAY,
    )


def test_a_failure_begins_with_what_to_mend_and_tells_each_state_by_its_kill_point_only() -> None:
    rule = Vulnerability(rule="durable-before", says="`write a` must be durable before `rename a`", example="killed after the 1st rename a")

    told = run(Outcome.INVALID, "recovery failed with exit code 1", "step 2 was lost", vulnerabilities=(rule,)).explain()

    assert told.splitlines() == [
        "`write a` must be durable before `rename a`",
        "  killed after the 1st rename a",
        "job:posix:node:start: invalid, 3 crash states, 2 wrong",
        f"  replay: {REPLAY}",
    ]


@pytest.mark.parametrize("outcome", [Outcome.UNKNOWN, Outcome.INVALID], ids=str)
def test_what_no_rule_was_made_of_gives_its_first_reasons(outcome: Outcome) -> None:
    told = run(outcome, "no a", "no a", "no b", "no c", "no d", "no e").explain()

    assert told.splitlines() == [
        f"job:posix:node:start: {outcome}, 7 crash states",
        *("  no a", "  no b", "  no c", "  and 2 other reasons"),
        f"  replay: {REPLAY}",
    ]


def test_a_valid_one_needs_no_replay() -> None:
    assert run(Outcome.VALID).explain() == "job:posix:node:start: valid, 1 crash state"
