"""What a document may not hold, because it would reach beyond its run or leave a promise unjudged."""

from pathlib import Path

import pytest

from harness.config import read_config
from harness.scenario import Fault, Injection, Outside, Schedule, Victim, name_of
from harness.scenario.faults import FlipByte, Kill, Maintenance, Pause, Terminate
from harness.scenario.triggers import AtStep, OnEffect


@pytest.mark.parametrize("name", ["../../elsewhere", "a/b", "a\nb", ".", "-rf", "a" * 101])
def test_a_name_that_is_no_single_part_of_a_path_is_refused(name):
    with pytest.raises(ValueError, match="name is"):
        Injection(fault=Kill(), at=AtStep(step=1), name=name)


@pytest.mark.parametrize("result", ["final.json", "/var/final.json", "{checkpoint_dir}/../final.json"])
def test_a_result_that_an_earlier_run_can_have_left_is_refused(result):
    with pytest.raises(ValueError, match="result is"):
        Outside(result=result)


@pytest.mark.parametrize("steps", [0, 7])
def test_lost_steps_that_are_promised_are_judged_even_where_the_job_shows_little(tmp_path: Path, steps):
    path = tmp_path / "harness.toml"
    path.write_text(f'[workload]\nname = "job"\ncommand = ["job"]\nsteps = 20\n[promises]\nlost_steps_max = {steps}\n')

    killed = read_config(path)["job-killed-without-notice-resumes"]

    assert "resumes-from-newest-durable" in {name_of(expectation) for expectation in killed.expects}


def damaged_after(fault: Fault, victim: Victim | None = None) -> Schedule:
    first = Injection(fault=fault, at=AtStep(step=7), victim=victim or Victim(), name="first")
    return Schedule(injections=(first, Injection(fault=FlipByte(), at=OnEffect(of="first"))))


@pytest.mark.parametrize("fault", [Terminate(), Pause(), Maintenance(profile="cloudrun-job-cpu-maintenance")])
def test_storage_is_not_damaged_at_rest_while_the_job_lives_on_and_saves(fault):
    assert damaged_after(Kill()).injections
    assert damaged_after(Maintenance()).injections
    with pytest.raises(ValueError, match="storage is not at rest"):
        damaged_after(fault)
    with pytest.raises(ValueError, match="storage is not at rest"):
        damaged_after(Kill(), Victim(rank=0))


def test_what_acts_on_an_effect_acts_once():
    with pytest.raises(ValueError, match="attempts is"):
        Injection(fault=Kill(), at=OnEffect(of="first"), attempts=(0, 1))
