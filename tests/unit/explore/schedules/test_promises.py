"""What a job owes under a schedule."""

from harness.explore.schedules.promises import scenario_of
from harness.scenario import Injection, LogPatterns, Outside, Schedule, Victim, Workload, name_of
from harness.scenario.expectations import ResumesFromNewestDurable, WithinRetries
from harness.scenario.faults import EndGrace, Kill, Pause, Terminate
from harness.scenario.triggers import AtMarker, AtStep
from tests.unit.explore.schedules.laboratory import case_of

SAVING = Workload(
    name="saving", command=("x",), steps=40, save_every=5, layout="step-directories", outside=Outside(result="{checkpoint_dir}/r")
)
UNKNOWN_FILES = Workload(name="unknown-files", command=("x",), steps=40, save_every=5)
MUTE = Workload(name="mute", command=("x",), speaks_protocol=False)
LOGGING = Workload(
    name="logging", command=("x",), save_every=5, speaks_protocol=False, outside=Outside(logs=LogPatterns(resumed=r"(?P<step>\d+)"))
)
KILL = Injection(fault=Kill(), at=AtStep(step=3))


def promised(workload: Workload, *injections: Injection) -> list[str]:
    return [name_of(expectation) for expectation in scenario_of(workload, Schedule(injections=injections)).expects]


def test_a_scenario_keeps_its_promises_under_other_faults():
    scenario = case_of(KILL).scenario
    other = scenario_of(scenario, Schedule(injections=(KILL, Injection(fault=Kill(), at=AtStep(step=9), attempts=(1,)))))
    assert (other.name, other.expects, other.platform, len(other.injections)) == (scenario.name, scenario.expects, scenario.platform, 2)


def test_a_workload_owes_what_can_be_seen_of_it():
    assert promised(MUTE, KILL) == ["completes", "within-retries"]
    assert promised(LOGGING, KILL) == ["completes", "within-retries", "resumes-from-newest-durable"]
    everything = ["completes", "within-retries", "same-result", "bit-exact-resume", "resumes-from-newest-durable", "intact-checkpoints"]
    assert promised(SAVING, KILL) == everything
    assert promised(UNKNOWN_FILES, KILL) == ["completes", "within-retries", "bit-exact-resume", "resumes-from-newest-durable"]
    (resumes,) = [one for one in scenario_of(SAVING, Schedule(injections=(KILL,))).expects if isinstance(one, ResumesFromNewestDurable)]
    assert resumes.lost_steps_max == 5


def test_where_nothing_dies_nothing_is_owed_of_resuming():
    assert promised(SAVING, Injection(fault=Pause(), at=AtStep(step=3))) == [
        "completes",
        "within-retries",
        "same-result",
        "intact-checkpoints",
    ]


def test_each_death_of_a_task_is_worth_a_retry_and_no_more():
    def attempts_max(*injections: Injection) -> int:
        (within,) = [one for one in scenario_of(SAVING, Schedule(injections=injections)).expects if isinstance(one, WithinRetries)]
        return within.attempts_max

    notice, end = Injection(fault=Terminate(), at=AtStep(step=3)), Injection(fault=EndGrace(), at=AtMarker(event="sigterm"))
    again = Injection(fault=Kill(), at=AtStep(step=9), attempts=(1, 2))
    assert attempts_max() == 1
    assert attempts_max(Injection(fault=Pause(), at=AtStep(step=3))) == 1
    assert attempts_max(notice, end) == 2
    assert attempts_max(KILL, again) == 4


def test_tasks_are_counted_apart():
    from harness.explore.schedules.promises import promises_of

    other = Injection(fault=Kill(), at=AtStep(step=3), victim=Victim(task=1))
    assert promises_of(MUTE, Schedule(injections=(KILL, other)))[1] == WithinRetries(attempts_max=2)
