"""The few sentences that hundreds of states come to."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.explore.judgement import Broken
from harness.explore.result import Strip
from harness.explore.states import Cause
from harness.explore.vulnerabilities import find_vulnerabilities, replay_command
from harness.verdict import Outcome
from tests.unit.explore.explorations import RUN, SAYS, Log, overwriting, prefixes, state, undecided

ROWS = ("rename of a directory is object by object",)


def found(log, states):
    return find_vulnerabilities(states, log.strips, run_directory=RUN)


def says(log, states):
    return [each.says for each in found(log, states)]


def test_nothing_wrong_shows_nothing():
    log, _ = overwriting()

    assert found(log, prefixes(log, {})) == ()


def test_a_stretch_of_wrong_prefixes_is_one_thing_that_must_be_atomic():
    log, wrong = overwriting(saves=2)

    (only,) = found(log, prefixes(log, wrong))

    assert only.rule == "atomic"
    assert only.says == "`open ckpt/state.bin` to `write ckpt/state.sum` must be atomic"
    assert (only.first, only.second, only.marker) == ("open ckpt/state.bin", "write ckpt/state.sum", "save.begin")
    assert only.promises == ("keeps-what-was-acknowledged", "recovers")


def test_the_same_in_three_saves_is_told_once_with_all_its_states():
    log, wrong = overwriting(saves=4)
    states = prefixes(log, wrong)

    (only,) = found(log, states)

    assert only.states == tuple(each.state for each in states if each.outcome is Outcome.INVALID)
    assert len(only.states) == 6


def test_one_state_at_many_moments_counts_once():
    log, _ = overwriting(saves=3)
    opens = [strip.index for strip in log.strips if strip.kind == "open"]
    good = state("good", *(log.moment(at) for at in range(len(log.strips) + 1) if at not in opens))

    (only,) = found(log, [good, state("empty", *(log.moment(at) for at in opens), broken=["recovers"])])

    assert only.says == "`open ckpt/state.bin` to `write ckpt/state.bin` must be atomic"
    assert only.states == ("empty",)


def test_the_smallest_state_is_told_in_words_and_can_be_replayed():
    log, wrong = overwriting()
    states = prefixes(log, wrong)

    (only,) = found(log, states)

    smallest = next(each for each in states if each.outcome is Outcome.INVALID)
    assert only.states[0] == smallest.state
    assert only.example == f"killed after the 1st `open ckpt/state.bin` since `save.begin` 2: {SAYS['keeps-what-was-acknowledged']}"
    assert only.replay == f"harness explore --replay {RUN} {smallest.state[:12]}"


def test_what_was_acknowledged_too_early_must_be_durable_before_the_word():
    log = Log()
    log.say("save.begin")
    log.do("write", "tmp")
    acknowledged = log.say("save.end")
    log.do("rename", "step_*")

    (only,) = found(log, prefixes(log, {acknowledged: ["keeps-what-was-acknowledged"]}))

    assert (only.rule, only.first, only.second) == ("durable-before", "rename step_*", "save.end")
    assert only.says == "`rename step_*` must be durable before the job says `save.end`"


def missing(saves: int, *, kind: str = "omitted", part: str = ""):
    """A write that is not synced before the rename that makes it visible, in some saves."""
    log, states = Log(), []
    for _ in range(saves):
        log.say("save.begin")
        write = log.do("write", "step_*.tmp/data")
        later = [log.do("fsync", "step_*.tmp/index"), log.do("rename", "step_*.tmp"), log.do("fsync", ".")]
        log.say("save.end")
        cause = Cause(kind=kind, operation=write, part=part)
        states.append(state(f"early-{write}", log.moment(later[0], cause)))
        states += [state(f"late-{at}", log.moment(at, cause), broken=["recovers"]) for at in later[1:]]
    return log, [*prefixes(log, {}), *states]


@pytest.mark.parametrize("kind", ["omitted", "torn"])
def test_what_is_missing_must_be_durable_before_the_operation_at_which_it_turns_bad(kind):
    (only,) = found(*missing(3, kind=kind))

    assert only.rule == "durable-before"
    assert only.says == "`write step_*.tmp/data` must be durable before `rename step_*.tmp`"
    assert len(only.states) == 6


def test_an_open_file_that_is_not_published_must_be_closed_before_the_operation_at_which_it_turns_bad():
    (only,) = found(*missing(3, kind="vanished"))

    assert only.rule == "closed-before"
    assert only.says == ("`step_*.tmp/data` must be closed before `rename step_*.tmp`: an open file is published only when it is closed")
    assert len(only.states) == 6


def test_a_window_that_one_save_shows_in_full_is_told_without_doubt_and_answers_for_the_others():
    log, wrong = overwriting(saves=3)
    later = max(wrong)
    states = prefixes(log, {at: wrong[at] for at in wrong if at != later}, unjudged=range(later, len(log.strips) + 1))

    (only,) = found(log, states)

    assert only.says == "`open ckpt/state.bin` to `write ckpt/state.sum` must be atomic"
    assert "not judged" not in only.example
    assert len(only.states) == 3


def test_what_is_missing_is_not_blamed_where_recovery_is_wrong_with_it_too():
    log, states = missing(1)
    rename = next(strip.index for strip in log.strips if strip.kind == "rename")
    states = [each for each in states if each.at != rename or each.cause.kind != "prefix"]
    states.append(state("all-there", log.moment(rename), broken=["recovers"]))
    states = [each for each in states if each.cause.kind == "prefix" or each.at <= rename]

    (only,) = found(log, states)

    assert only.says == "`rename step_*.tmp` to `fsync .` must be atomic"
    assert set(only.states) == {"all-there", f"late-{rename}"}


def test_parts_of_an_operation_are_looked_at_one_by_one():
    log, states = missing(1)
    write = next(strip.index for strip in log.strips if strip.kind == "write")
    whole = [state(f"half-{at}", log.moment(at, Cause(kind="torn", operation=write, part="half"))) for at in range(write + 1, write + 4)]

    assert says(log, [*states, *whole]) == ["`write step_*.tmp/data` must be durable before `rename step_*.tmp`"]


def two_missing(log, first: int, second: int) -> Cause:
    return Cause(kind="omitted", operation=first, part=f"and {second} half")


def test_of_two_that_are_missing_the_one_that_is_harmful_alone_is_blamed():
    log, states = missing(1)
    write = next(strip.index for strip in log.strips if strip.kind == "write")
    log.do("write", "harmless")
    late = [each for each in states if each.cause.kind == "omitted" and each.outcome is Outcome.INVALID]
    both = [state(f"both-{each.state}", log.moment(each.at, two_missing(log, write - 1, write)), broken=["recovers"]) for each in late]

    (only,) = found(log, [*states, state("end", log.moment(len(log.strips))), *both])

    assert only.says == "`write step_*.tmp/data` must be durable before `rename step_*.tmp`"
    assert len(only.states) == 4


def test_two_that_are_harmful_only_together_are_named_together():
    log = Log()
    first, second, rename = log.do("write", "a"), log.do("write", "b"), log.do("rename", "step_*")
    log.do("sync", ".")
    both = state("both", log.moment(rename, two_missing(log, first, second)), broken=["recovers"])
    one = state("one", log.moment(rename, Cause(kind="omitted", operation=first)))

    assert says(log, [*prefixes(log, {}), one, both]) == ["`write a or write b` must be durable before `rename step_*`"]


def test_a_printed_acknowledgement_is_a_word_too():
    log = Log()
    log.do("write", "tmp")
    printed = msgspec.structs.replace(log.moment(0), at=2)
    log.strips.append(Strip(index=3, kind="rename", path_class="step_*", marker="start"))
    states = [state("before", log.moment(0), log.moment(1)), state("said", printed, broken=["keeps-what-was-acknowledged"])]
    after = msgspec.structs.replace(log.moment(1), at=3)

    assert says(log, [*states, state("after", after)]) == ["`rename step_*` must be durable before the job says `saved`"]


def test_a_state_right_after_a_word_is_told_by_the_word():
    log = Log()
    log.say("save.begin")
    said = log.say("save.end")
    log.do("rename", "step_*")

    (only,) = found(log, prefixes(log, {said: ["keeps-what-was-acknowledged"]}))

    assert only.example.startswith("killed right after `save.end` 1: ")


@pytest.mark.parametrize(
    ("which", "kind", "later"), [(0, "torn", 0), (2, "torn", 0), (0, "omitted", 2), (1, "omitted", 2), (1, "omitted", 4)]
)
def test_what_is_missing_of_a_window_is_the_window_done_by_halves(which, kind, later):
    log = Log()
    window = [log.do("open", "state"), log.do("write", "state"), log.do("write", "state"), log.do("close", "state"), log.do("sync", ".")]
    cause = Cause(kind=kind, operation=window[which], part="half" if kind == "torn" else "")
    half = state("half", log.moment(window[max(which, later)], cause), broken=["recovers"])

    (only,) = found(log, [*prefixes(log, dict.fromkeys(window[:2], ("recovers",))), half])

    assert only.says == "`open state` to `write state` must be atomic"
    assert "half" in only.states


def test_what_is_missing_after_a_window_is_not_blamed_on_it():
    log = Log()
    window = [log.do("open", "state"), log.do("write", "state")]
    late, rename = log.do("write", "index"), log.do("rename", "index")
    missing_index = state("half", log.moment(rename, Cause(kind="omitted", operation=late)), broken=["recovers"])

    assert sorted(says(log, [*prefixes(log, {window[0]: ["recovers"]}), missing_index])) == [
        "`open state` to `write state` must be atomic",
        "`write index` must be durable before `rename index`",
    ]


def test_a_tree_counts_for_each_promise_that_it_was_judged_by():
    log, wrong = overwriting(saves=3)
    states = [msgspec.structs.replace(each, state="empty") if each.at in wrong else each for each in prefixes(log, wrong)]

    (only,) = found(log, states)

    assert only.states == ("empty",)
    assert only.leads_to == "4 states lose acknowledged work, 4 cannot recover"


def test_a_rename_that_stops_half_way_must_be_atomic():
    log = Log()
    log.say("save.begin")
    rename = log.do("rename", "step_*/")
    halves = [
        state(
            f"half-{part}",
            log.moment(
                rename, Cause(kind="renaming", operation=rename, part=f"object {part} of 14"), assumed=ROWS, part=f"object {part} of 14"
            ),
            broken=["recovers", "keeps-the-last-good-checkpoint"] if part > 3 else ["recovers"],
        )
        for part in range(1, 15)
    ]

    (only,) = found(log, [*prefixes(log, {}), *halves])

    assert only.says == "rename of `step_*/` must be atomic"
    assert only.promises == ("keeps-the-last-good-checkpoint", "recovers")
    assert len(only.states) == 14
    assert only.assumed == ROWS
    assert only.example.startswith("killed in the 1st `rename step_*/` since `save.begin` 1, at object 1 of 14: ")


def test_what_one_confirmed_moment_shows_is_not_assumed():
    log = Log()
    rename = log.do("rename", "step_*/")
    half = Cause(kind="renaming", operation=rename, part="object 1 of 2")
    states = [
        state("assumed", log.moment(rename, half, assumed=ROWS), broken=["recovers"]),
        state("confirmed", log.moment(rename, half), broken=["recovers"]),
    ]

    (only,) = found(log, [*prefixes(log, {}), *states])

    assert only.assumed == ()


def test_what_is_published_before_it_is_complete_must_not_be_visible():
    log = Log()
    log.say("save.begin")
    write = log.do("write", "step_*/data")
    log.do("close", "step_*/data")
    log.say("save.end")
    cut = state("cut", log.moment(write, Cause(kind="truncated", operation=write)), broken=["restores-what-was-saved"])

    (only,) = found(log, [*(each for each in prefixes(log, {}) if each.at != write), cut])

    assert only.rule == "complete"
    assert only.says == "`step_*/data` must not be visible before it is complete"


def test_a_file_that_is_always_open_is_not_blamed_for_what_others_do():
    log = Log()
    opened = log.do("create", "metrics.log")
    cause = Cause(kind="truncated", operation=opened)
    log.say("save.begin")
    bad = log.do("open", "state.bin")
    log.do("write", "state.bin")
    log.say("save.end")
    log.do("close", "metrics.log")
    last = len(log.strips)
    states = [state(f"open-{at}", log.moment(at, cause), broken=["recovers"] if at == bad else []) for at in range(1, last)]

    assert says(log, [state("none", log.moment(0)), *states, state("closed", log.moment(last))]) == [
        "`open state.bin` to `write state.bin` must be atomic"
    ]


def test_what_is_wrong_with_nothing_in_flight_is_recovery_itself():
    log, _ = overwriting()
    end = len(log.strips)
    states = prefixes(log, dict.fromkeys(range(3, end + 1), ("restores-what-was-saved", "completes-as-uninterrupted")))

    (only,) = found(log, states)

    assert only.rule == "survives"
    assert only.says == "recovery itself is wrong, with nothing in flight: it restores another state than was saved"
    assert (only.first, only.second) == ("", "")
    assert len(only.states) == end - 2


def test_what_is_deleted_before_the_save_begins_that_replaces_it_must_be_one_step_with_that():
    log, ats = Log(), []
    for _ in range(2):
        log.do("mkdir", "other")
        ats.append(log.do("unlink", "step_*/data"))
        log.say("save.begin")
        ats.append(log.do("rename", "step_*.tmp"))
        log.say("save.end")
    wrong = dict.fromkeys(range(ats[2], ats[3]), ("keeps-what-was-acknowledged",))

    assert says(log, prefixes(log, wrong)) == ["`unlink step_*/data` to `rename step_*.tmp` must be atomic"]


def test_what_is_wrong_from_a_save_to_the_next_is_recovery_itself():
    log, ats = Log(), []
    for _ in range(3):
        log.say("save.begin")
        log.do("write", "step_*.tmp")
        ats.append(log.do("rename", "step_*"))
        log.say("save.end")
    wrong = dict.fromkeys(range(ats[1], ats[2]), ("completes-as-uninterrupted",))

    assert [each.rule for each in found(log, prefixes(log, wrong))] == ["survives"]


def test_without_words_of_the_job_a_whole_cycle_is_known_by_what_was_promised():
    log = Log()
    ats = [(log.do("write", "step_*.tmp"), log.do("rename", "step_*"))[1] for _ in range(3)]
    wrong = dict.fromkeys(range(ats[1], ats[2]), ("completes-as-uninterrupted",))

    rising = found(log, prefixes(log, wrong, promised={at: at for at in range(ats[1] + 1, 7)}))
    level = found(log, prefixes(log, wrong))

    assert [each.rule for each in rising] == ["survives"]
    assert [each.says for each in level] == ["from one `rename step_*` to the next must be atomic"]


def test_a_window_is_still_found_where_recovery_is_wrong_anyway():
    log, wrong = overwriting()
    always = ["saves-at-its-cadence"]
    states = prefixes(log, {at: [*wrong.get(at, ()), *always] for at in range(len(log.strips) + 1)})

    first, second = found(log, states)

    assert (first.rule, first.promises) == ("atomic", ("keeps-what-was-acknowledged", "recovers"))
    assert (second.rule, second.promises) == ("survives", ("saves-at-its-cadence",))
    assert len(second.states) == len(states)
    assert second.example.startswith("killed before anything was done: ")


def test_lost_work_is_told_before_a_wrong_state_before_no_recovery_before_repeated_work():
    log = Log()
    wrong: dict[int, list[str]] = {}
    for name, promise in (
        ("a", "saves-at-its-cadence"),
        ("b", "recovers"),
        ("c", "restores-what-was-saved"),
        ("d", "keeps-what-was-acknowledged"),
    ):
        log.do("write", "fine")
        wrong[log.do("write", name)] = [promise]
    log.do("write", "fine")

    assert [each.first for each in found(log, prefixes(log, wrong))] == ["write d", "write c", "write b", "write a"]


def test_of_equally_bad_ones_that_with_more_states_comes_first():
    log = Log()
    wrong = {log.do("write", "few"): ["recovers"]}
    log.do("write", "fine")
    wrong |= {log.do("write", "many"): ["recovers"], log.do("write", "more"): ["recovers"]}
    log.do("write", "fine")

    assert [each.first for each in found(log, prefixes(log, wrong))] == ["write many", "write few"]


def test_a_job_that_cannot_begin_in_an_empty_directory_is_wrong_itself():
    log, _ = overwriting()

    (only,) = found(log, prefixes(log, {0: ["recovers"], 1: ["recovers"]}))

    assert only.rule == "survives"
    assert only.example == f"killed before anything was done: {SAYS['recovers']}"


def test_a_promise_that_is_broken_from_the_first_checkpoint_to_the_end_hides_no_window():
    log, wrong = overwriting()
    first_save = min(wrong) - 5
    always = range(first_save, len(log.strips) + 1)

    windows = found(log, prefixes(log, {at: [*wrong.get(at, ()), "saves-at-its-cadence"] for at in always}))

    assert [(each.rule, len(each.states)) for each in windows] == [("atomic", 4), ("survives", len(always))]


def test_an_acknowledgement_in_its_midst_does_not_make_a_window_a_whole_cycle():
    log = Log()
    bad = log.do("open", "state.bin")
    said = log.say("saved")
    log.do("write", "state.bin")

    (only,) = found(log, prefixes(log, dict.fromkeys((bad, said), ("recovers",)), promised={bad: 0, said: 1, said + 1: 1}))

    assert only.says == "`open state.bin` to `write state.bin` must be atomic"


def test_a_save_that_begins_while_another_is_in_flight_is_no_rest():
    log = Log()
    log.say("save.begin")
    bad = log.do("open", "state.bin")
    log.say("save.begin")
    log.do("write", "state.bin")
    log.say("save.end")

    assert says(log, prefixes(log, dict.fromkeys((bad, bad + 1), ("recovers",)))) == [
        "`open state.bin` to `write state.bin` must be atomic"
    ]


def test_a_write_that_is_harmful_when_torn_in_itself_must_be_atomic():
    log = Log()
    write = log.do("write", "latest")
    log.do("fsync", "latest")
    half = state("half", log.moment(write, Cause(kind="torn", operation=write, part="half")), broken=["recovers"])

    assert says(log, [*prefixes(log, {}), half]) == ["`write latest` must be atomic"]


def test_a_file_that_is_harmful_from_its_first_moment_is_blamed_though_another_mends_it():
    log = Log()
    write = log.do("write", "step_*/data")
    log.do("unlink", "step_*/index")
    log.do("close", "step_*/data")
    cause = Cause(kind="truncated", operation=write)
    states = [state("cut", log.moment(write, cause), broken=["recovers"]), state("mended", log.moment(write + 1, cause))]

    assert says(log, [*states, state("before", log.moment(0)), state("whole", log.moment(3))]) == [
        "`step_*/data` must not be visible before it is complete"
    ]


def test_an_open_file_is_cleared_only_where_recovery_was_seen_to_be_right_with_it_before():
    log = Log()
    write = log.do("write", "step_*/data")
    log.do("unlink", "a")
    log.do("unlink", "b")
    log.do("close", "step_*/data")
    cause = Cause(kind="truncated", operation=write)
    cut = state("cut", log.moment(write + 1, cause), broken=["recovers"])
    states = [state("before", log.moment(0)), cut, state("mended", log.moment(write + 2, cause)), state("whole", log.moment(4))]

    assert says(log, states) == ["`step_*/data` must not be visible before it is complete"]
    assert says(log, [*states, state("harmless", log.moment(write, cause))]) == ["`unlink a` to `unlink b` must be atomic"]


def test_what_could_not_be_decided_of_a_wrong_state_is_not_held_against_it():
    log, wrong = overwriting(saves=2)
    doubt = Broken(promise="recovers-twice-alike", says="not tried", outcome=Outcome.UNKNOWN)
    states = [msgspec.structs.replace(each, broken=(*each.broken, doubt)) for each in prefixes(log, wrong)]

    (only,) = found(log, states)

    assert only.promises == ("keeps-what-was-acknowledged", "recovers")


def test_where_the_budget_ended_the_end_is_not_made_up():
    log, wrong = overwriting(saves=2)
    begin = min(wrong)
    states = prefixes(log, {begin: wrong[begin]}, unjudged=range(begin + 1, len(log.strips) + 1))

    (only,) = found(log, states)

    assert only.says == "what begins with `open ckpt/state.bin` must be atomic; where it ends was not judged"
    assert "were not judged, so it may begin earlier or end later" in only.example


def test_moments_that_nobody_judged_do_not_end_a_stretch():
    log, wrong = overwriting(saves=2)
    begin = min(wrong)
    states = prefixes(log, wrong, unjudged=[begin - 1])
    unclear = [undecided(each.state, *each.moments, why="timed out") if each.at == begin + 1 else each for each in states]

    (only,) = found(log, unclear)

    assert only.says == "`open ckpt/state.bin` to `write ckpt/state.sum` must be atomic, as far as was judged"
    assert "; 2 moments beside such ones were not judged" in only.example


def test_what_could_not_be_decided_is_no_vulnerability():
    log, _ = overwriting()
    states = [undecided(f"s{at}", log.moment(at), why="the recording is blind") for at in range(len(log.strips) + 1)]

    assert found(log, states) == ()


def test_a_directory_with_spaces_is_quoted_in_the_line_that_replays():
    assert replay_command("runs/my job; rm -rf x", "abc") == "harness explore --replay 'runs/my job; rm -rf x' abc"


@given(st.data())
def test_every_invalid_state_is_shown_by_some_vulnerability_and_no_other_is(data):
    log, _ = overwriting(saves=2)
    last = len(log.strips)
    promises = st.sets(st.sampled_from(sorted(SAYS)), max_size=2)
    causes = st.one_of(
        st.just(Cause()),
        st.builds(
            Cause,
            kind=st.sampled_from(["omitted", "torn", "truncated", "vanished", "renaming"]),
            operation=st.integers(1, last),
            part=st.sampled_from(["", "half"]),
        ),
    )
    moments = st.builds(log.moment, st.integers(0, last), causes)
    states = [
        state(f"s{number}", *each, broken=sorted(broken), outcome=outcome)
        for number, (each, broken, outcome) in enumerate(
            data.draw(
                st.lists(st.tuples(st.lists(moments, min_size=1, max_size=3), promises, st.sampled_from([None, *Outcome])), max_size=12)
            )
        )
        if outcome is not Outcome.INVALID or broken
    ]

    shown = {name for each in found(log, states) for name in each.states}

    assert shown == {each.state for each in states if each.outcome is Outcome.INVALID}
    broken = {(each.state, said.promise) for each in states for said in each.broken}
    told = {(name, promise) for each in found(log, states) for name in each.states for promise in each.promises}
    assert broken <= told
