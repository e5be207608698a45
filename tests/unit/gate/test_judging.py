"""Whatever is worse than it may be never passes; whatever was not measured never does."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.gate.document import GateConfig, Tolerance
from harness.gate.figures import FIGURE_NAMES, KINDS, ROUNDING, Figure
from harness.gate.figures import measured as measured_figure
from harness.gate.judging import Before, judge, judge_figure, worst
from harness.gate.standards import Standard, standards_of
from harness.verdict import Outcome
from tests.unit.gate.results import GOOD, NAME, accepted, config, measured, run, scenario

FINITE = st.floats(min_value=-1e6, max_value=1e6, allow_nan=False)
AMOUNT = st.floats(min_value=0, max_value=1e6, allow_nan=False)
NAMES = st.sampled_from(FIGURE_NAMES)


def judged(*runs, of=None, tables: dict[str, object] | None = None, **fields):
    asked: GateConfig = config(**(tables or {}))
    return judge(measured(scenario(*runs, **fields)), {NAME: standards_of(asked, NAME)}, of)


# ---- figures ----


@given(NAMES, FINITE, AMOUNT, st.floats(min_value=0, max_value=10), st.floats(min_value=1e-3, max_value=1e6))
def test_worse_than_accepted_by_more_than_is_allowed_never_passes(name, before, absolute, relative, more):
    tolerance = Tolerance(absolute=absolute, relative=relative)
    by = tolerance.allowed(before) + more
    value = before - by if KINDS[name].more_is_better else before + by

    found = judge_figure(name, Figure(value=value), Standard(tolerance=tolerance), Before(before))

    assert found.ruling == "fail"
    assert any(reason.startswith("regression: ") for reason in found.reasons)


@given(NAMES, FINITE, st.floats(min_value=1e-3, max_value=1e6))
def test_worse_than_its_threshold_never_passes_whatever_was_accepted(name, threshold, more):
    value = threshold - more if KINDS[name].more_is_better else threshold + more

    assert judge_figure(name, Figure(value=value), Standard(threshold=threshold, is_wanted=True), Before(value)).ruling == "fail"


@given(NAMES, FINITE, FINITE, AMOUNT)
def test_what_is_not_worse_than_both_allow_passes(name, value, before, absolute):
    by = KINDS[name].worse(value, before)
    found = judge_figure(name, Figure(value=value), Standard(threshold=value, tolerance=Tolerance(absolute=absolute)), Before(before))

    assert (found.ruling == "pass") == (by <= absolute + ROUNDING)


@given(NAMES, st.none() | FINITE, st.booleans(), st.none() | FINITE)
def test_what_was_not_measured_and_is_asked_for_never_passes(name, threshold, is_named, before):
    standard = Standard(threshold=threshold, tolerance=Tolerance(), is_named=is_named, is_wanted=threshold is not None)
    found = judge_figure(name, Figure(missing="the log is gone"), standard, None if before is None else Before(before))

    assert found.ruling == ("unknown" if threshold is not None or is_named or before is not None else "pass")


POSSIBLE = st.floats(min_value=0, max_value=1, allow_nan=False)


@given(NAMES, st.lists(POSSIBLE, min_size=1))
def test_the_worst_run_counts(name, values):
    runs = [run(**{name: value}) for value in values]
    found = judged(*runs).scenarios[0].figures[name].figure.value

    assert found == (min(values) if KINDS[name].more_is_better else max(values))


def test_measured_in_one_run_and_not_in_another_is_unknown_and_fails_where_the_one_does():
    asked = {"thresholds": {"recovery_s_max": 5}}

    assert judged(run(), run(recovery_s=Figure(missing="gone")), tables=asked).ruling == "unknown"
    assert judged(run(recovery_s=9.0), run(recovery_s=Figure(missing="gone")), tables=asked).ruling == "fail"


def test_nothing_to_measure_passes_for_all_and_not_where_it_is_asked_for_by_name_or_was_there_before():
    none = run(grace_margin_s=None)
    by_name = {"scenarios": {NAME: {"thresholds": {"grace_margin_s_min": 1}}}}

    assert judged(none, tables={"thresholds": {"grace_margin_s_min": 1}}).ruling == "pass"
    assert judged(none, tables=by_name).ruling == "unknown"
    assert judged(none, of=accepted()).ruling == "unknown"
    assert judged(none, of=accepted(), tables={"regression": {"grace_margin_s": "none"}}).ruling == "pass"


@pytest.mark.parametrize("name", ["lost_steps", "recovery_s"])
def test_a_death_where_nothing_died_before_is_worse_by_all_of_it(name):
    of = accepted(lost_steps=None, recovery_s=None)
    tables: dict[str, object] = {"regression": {name: {"absolute": 3}}}
    others = {"lost_steps": 0.0, "recovery_s": 0.0}

    assert judged(run(**{**others, name: 3.0}), of=of, tables=tables).ruling == "pass"
    worse = judged(run(**{**others, name: 4.0}), of=of, tables=tables)
    assert worse.ruling == "fail"
    assert "worse than when it was accepted, where nothing died; 3" in worse.scenarios[0].reasons[0]
    assert judged(run(**{**others, name: Figure(missing="gone")}), of=of, tables=tables).ruling == "unknown"
    assert judged(run(lost_steps=None, recovery_s=None), of=of).ruling == "pass"


def test_a_notice_where_there_was_none_before_is_not_compared():
    assert judged(run(grace_margin_s=0.1), of=accepted(grace_margin_s=None)).ruling == "pass"


def test_what_is_missing_for_one_reason_is_told_once():
    gone = dict.fromkeys(GOOD, Figure(missing="the log is gone"))

    assert judged(run(**gone), of=accepted()).scenarios[0].reasons == (
        "not measured: lost steps, recovery, goodput, margin to grace: the log is gone",
    )


def test_what_is_missing_and_not_asked_for_is_noted():
    found = judged(run(goodput=Figure(missing="no step")))

    assert found.ruling == "pass"
    assert f"goodput was not measured and is not asked for: `{NAME}`" in found.notes


def test_a_regression_says_by_how_much_and_what_is_allowed():
    (reason,) = judged(run(recovery_s=5.0), of=accepted()).scenarios[0].reasons

    assert reason == "regression: recovery 5.00 s is 3.00 s worse than the accepted 2.00 s; 2.00 s is allowed"


# ---- verdicts ----


@pytest.mark.parametrize(
    ("verdicts", "ruling"),
    [
        (["valid"], "pass"),
        (["valid", "valid"], "pass"),
        (["valid", "unknown"], "unknown"),
        (["valid", "invalid"], "fail"),
        (["unknown", "invalid"], "fail"),
    ],
)
def test_verdicts_have_no_tolerance(verdicts, ruling):
    assert judged(*(run(Outcome(verdict)) for verdict in verdicts)).ruling == ruling


@pytest.mark.parametrize(("made", "due"), [(0, 1), (1, 2), (0, 0)])
def test_what_was_not_run_is_unknown(made, due):
    found = judged(*[run()] * made, due=due, undone="the budget is used up", tables={"regression": dict.fromkeys(GOOD, "none")})

    assert found.ruling == "unknown"
    assert "the budget is used up" in found.scenarios[0].reasons[0]


def test_an_invalid_run_fails_though_others_were_not_made():
    assert judged(run(Outcome.INVALID), due=3).ruling == "fail"


def test_the_worst_scenario_decides():
    asked = standards_of(config(), NAME)
    found = judge(measured(scenario(run()), scenario(run(Outcome.UNKNOWN), name="another-job")), {NAME: asked, "another-job": asked}, None)

    assert (found.ruling, [each.ruling for each in found.scenarios]) == ("unknown", ["pass", "unknown"])


@given(st.lists(st.sampled_from(["pass", "unknown", "fail"])))
def test_fail_outranks_unknown_and_unknown_outranks_pass(rulings):
    assert worst(rulings) == next((each for each in ("fail", "unknown") if each in rulings), "pass")


# ---- what it is compared with ----


BAD = {"recovery_s": 99.0}


def test_without_an_accepted_result_it_says_so():
    found = judged(run(**BAD))

    assert found.ruling == "pass"
    assert any("no result is accepted yet" in note for note in found.notes)


@pytest.mark.parametrize(
    ("other", "says", "do"),
    [
        (accepted(target="gcp"), "the accepted result is of target `gcp`, and this one of `local`", 'accepted = "accepted-{target}.json"'),
        (accepted(digest="e"), "the scenario was another one when its result was accepted", "accept it anew: harness gate --accept"),
        (accepted(name="another-job"), "accepted and not run now: `another-job`", "accept it anew: harness gate --accept"),
        (accepted(seeds=(0, 0, 0)), "the worst of 3 runs was accepted, and 1 would be held against it", "repeats in [gate]"),
    ],
)
@pytest.mark.parametrize("figures", [{}, BAD])
def test_what_is_accepted_and_cannot_be_compared_is_unknown_until_it_is_accepted_anew(other, says, do, figures):
    found = judged(run(**figures), of=other)

    is_compared = found.scenarios[0].figures["recovery_s"].accepted is not None
    assert found.ruling == ("fail" if figures and is_compared else "unknown")
    (reason,) = [each for each in (*found.reasons, *found.scenarios[0].reasons) if says in each]
    assert do in reason


def test_fewer_runs_than_were_accepted_are_compared_all_the_same():
    assert judged(run(**BAD), of=accepted(seeds=(0, 1))).ruling == "fail"
    assert judged(run(), run(seed=1), of=accepted(seeds=(0, 1))).ruling == "pass"
    assert judged(run(), run(), run(), of=accepted(seeds=(0, 0))).ruling == "pass"


def test_the_figures_of_another_scenario_or_target_are_no_measure():
    for other in (accepted(digest="e"), accepted(target="gcp")):
        assert judged(run(**BAD), of=other).scenarios[0].figures["recovery_s"].accepted is None


def test_what_is_new_is_said_and_passes():
    of = accepted()
    asked = standards_of(config(), NAME)
    found = judge(measured(scenario(run()), scenario(run(), name="a-new-job")), {NAME: asked, "a-new-job": asked}, of)

    assert (found.ruling, found.reasons) == ("pass", ())
    assert "not compared, nothing of them is accepted yet: `a-new-job`" in found.notes


@pytest.mark.parametrize("what", ["versions", "surroundings"])
def test_other_versions_and_surroundings_are_compared_and_said(what):
    of = accepted()
    found = judge(measured(scenario(run(**BAD)), **{what: {"jax": "0.9"}}), {NAME: standards_of(config(), NAME)}, of)

    assert found.ruling == "fail"
    assert f"other {what} than when it was accepted: `jax none then, 0.9 now`" in found.notes


def test_other_seeds_are_compared_and_said():
    found = judged(run(seed=5), of=accepted(seeds=(0,)))

    assert found.ruling == "pass"
    assert f"other seeds than when it was accepted: `{NAME}`" in found.notes


# ---- what a result says of itself ----


def test_runs_of_other_seeds_are_none_that_are_due():
    found = msgspec.structs.replace(scenario(run(seed=0), run(seed=0)), seeds=(0, 7))
    (judged_one,) = judge(measured(found), {NAME: standards_of(config(), NAME)}, None).scenarios

    assert judged_one.ruling == "unknown"
    assert "1 of 2 runs not made" in judged_one.reasons[0]


def test_a_figure_that_a_result_does_not_tell_is_missing_and_not_absent():
    whole = run()
    bare = msgspec.structs.replace(whole, figures={})

    assert judged(bare, tables={"thresholds": {"lost_steps_max": 5}}).ruling == "unknown"
    assert all(judged(bare).scenarios[0].figures[name].figure.missing for name in FIGURE_NAMES)


@pytest.mark.parametrize(("name", "value"), [("lost_steps", -1.0), ("recovery_s", -0.5), ("goodput", -0.1), ("goodput", 1.5)])
def test_a_number_that_a_figure_cannot_have_is_missing(name, value):
    found = judged(run(**{name: value}), run(), of=accepted())

    assert found.ruling == "unknown"
    assert "cannot be" in found.scenarios[0].figures[name].figure.missing
    assert "cannot be" in measured_figure(name, value).missing


@pytest.mark.parametrize("name", FIGURE_NAMES)
@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_finite_number_is_missing_and_can_be_no_figure(name, value):
    assert measured_figure(name, value, missing="task 1 too") == Figure(missing=measured_figure(name, value).missing + "; task 1 too")
    assert measured_figure(name, value).missing
    with pytest.raises(ValueError, match="finite"):
        Figure(value=value)


def test_a_grace_may_be_exceeded():
    assert measured_figure("grace_margin_s", -0.5, missing="gone") == Figure(value=-0.5, missing="gone")


def test_what_regression_asks_for_must_be_measured_before_anything_is_accepted():
    gone = run(recovery_s=Figure(missing="gone"))

    assert judged(gone).ruling == "pass"
    assert judged(gone, tables={"regression": {"recovery_s": {"absolute": 1}}}).ruling == "unknown"
