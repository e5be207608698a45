"""gate.json and accepted.json: what is written can be read, and what is no result is refused."""

import msgspec
import pytest

from harness.errors import InvalidDocumentError, UsageError
from harness.gate.acceptance import NotAcceptableError, accept
from harness.gate.figures import Figure
from harness.gate.judging import judge
from harness.gate.result import RESULT_NAME, accepted_path, digest_of, read_accepted, read_measured, write_accepted
from harness.gate.standards import standards_of
from harness.scenario import Scenario, Workload
from harness.scenario.expectations import Completes, NoHang
from harness.verdict import Outcome
from tests.unit.gate.results import GOOD, NAME, accepted, config, measured, run, scenario


def job(**fields: object) -> Scenario:
    base = {"name": NAME, "why": "a test", "workload": Workload(name="job", command=("true",)), "expects": (Completes(),)}
    return Scenario(**{**base, **fields})  # type: ignore[arg-type]


def test_a_digest_tells_what_a_scenario_does_and_not_its_words_or_its_image():
    workload = msgspec.structs.replace(job().workload, image="my-train:2")

    assert digest_of(job()) == digest_of(job(why="other words", tags=("slow",), workload=workload))
    assert digest_of(job()) != digest_of(job(expects=(Completes(), NoHang(quiet_s=3.0))))
    assert digest_of(job()) != digest_of(job(deadline_s=61.0))


def test_what_is_accepted_is_read_as_it_was_written(tmp_path):
    path = tmp_path / "accepted.json"
    write_accepted(path, accepted())

    assert read_accepted(path) == accepted()
    assert path.read_bytes().endswith(b"}\n")
    assert list(tmp_path.iterdir()) == [path]


def test_no_accepted_result_is_none_and_a_directory_is_an_error(tmp_path):
    assert read_accepted(tmp_path / "accepted.json") is None
    with pytest.raises(InvalidDocumentError):
        read_accepted(tmp_path)


def test_the_result_of_another_target_is_not_overwritten(tmp_path):
    path = tmp_path / "accepted.json"
    write_accepted(path, accepted(target="gcp"))

    with pytest.raises(UsageError, match=r"accepted-\{target\}\.json"):
        write_accepted(path, accepted())

    assert read_accepted(path) == accepted(target="gcp")


def test_each_target_may_have_its_own(tmp_path):
    assert accepted_path("accepted-{target}.json", tmp_path, "kind") == tmp_path / "accepted-kind.json"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('"version": 1', '"version": 2', "version: it is 2, and 1 can be read"),
        ('"digest"', '"digst"', "digst"),
        ('"lost_steps"', '"lost_stps"', "lost_stps"),
        ("3.0", '"three"', "expected `float | null`, got `str`"),
        ("{", "", "Expected `object`"),
    ],
)
def test_what_is_no_accepted_result_is_refused_with_its_place(tmp_path, old, new, says):
    path = tmp_path / "accepted.json"
    write_accepted(path, accepted())
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))

    with pytest.raises(InvalidDocumentError) as caught:
        read_accepted(path)

    assert says in str(caught.value)


def test_a_result_is_read_without_its_judgement_from_file_or_directory(tmp_path):
    found = measured(scenario(run(goodput=Figure(missing="no step")), run(grace_margin_s=None)))
    (tmp_path / RESULT_NAME).write_bytes(msgspec.json.encode({"measured": found, "judged": {"ruling": "pass"}}))

    assert read_measured(tmp_path) == read_measured(tmp_path / RESULT_NAME) == found


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"measured": {}}'])
def test_what_is_no_result_is_refused(tmp_path, text):
    (tmp_path / RESULT_NAME).write_text(text)

    with pytest.raises(InvalidDocumentError):
        read_measured(tmp_path)


# ---- acceptance ----


def accepted_of(*runs, due=None, **tables):
    return accept(measured(scenario(*runs, due=due)), {NAME: standards_of(config(**tables), NAME)})


def test_the_worst_run_is_accepted_and_that_there_was_nothing_to_measure_too():
    found = accepted_of(run(recovery_s=2.0, grace_margin_s=None), run(recovery_s=4.0, grace_margin_s=None)).scenarios[NAME]

    assert (found.seeds, found.figures) == ((0, 0), {"lost_steps": 3.0, "recovery_s": 4.0, "goodput": 0.5, "grace_margin_s": None})


def test_a_figure_that_the_result_does_not_tell_is_not_accepted():
    whole = run()
    bare = msgspec.structs.replace(whole, figures={name: figure for name, figure in whole.figures.items() if name != "goodput"})

    assert "goodput" not in accepted_of(bare).scenarios[NAME].figures
    with pytest.raises(NotAcceptableError, match="the result does not tell it"):
        accepted_of(bare, thresholds={"goodput_min": 0.1})


def test_seeds_and_surroundings_are_accepted_with_the_figures():
    found = accept(
        measured(scenario(run(seed=4), run(seed=7)), surroundings={"region": "europe-west4"}), {NAME: standards_of(config(), NAME)}
    )

    assert (found.scenarios[NAME].seeds, found.surroundings) == ((4, 7), {"region": "europe-west4"})


@pytest.mark.parametrize("value", ["-5.0", "1.7e308"])
def test_a_number_that_the_figure_cannot_have_is_not_accepted_from_a_result_either(tmp_path, value):
    name = "recovery_s" if value.startswith("-") else "goodput"
    text = msgspec.json.encode({"measured": measured(scenario(run(**{name: 0.875})))}).decode()
    (tmp_path / RESULT_NAME).write_text(text.replace("0.875", value))
    found = read_measured(tmp_path)

    assert name not in accept(found, {NAME: standards_of(config(), NAME)}).scenarios[NAME].figures


def test_a_figure_that_one_run_lacks_is_not_accepted():
    assert "goodput" not in accepted_of(run(), run(goodput=Figure(missing="no step"))).scenarios[NAME].figures


@pytest.mark.parametrize(
    ("runs", "due", "tables"),
    [
        ([run(Outcome.INVALID)], 1, {}),
        ([run(Outcome.UNKNOWN)], 1, {}),
        ([run()], 2, {}),
        ([run()], 1, {"thresholds": {"recovery_s_max": 1.0}}),
        ([run(recovery_s=Figure(missing="gone"))], 1, {"thresholds": {"recovery_s_max": 10.0}}),
    ],
)
def test_what_is_not_proved_is_never_accepted(runs, due, tables):
    with pytest.raises(NotAcceptableError, match=f"not accepted: 1 of 1 scenarios do not pass by themselves, as {NAME}: "):
        accepted_of(*runs, due=due, **tables)


def test_nothing_is_never_accepted():
    with pytest.raises(NotAcceptableError, match="nothing was run"):
        accept(measured(), {})


def test_what_was_just_accepted_is_no_regression():
    found = measured(scenario(run(**{name: value / 3 for name, value in GOOD.items()})))
    asked = {NAME: standards_of(config(regression={name: {"absolute": 0} for name in GOOD}), NAME)}

    assert judge(found, asked, accept(found, asked)).ruling == "pass"
