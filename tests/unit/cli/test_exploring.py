"""What a terminal or a log shows of an exploration."""

import io

import msgspec
import pytest
from rich.console import Console

from harness.cli.exploring import JudgingDisplay, print_exploration
from harness.clock import ManualClock
from harness.explore.result import Recorded, Surface
from harness.explore.states import Cause
from harness.verdict import Outcome
from tests.unit.explore.explorations import SAYS, Log, exploration, overwriting, prefixes, state, surface, undecided

REPORT = "runs/explore/x/report.html"
ATTACK = "\x1b]0;owned\x07[bold red]x[/] \x1b[2J\nverdict: valid"


def console(*, terminal: bool = False) -> tuple[Console, io.StringIO]:
    out = io.StringIO()
    return Console(file=out, width=60, force_terminal=terminal), out


def printed(found) -> list[str]:
    to, out = console()
    print_exploration(to, found, report=REPORT)
    return out.getvalue().splitlines()


def test_nothing_invalid_is_a_line_for_each_surface():
    log, _ = overwriting()
    states = prefixes(log, {})

    lines = printed(exploration(log, surface("posix", "process", log, states), surface("gcsfuse-flat", "node", log, states[:9])))

    assert lines == [
        "recorded 1 run, 3 saves, 13 operations in 4.10 s",
        "posix        process  23 kill points   23 states   23 valid",
        "gcsfuse-flat node      9 kill points    9 states   9 valid",
        f"verdict: valid                                     report: {REPORT}",
    ]


def test_what_a_reader_should_know_and_what_was_left_out_is_told_beside_a_valid_verdict():
    log, _ = overwriting()
    shown = surface("posix", "process", log, prefixes(log, {}))
    recorded = Recorded(seconds=4.1, operations=13, saves=3, notes=("while it saved, the job wrote `/data/metrics`",))

    lines = printed(exploration(log, shown, recorded=recorded, recoveries_cut=2))

    assert lines[1] == "  while it saved, the job wrote /data/metrics"
    assert lines[3] == "not looked at: crashes in 2 recoveries, for which the budget was spent"
    assert lines[4].startswith("verdict: valid")


def test_what_must_hold_stands_below_its_surface_with_how_to_see_it_again():
    log, wrong = overwriting()

    lines = printed(exploration(log, surface("posix", "process", log, prefixes(log, wrong)), outcome=Outcome.INVALID))

    assert lines[1:] == [
        "posix process  23 kill points   23 states   4 invalid",
        "  open ckpt/state.bin to write ckpt/state.sum must be atomic: 4 states lose acknowledged work, 4 cannot recover",
        "    smallest: killed after the 1st open ckpt/state.bin since save.begin 2: step 2 was acknowledged, step 0 was restored",
        "    replay: harness explore --replay runs/explore/x prefix-0010-",
        f"verdict: invalid                                   report: {REPORT}",
    ]


def test_the_same_on_another_surface_is_told_shorter():
    log, wrong = overwriting()
    states = prefixes(log, wrong)

    lines = printed(
        exploration(log, surface("posix", "process", log, states), surface("posix-weak", "node", log, states), outcome=Outcome.INVALID)
    )

    assert sum("must be atomic" in line for line in lines) == 2
    assert sum("replay:" in line for line in lines) == 1


def test_everything_unknown_says_why():
    log, _ = overwriting()
    states = [undecided(f"s{at}", log.moment(at), why="blind") for at in range(5)]
    shown = surface("posix", "process", log, states)

    lines = printed(
        exploration(log, shown, outcome=Outcome.UNKNOWN, blind=("process 7 mapped `state.bin`",), reasons=("the recording is blind",))
    )

    assert lines[1:] == [
        "  not seen: process 7 mapped state.bin",
        "posix process  5 kill points   5 states   5 unknown",
        "unknown: the recording is blind",
        f"verdict: unknown                                   report: {REPORT}",
    ]


def test_what_was_not_seen_is_told_once():
    why = "the output is buffered"

    lines = printed(exploration(Log(), outcome=Outcome.UNKNOWN, blind=(why,), reasons=(why, "it was interrupted")))

    assert [line.strip() for line in lines[1:-1]] == [f"not seen: {why}", "unknown: it was interrupted"]


def test_why_some_states_are_unknown_is_told_beside_what_is_wrong():
    log, wrong = overwriting()
    more = [undecided(f"u{at}", log.moment(at), why="nothing could be compared; name its `result`") for at in range(3)]
    shown = surface("posix", "process", log, [*prefixes(log, wrong), *more])

    lines = printed(exploration(log, shown, outcome=Outcome.INVALID))

    assert lines[-2:] == [
        "unknown: in 3 states: nothing could be compared; name its result",
        f"verdict: invalid                                   report: {REPORT}",
    ]


def test_without_operations_it_says_why():
    recorded = Recorded(seconds=2.0, operations=0, saves=1, is_exact=False, why_not="no seccomp")

    assert printed(exploration(Log(), outcome=Outcome.UNKNOWN, recorded=recorded)) == [
        "recorded 1 run, 1 save, no operations in 2.00 s",
        "  operations were not seen, only markers: no seccomp",
        f"verdict: unknown                                   report: {REPORT}",
    ]


def test_what_the_budget_cut_is_counted():
    log, _ = overwriting()
    shown = surface("posix", "process", log, prefixes(log, {}, unjudged=range(10, 23)), cut=13)

    lines = printed(exploration(log, shown, outcome=Outcome.UNKNOWN, budget="10 s"))

    assert lines[1].endswith("   10 valid, 13 not judged")
    assert lines[2] == "not judged: 13 states, the budget was 10 s"
    assert "not judged: 13 states, it was interrupted" in printed(exploration(log, shown, outcome=Outcome.UNKNOWN, budget=""))


def test_a_scope_that_leaves_the_same_states_says_so():
    log, _ = overwriting()
    same = Surface(model="gcsfuse-flat", scope="sidecar", kill_points=0, same_as="node", assumed=("sidecar-loses-open-files",))

    said = "gcsfuse-flat sidecar  leaves the same states as node (assumed: sidecar-loses-open-files)"
    assert said in printed(exploration(log, same))


def test_of_many_vulnerabilities_the_worst_are_told():
    log, wrong = Log(), {}
    for number in range(8):
        log.do("write", "fine")
        wrong[log.do("write", f"file-{number}")] = ["recovers"]
    log.do("write", "fine")

    lines = printed(exploration(log, surface("posix", "process", log, prefixes(log, wrong)), outcome=Outcome.INVALID))

    assert sum("must be atomic" in line for line in lines) == 5
    assert "  and 3 more in the report" in lines


def test_what_must_be_durable_before_the_same_operation_stands_together():
    log = Log()
    writes = [log.do("write", name) for name in "abcdefg"]
    rename = log.do("rename", "step_*")
    log.do("sync", ".")
    states = [
        state(f"no-{at}", log.moment(rename, Cause(kind="omitted", operation=at), assumed=("row",)), broken=["recovers"]) for at in writes
    ]

    lines = printed(exploration(log, surface("posix-weak", "node", log, [*prefixes(log, {}), *states]), outcome=Outcome.INVALID))

    earlier = "6 moments before were not judged, so it may have to be earlier"
    assert lines[2:] == [
        "  must be durable before rename step_*:",
        *(f"    write {name}: 1 state cannot recover (assumed: row)" for name in "abcde"),
        "    and 2 more in the report",
        f"    smallest: killed after the 1st rename step_* since start, write a not durable: {SAYS['recovers']}; {earlier}",
        "    replay: harness explore --replay runs/explore/x no-1",
        f"verdict: invalid                                   report: {REPORT}",
    ]


def test_what_is_told_of_the_job_is_only_counted_of_its_recoveries():
    log = Log()
    write, rename, said = log.do("write", "tmp"), log.do("rename", "tmp"), log.say("save.end")
    missing = Cause(kind="omitted", operation=write)

    def late(at: int, **fields: object) -> Surface:
        right = [state(f"right-{each}", log.moment(each, missing)) for each in range(write, at)]
        return surface(
            "posix-weak", "node", log, [*prefixes(log, {}), *right, state("late", log.moment(at, missing), broken=["recovers"])], **fields
        )

    job, one, other = late(rename), late(said, after="290a" * 8), late(said, after="82a5" * 8)
    lines = printed(exploration(log, job, one, other, outcome=Outcome.INVALID))
    only_in_recovery = printed(exploration(log, msgspec.structs.replace(job, vulnerabilities=()), one, other, outcome=Outcome.INVALID))

    assert sum("must be durable" in line for line in lines) == 1
    assert not any("crash in recovery" in line for line in lines)
    assert "crashes in 2 recoveries: 14 states: 12 valid, 2 invalid; 1 of what must hold is shown again" in lines
    assert sum("must be durable" in line for line in only_in_recovery) == 1
    assert "crash in recovery: posix-weak × node, in the recovery from 290a290a290a" in only_in_recovery


@pytest.mark.parametrize("terminal", [False, True])
def test_no_name_acts_on_the_terminal(terminal):
    log = Log()
    bad = log.do("write", ATTACK)
    log.do("write", f"{ATTACK} caf\udce9")
    shown = surface("posix", "process", log, prefixes(log, {bad: ["recovers"]}))
    (only,) = shown.vulnerabilities
    hostile = msgspec.structs.replace(only, replay=ATTACK, leads_to=ATTACK, assumed=(ATTACK,))
    both = [
        msgspec.structs.replace(hostile, rule="durable-before", first=first, says="a must be durable before b") for first in (ATTACK, "b")
    ]
    shown = msgspec.structs.replace(shown, vulnerabilities=(hostile, *both))
    found = exploration(log, shown, outcome=Outcome.INVALID, blind=(ATTACK,))
    to, out = console(terminal=terminal)

    print_exploration(to, found, report=ATTACK)

    printed_text = out.getvalue()
    assert "[bold red]x[/]" in printed_text
    assert "owned" not in printed_text
    assert "\x1b[2J" not in printed_text
    assert "\x1b]0" not in printed_text
    assert "verdict: valid" not in [line.strip() for line in printed_text.splitlines()]
    assert printed_text.encode()


def judging(clock: ManualClock, *, terminal: bool = False, budget_s: float | None = None):
    to, out = console(terminal=terminal)
    return JudgingDisplay(to, clock, 200, budget_s=budget_s), out


def test_the_first_state_that_breaks_a_promise_is_told_at_once():
    display, out = judging(ManualClock())
    with display:
        display.judged("posix × process", Outcome.VALID)
        display.judged("posix × process", Outcome.INVALID, "recovers", "the file `a` is empty")
        display.judged("posix × process", Outcome.INVALID, "recovers", "again")
        display.judged("gcsfuse-flat × node", Outcome.INVALID, "recovers", "there too")

    assert out.getvalue().splitlines() == [
        "invalid: posix × process: recovers: the file a is empty",
        "invalid: gcsfuse-flat × node: recovers: there too",
    ]


def test_in_a_log_progress_is_a_line_now_and_then():
    clock = ManualClock()
    display, out = judging(clock, budget_s=60.0)
    with display:
        for outcome in (Outcome.VALID, Outcome.INVALID, Outcome.UNKNOWN) * 4:
            clock.sleep(2.5)
            display.judged("posix × process", outcome)
        clock.sleep(1)
        display.ticked()

    assert out.getvalue().splitlines()[1:] == [
        "4 of 200 states known so far judged, 1 invalid, 1 unknown, 10.0 s of 60 s",
        "8 of 200 states known so far judged, 3 invalid, 2 unknown, 20.0 s of 60 s",
        "12 of 200 states known so far judged, 4 invalid, 4 unknown, 30.0 s of 60 s",
    ]


def test_on_a_terminal_the_line_changes_and_goes_away():
    clock = ManualClock()
    display, out = judging(clock, terminal=True)
    with display:
        clock.sleep(3)
        display.judged("posix × process", Outcome.VALID)
        assert display.line().plain == "1 of 200 states known so far judged, 3.00 s"

    assert "\x1b[2K" in out.getvalue().rpartition("judged")[2], "the line was not erased"


def test_a_state_that_shows_nothing_new_is_still_counted():
    display, _ = judging(ManualClock())
    for _ in range(3):
        display.judged("posix × process", Outcome.INVALID, "recovers", "x")

    assert display.line().plain == "3 of 200 states known so far judged, 3 invalid, 0 s"


def test_the_example_of_a_state_in_hundreds_is_one_line():
    log, wrong = overwriting(saves=100)
    states = [*prefixes(log, wrong), state("more", log.moment(0))]

    lines = printed(exploration(log, surface("posix", "process", log, states), outcome=Outcome.INVALID))

    assert len(lines) == 6
    assert lines[1].endswith("198 invalid")
