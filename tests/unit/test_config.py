"""``harness.toml``: what it makes of a job, and how it is refused."""

from pathlib import Path

import pytest

from harness.config import TEMPLATE, read_config
from harness.errors import InvalidDocumentError
from harness.scenario import Injection, Scenario, name_of
from harness.scenario.expectations import ExitCodes, NoHang, ResumesFromNewestDurable, WithinRetries
from harness.scenario.faults import Kill, Terminate
from harness.scenario.triggers import AfterSeconds, AtStep, OnLog

JOB = '[workload]\nname = "my-train"\ncommand = ["python", "train.py"]\n'
STEPS = "[workload.logs]\nstep = 'step (?P<step>\\d+)'\n"
STANDARD = (
    "my-train-left-alone-completes",
    "my-train-killed-without-notice-resumes",
    "my-train-terminated-with-notice-resumes",
    "my-train-killed-again-while-it-recovers-resumes",
)
ALONE, KILLED, TERMINATED, TWICE = STANDARD


@pytest.fixture
def read(tmp_path: Path):
    def read_text(text: str) -> dict[str, Scenario]:
        path = tmp_path / "harness.toml"
        path.write_text(text)
        return read_config(path)

    return read_text


def promises(scenario: Scenario) -> set[str]:
    return {name_of(expectation) for expectation in scenario.expects}


def strikes(scenario: Scenario) -> list[tuple[type, object, tuple[int, ...]]]:
    return [(type(each.fault), each.at, each.attempts) for each in scenario.injections]


def test_the_template_is_right(read):
    scenarios = read(TEMPLATE)
    assert tuple(scenarios) == STANDARD
    killed = scenarios[KILLED]
    assert killed.workload.command == ("python", "train.py", "--out", "{checkpoint_dir}")
    assert strikes(killed) == [(Kill, AtStep(step=80), (0,))]
    assert strikes(scenarios[TERMINATED]) == [(Terminate, AtStep(step=140), (0,))]
    assert strikes(scenarios[TWICE]) == [(Kill, AtStep(step=80), (0,)), (Kill, AtStep(step=140), (1,))]
    assert ResumesFromNewestDurable(lost_steps_max=10) in killed.expects


def test_what_the_template_leaves_out_is_right_too(read):
    lines = [
        line.removeprefix("# ") if line.startswith(("# [", "# name", "# why", "# inj", "# exp", "# JAX")) else line
        for line in TEMPLATE.split("\n")
    ]
    lines = [
        line.split("   #")[0].removeprefix("# ") if line.startswith(("# result", "# inspect", "# sources", "# layout")) else line
        for line in lines
    ]
    scenarios = read("\n".join(lines))
    assert "my-train-survives-three-kills" in scenarios
    assert scenarios[KILLED].workload.environment == {"JAX_PLATFORMS": "cpu"}
    assert {"same-result", "bit-exact-resume"} <= promises(scenarios[KILLED])


def test_the_less_a_job_shows_the_coarser_it_is_struck(read):
    shown = read(JOB + "steps = 10\n" + STEPS)
    assert strikes(shown[KILLED]) == [(Kill, AtStep(step=4), (0,))]
    saved = read(JOB + "[workload.logs]\nsaved = 'saved (?P<step>\\d+)'\n")
    assert strikes(saved[KILLED]) == [(Kill, OnLog(pattern=r"saved (?P<step>\d+)"), (0,))]
    assert strikes(saved[TERMINATED]) == [(Terminate, OnLog(pattern=r"saved (?P<step>\d+)", nth=2), (0,))]
    mute = read(JOB + "[chaos]\nafter_s = 3.0\n")
    assert strikes(mute[TWICE]) == [(Kill, AfterSeconds(seconds=3.0), (0, 1))]


def test_steps_to_strike_at_can_be_named(read):
    scenarios = read(JOB + STEPS + "[chaos]\nat_steps = [70, 30, 50]\n")
    assert strikes(scenarios[TWICE]) == [(Kill, AtStep(step=30), (0,)), (Kill, AtStep(step=70), (1,))]


def test_scenarios_stay_within_the_retries(read):
    assert tuple(read(JOB + "[platform]\nmax_retries = 0\n")) == STANDARD[:1]
    assert tuple(read(JOB + "[platform]\nmax_retries = 1\n")) == STANDARD[:3]
    for scenario in read(JOB).values():
        allowed = next(each.attempts_max for each in scenario.expects if isinstance(each, WithinRetries))
        assert allowed == 1 + sum(len(injection.attempts) for injection in scenario.injections)


def test_only_what_can_be_seen_and_is_claimed_is_promised(read):
    assert promises(read(JOB)[KILLED]) == {"completes", "within-retries"}
    claimed = read(JOB + "[promises]\nsaves_on_sigterm = true\nexit_after_sigterm = [0, 3]\nquiet_s = 9.0\n")
    assert {"grace-conduct", "exit-codes"} <= promises(claimed[TERMINATED])
    assert ExitCodes(after_sigterm=(0, 3)) in claimed[TERMINATED].expects
    assert NoHang(quiet_s=9.0) in claimed[ALONE].expects
    assert "grace-conduct" not in promises(claimed[KILLED])
    spoken = read(JOB + "speaks_protocol = true\nsave_every = 5\n")
    assert {"bit-exact-resume", "intact-checkpoints", "resumes-from-newest-durable", "makes-progress"} <= promises(spoken[KILLED])
    assert ResumesFromNewestDurable(lost_steps_max=5) in spoken[KILLED].expects


def test_a_scenario_of_one_s_own_is_added(read):
    text = (
        JOB + '[chaos]\ndeadline_s = 50.0\n[[scenarios]]\nname = "my-own"\nwhy = "x"\nexpects = [{ type = "completes" }]\ntags = ["mine"]\n'
    )
    own = read(text + 'injections = [{ fault = { type = "kill" }, at = { type = "at-step", step = 8 } }]\n')["my-own"]
    assert own.injections == (Injection(fault=Kill(), at=AtStep(step=8)),)
    assert (own.deadline_s, own.tags, own.workload.name) == (50.0, ("mine",), "my-train")
    assert read(text + "deadline_s = 7.0\n")["my-own"].deadline_s == 7.0


OWN = JOB + '[[scenarios]]\nname = "my-own"\nwhy = "x"\n'


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "Object missing required field `workload`; add it"),
        ("workload", "not TOML: Expected '=' after a key in a key/value pair (at end of document)"),
        ('[workload]\nname = "x"\n', "workload: Object missing required field `command`; add it"),
        (JOB.replace("my-train", "My Train"), "workload.name: it is 'My Train': kebab-case, at most 63 characters, as a Cloud Run job"),
        (JOB + "steps = -4\n", "workload.steps: it is -4: a number >= 0"),
        (JOB + 'steps = "many"\n', "workload.steps: it is 'many': expected `int`, got `str`"),
        (JOB + "setps = 4\n", "workload: Object contains unknown field `setps`; did you mean steps?"),
        (JOB + 'layout = "orbx"\n', "workload.layout: Invalid enum value 'orbx'; did you mean orbax?"),
        (JOB + "inspect_timeout_s = 0\n", "workload.inspect_timeout_s: it is 0.0: a finite number > 0"),
        (JOB + "inspect_timeout_s = inf\n", "workload.inspect_timeout_s: it is inf: a finite number > 0"),
        (
            JOB + 'result = "out.json"\n',
            "workload.result: it is 'out.json': a path that begins with {checkpoint_dir}: elsewhere the file of an earlier run would be taken",
        ),
        (
            JOB + "[workload.logs]\nstep = '('\n",
            "workload.logs.step: it is '(': not a regular expression: missing ), unterminated subpattern",
        ),
        (JOB + "[workload.logs]\nstep = 'step'\n", r"workload.logs.step: it is 'step': needs a group (?P<step>\d+) that holds the step"),
        (
            JOB + "[workload.environment]\nHARNESS_X = '1'\n",
            "workload.environment: it is 'HARNESS_X': reserved: the harness and the platform",
        ),
        (JOB + "[platform]\nmax_retries = 99\n", "platform.max_retries: it is 99: 0 to 10, as Cloud Run allows"),
        (JOB + "[promises]\nlost_steps_max = -2\n", "promises.lost_steps_max: it is -2: a number of steps >= 0, or -1 for save_every"),
        (JOB + "[chaos]\nat_steps = [0, 1]\n", "chaos.at_steps: it is (0, 1): steps are counted from 1"),
        (JOB + "[chaos]\nat_steps = [5]\n", "chaos.at_steps: it is (5,): two different steps: the second kill comes later than the first"),
        (JOB + "steps = 10\n[chaos]\nat_steps = [5, 20]\n", "chaos.at_steps: it is (5, 20): steps up to the 10 of the workload"),
        (JOB + "[chaos]\ndeadline_s = 2020-01-01\n", "chaos.deadline_s: it is datetime.date(2020, 1, 1): expected `float`, got `date`"),
        (OWN + "expects = []\n", "scenarios[0].expects: it is (): at least one expectation: a run that checks nothing proves nothing"),
        (OWN + 'expects = [{ type = "complete" }]\n', "scenarios[0].expects[0].type: Invalid value 'complete'; did you mean completes?"),
        (OWN + 'expects = [{ type = "completes" }]\ndeadline_s = -1.0\n', "scenarios[0].deadline_s: it is -1.0: a finite number > 0"),
        (
            OWN + 'expects = [{ type = "completes" }]\ninjections = [{ fault = { type = "kill" }, at = { type = "at-step", step = 0 } }]\n',
            "scenarios[0].injections[0].at.step: it is 0: steps are counted from 1",
        ),
        (
            OWN.replace("my-own", ALONE) + 'expects = [{ type = "completes" }]\n',
            f"scenarios: two scenarios are named '{ALONE}'; rename one",
        ),
    ],
)
def test_a_wrong_file_gives_one_message_with_the_field_and_the_value(read, tmp_path: Path, text: str, message: str):
    with pytest.raises(InvalidDocumentError) as caught:
        read(text)
    assert str(caught.value).startswith(f"{tmp_path / 'harness.toml'}: {message}")
    assert "\n" not in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path):
    with pytest.raises(InvalidDocumentError, match="No such file or directory; name a readable file, or write one with `harness init`"):
        read_config(tmp_path / "none.toml")
    with pytest.raises(InvalidDocumentError, match="not a regular file"):
        read_config(tmp_path)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"a = " + b"[" * 100_000])
def test_what_is_no_text_of_a_person_is_refused(tmp_path: Path, data: bytes):
    (tmp_path / "x.toml").write_bytes(data)
    with pytest.raises(InvalidDocumentError, match="not TOML"):
        read_config(tmp_path / "x.toml")
