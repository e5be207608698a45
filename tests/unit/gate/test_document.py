"""gate.toml: what it may say, and what is said of what it may not."""

import pytest

from harness.errors import InvalidDocumentError, UnknownNameError
from harness.gate.document import Tolerance, read_gate
from harness.gate.standards import USUAL, refuse_strangers, standards_of
from tests.unit.gate.results import NAME, config, standards

ALL = "[gate]\nall = true\n"


def read(tmp_path, text):
    path = tmp_path / "gate.toml"
    path.write_text(text)
    return read_gate(path)


def test_a_gate_of_two_lines_has_the_usual_tolerances_and_no_thresholds(tmp_path):
    found = read(tmp_path, ALL)

    assert found.runs_of_each() == (0,)
    assert {name: (each.threshold, each.tolerance, each.is_wanted) for name, each in standards_of(found, "any").items()} == {
        name: (None, tolerance, False) for name, tolerance in USUAL.items()
    }


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "missing required field"),
        ("[gate]\n", "gate.scenarios: it is []: one of scenarios, tags and all says what is run; given: none"),
        ('[gate]\nall = true\ntags = ["x"]\n', "given: tags, all"),
        ('[gate]\nall = true\nconfig = "a"\ncatalogue = "b"\n', "gate.catalogue: it is 'b'"),
        ("[gate]\nall = true\nseeds = []\n", "gate.seeds"),
        ("[gate]\nall = true\nseeds = [1, 1]\n", "gate.seeds"),
        ("[gate]\nall = true\nrepeats = 0\n", "gate.repeats: it is 0"),
        ("[gate]\nall = true\nrepeats = 101\n", "gate.repeats: it is 101"),
        ('[gate]\nall = true\naccepted = ""\n', "gate.accepted"),
        ("[gate]\nall = true\nmoon = 1\n", "moon"),
        ('[gate]\nall = true\nconfig = "a\\u0000"\n', "gate.config: it is 'a\\x00': the name of a file"),
        ('[gate]\nscenarios = ["a\\u0000.json"]\n', "gate.scenarios"),
        (f"{ALL}[budget]\nduration_s = 0\n", "budget.duration_s: it is 0.0: a finite number > 0"),
        (f"{ALL}[budget]\ngpu_hours = nan\n", "budget.gpu_hours"),
        (f"{ALL}[thresholds]\nlost_steps = 1\n", "lost_steps_max?"),
        (f"{ALL}[thresholds]\nlost_steps_max = -1\n", "thresholds.lost_steps_max: it is -1"),
        (f"{ALL}[thresholds]\nlost_steps_max = {'9' * 400}\n", "thresholds.lost_steps_max"),
        (f"{ALL}[thresholds]\nlost_steps_max = {'9' * 5000}\n", "not TOML"),
        (f"{ALL}[thresholds]\nrecovery_s_max = nan\n", "thresholds.recovery_s_max"),
        (f"{ALL}[thresholds]\nrecovery_s_max = inf\n", "thresholds.recovery_s_max"),
        (f"{ALL}[thresholds]\ngoodput_min = 35\n", "thresholds.goodput_min: it is 35"),
        (f"{ALL}[thresholds]\ngoodput_min = nan\n", "thresholds.goodput_min"),
        (f"{ALL}[thresholds]\ngrace_margin_s_min = -inf\n", "thresholds.grace_margin_s_min"),
        (f'{ALL}[thresholds]\ngoodput_min = "never"\n', "thresholds.goodput_min"),
        (f"{ALL}[regression]\nrecovery_s = {{ relative = -0.1 }}\n", "regression.recovery_s.relative"),
        (f"{ALL}[regression]\nrecovery_s = 0.1\n", "regression.recovery_s"),
        (f"{ALL}[scenarios.x]\nthreshold = {{}}\n", 'scenarios."x": Object contains unknown field `threshold`; did you mean thresholds?'),
        (f"{ALL}[scenarios.x]\nregression = {{ goodput = 1 }}\n", 'scenarios."x": regression.goodput'),
        (f"{ALL}scenarios = 3\n", "gate.scenarios: it is 3"),
        ("scenarios = 3\n[gate]\nall = true\n", "scenarios: it is 3"),
        ("gate = [", "not TOML"),
    ],
)
def test_a_mistake_is_one_message_with_the_file_the_field_and_what_would_be_right(tmp_path, text, says):
    with pytest.raises(InvalidDocumentError) as caught:
        read(tmp_path, text)

    assert says in str(caught.value)
    assert str(tmp_path / "gate.toml") in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_says_what_to_do(tmp_path):
    with pytest.raises(InvalidDocumentError, match="name the file of the gate with --config"):
        read_gate(tmp_path / "gate.toml")


def test_whole_numbers_are_thresholds_too(tmp_path):
    found = read(tmp_path, f"{ALL}[thresholds]\nrecovery_s_max = 60\ngoodput_min = 0\ngrace_margin_s_min = 2\n")

    assert {name: each.threshold for name, each in standards_of(found, "any").items()} == {
        "lost_steps": None,
        "recovery_s": 60.0,
        "goodput": 0.0,
        "grace_margin_s": 2.0,
    }


def test_seeds_and_repeats_multiply():
    assert config(gate={"all": True, "seeds": [4, 7], "repeats": 2}).runs_of_each() == (4, 7, 4, 7)


def test_one_scenario_may_ask_otherwise_and_keeps_what_it_does_not_name():
    found = standards(
        thresholds={"recovery_s_max": 10, "goodput_min": 0.5},
        regression={"recovery_s": {"absolute": 1}},
        scenarios={NAME: {"thresholds": {"recovery_s_max": 99}, "regression": {"goodput": "none"}}},
    )

    assert (found["recovery_s"].threshold, found["recovery_s"].tolerance) == (99, Tolerance(absolute=1))
    assert (found["goodput"].threshold, found["goodput"].tolerance) == (0.5, None)


def test_none_takes_back_for_one_scenario_what_is_asked_of_all():
    found = standards(
        thresholds={"goodput_min": 0.5}, scenarios={NAME: {"thresholds": {"goodput_min": "none"}, "regression": {"goodput": "none"}}}
    )["goodput"]

    assert (found.threshold, found.tolerance, found.is_wanted, found.is_named) == (None, None, False, False)


def test_what_is_said_of_a_scenario_that_is_not_run_is_refused():
    with pytest.raises(UnknownNameError, match="no scenario of the gate is named 'a-job-recover'; did you mean a-job-recovers"):
        refuse_strangers(config(scenarios={"a-job-recover": {}}), [NAME])


def test_a_tolerance_is_the_larger_of_both():
    assert Tolerance(absolute=2, relative=0.5).allowed(10) == 5
    assert Tolerance(absolute=2, relative=0.5).allowed(1) == 2
    assert Tolerance(relative=0.5).allowed(-4) == 2
