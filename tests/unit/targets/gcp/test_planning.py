"""Plans: what they say of costs and victims, and when they are not applied."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
from google.api_core import exceptions

from harness.clock import ManualClock
from harness.errors import HarnessError, InvalidDocumentError, UsageError
from harness.scenario import Injection, Platform, Scenario, Workload
from harness.scenario.cluster_faults import LoseNode, LosePool, PreemptWorkload
from harness.scenario.expectations import Completes
from harness.scenario.faults import CancelExecution, Kill
from harness.scenario.triggers import AfterSeconds
from harness.targets.gcp.applying import (
    PlanDriftedError,
    PlanExpiredError,
    PlanOfAnotherError,
    PlanProblemError,
    require_fitting,
    require_holding,
)
from harness.targets.gcp.calling import Caller, Page
from harness.targets.gcp.guard import OverLimitError, Reading, abort_reason, require_allowed, require_run_owned
from harness.targets.gcp.place import Place
from harness.targets.gcp.plan import Limits, Permission, Plan, Quota, Resource, digest_of, read_plan, write_plan
from harness.targets.gcp.planning import ASKED_AGAIN, EXPIRES_AFTER_S, Accelerators, Wanted, gpus_needed, make_plan
from harness.targets.gcp.quotas import gpu_quotas
from harness.targets.gcp.resolving import Resolved
from harness.targets.gcp.resource_facts import JobShape, bucket_facts
from harness.targets.gcp.secrets import MASK, Secrets

PLACE = Place(project="our-project", region="europe-west4", bucket="our-bucket", job="train")
WIDE = Limits(blast_radius=100, gpu_hours=1000.0, duration_s=1e6)
SCENARIO = Scenario(
    name="killed-job-resumes",
    why="a host error",
    workload=Workload(name="train", command=("python", "train.py")),
    platform=Platform(max_retries=3, timeout_s=7200.0),
    injections=(Injection(fault=Kill(), at=AfterSeconds(seconds=1.0), attempts=(0, 1)),),
    expects=(Completes(),),
)
JOB = Resource(
    kind="job",
    name=PLACE.job_name,
    action="adopt",
    facts={"uid": "u1", "etag": "e1", "generation": "3", "labels.harness-chaos": "allowed"},
)
BUCKET = Resource(kind="bucket", name="our-bucket", action="adopt", facts={"metageneration": "1", "labels.harness-chaos": "allowed"})
RESOLVED = Resolved(
    resources=(JOB, BUCKET),
    permissions=(Permission(resource=PLACE.job_name, name="run.jobs.run", is_held=True),),
    job=JobShape(tasks=1, max_retries=3, timeout_s=7200.0, gpus=1),
    pool_sizes={},
)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def plan_of(
    clock: ManualClock, *, scenario: Scenario = SCENARIO, resolved: Resolved = RESOLVED, limits: Limits = WIDE, place: Place = PLACE
) -> Plan:
    return make_plan([Wanted(scenario=scenario)], place, resolved, limits, clock=clock, secrets=Secrets())


def digests(*scenarios: Scenario) -> dict[str, str]:
    return {scenario.name: digest_of(scenario) for scenario in scenarios or (SCENARIO,)}


def with_facts(resource: Resource, **facts: str) -> Resource:
    return msgspec.structs.replace(resource, facts=resource.facts | facts)


def test_exposure_is_timeout_times_attempts_times_tasks_times_gpus(clock):
    resolved = replace(RESOLVED, job=JobShape(tasks=4, max_retries=2, timeout_s=3600.0, gpus=2))
    scenario = msgspec.structs.replace(SCENARIO, platform=Platform(tasks=4, timeout_s=3600.0, max_retries=2))
    assert plan_of(clock, scenario=scenario, resolved=resolved).gpu_hours == 1.0 * (2 + 1) * 4 * 2


def test_uninterrupted_runs_cost_too_and_have_the_usual_retries(clock):
    scenario = msgspec.structs.replace(SCENARIO, platform=Platform(timeout_s=60.0, max_retries=0), injections=())
    compared = Wanted(scenario=scenario, executions=3, uninterrupted=scenario)
    plan = make_plan([compared], PLACE, RESOLVED, WIDE, clock=clock, secrets=Secrets())
    assert plan.gpu_hours == pytest.approx(3 * 600.0 / 3600.0 * (3 + 1))


def test_repeats_that_are_compared_with_nothing_have_what_the_scenario_grants(clock):
    scenario = msgspec.structs.replace(SCENARIO, platform=Platform(timeout_s=60.0, max_retries=0), injections=())
    plan = make_plan([Wanted(scenario=scenario, executions=3)], PLACE, RESOLVED, WIDE, clock=clock, secrets=Secrets())
    assert plan.gpu_hours == pytest.approx(3 * 60.0 / 3600.0)


ON_CLUSTER = msgspec.structs.replace(PLACE, job="", cluster="tpu", zone="us-east5-b")


def test_on_a_cluster_what_pods_ask_for_is_held_until_the_deadline(clock):
    scenario = msgspec.structs.replace(SCENARIO, platform=Platform(tasks=2), deadline_s=3300.0)
    wanted = Wanted(scenario=scenario, executions=3, accelerators=Accelerators(gpus=1, chips=32))
    plan = make_plan([wanted], ON_CLUSTER, replace(RESOLVED, job=None), WIDE, clock=clock, secrets=Secrets())
    assert (plan.problems, plan.gpus, plan.hours) == ((), 66, "accelerator-hours")
    assert plan.gpu_hours == pytest.approx(3 * 2 * 33 * (3300.0 + 300.0) / 3600.0)
    narrow = make_plan([wanted], ON_CLUSTER, replace(RESOLVED, job=None), Limits(duration_s=1e6), clock=clock, secrets=Secrets())
    assert "198.00 accelerator-hours at worst, and gpu_hours is 1" in narrow.problems


def test_accelerators_of_a_cluster_that_nobody_can_read_are_a_problem_and_never_nothing(clock):
    for wanted in (Wanted(scenario=SCENARIO), Wanted(scenario=SCENARIO, accelerators=Accelerators(problem="no such file"))):
        plan = make_plan([wanted], ON_CLUSTER, replace(RESOLVED, job=None), WIDE, clock=clock, secrets=Secrets())
        (problem,) = plan.problems
        assert "killed-job-resumes: the accelerator-hours are not known" in problem
        assert wanted.accelerators.problem in problem


def test_placeholders_that_are_not_counted_are_told(clock):
    scenario = msgspec.structs.replace(SCENARIO, injections=(Injection(fault=PreemptWorkload(), at=AfterSeconds(seconds=1.0)),))
    wanted = Wanted(scenario=scenario, accelerators=Accelerators(chips=4))
    plan = make_plan([wanted], ON_CLUSTER, replace(RESOLVED, job=None), WIDE, clock=clock, secrets=Secrets())
    assert any("placeholder of" in unknown and "not counted" in unknown for unknown in plan.unknowns)


def test_a_job_that_is_made_costs_what_the_scenario_grants_it(clock):
    place = msgspec.structs.replace(PLACE, image="i", gpus=1)
    resolved = replace(RESOLVED, job=None, resources=(Resource(kind="job", name=PLACE.job_name, action="make"), BUCKET))
    plan = plan_of(clock, resolved=resolved, place=place)
    assert plan.gpu_hours == 2.0 * 4
    assert plan.problems == ()


def test_memory_that_cloud_run_does_not_grant_beside_the_jobs_cpus_is_a_problem(clock):
    resolved = replace(RESOLVED, job=JobShape(tasks=1, max_retries=3, timeout_s=7200.0, limits={"cpu": "8", "memory": "16Gi"}))
    scenario = msgspec.structs.replace(SCENARIO, platform=Platform(max_retries=3, timeout_s=7200.0, memory_mib=1024))
    (problem,) = plan_of(clock, scenario=scenario, resolved=resolved).problems
    assert problem == ("killed-job-resumes: platform.memory_mib is 1024, and the adopted job's 8 CPUs come with at least 4096 MiB")


def test_what_the_run_changes_of_the_adopted_job_is_said(clock):
    resolved = replace(RESOLVED, job=JobShape(tasks=1, max_retries=0, timeout_s=168 * 3600.0, gpus=1))
    assert plan_of(clock, resolved=resolved).notes == (
        "killed-job-resumes runs with max_retries 3, and the job itself has 0",
        "killed-job-resumes runs with a timeout of 7200 s, and the job itself has 604800 s",
    )


def test_victims_are_exact_and_counted(clock):
    scenario = msgspec.structs.replace(
        SCENARIO,
        platform=Platform(tasks=5),
        injections=(
            Injection(fault=Kill(), at=AfterSeconds(seconds=1.0)),
            Injection(fault=CancelExecution(), at=AfterSeconds(seconds=2.0)),
            Injection(fault=LoseNode(), at=AfterSeconds(seconds=3.0)),
            Injection(fault=LosePool(pool="dws-pool"), at=AfterSeconds(seconds=4.0)),
            Injection(fault=LosePool(pool="nobody-knows"), at=AfterSeconds(seconds=5.0)),
        ),
    )
    place = msgspec.structs.replace(PLACE, cluster="tpu", zone="us-east5-b")
    faults = plan_of(clock, scenario=scenario, resolved=replace(RESOLVED, pool_sizes={"dws-pool": 4}), place=place).scenarios[0].faults
    assert [(fault.blast_radius, fault.unit) for fault in faults[:4]] == [(1, "tasks"), (5, "tasks"), (1, "nodes"), (4, "nodes")]
    assert faults[3].hits == ("projects/our-project/locations/us-east5-b/clusters/tpu/nodePools/dws-pool",)
    assert faults[4].blast_radius > WIDE.blast_radius  # what nobody can tell is over every limit


@pytest.mark.parametrize(
    ("limits", "told"),
    [
        (Limits(blast_radius=1, gpu_hours=7.9, duration_s=1e6), "8.00 GPU-hours at worst, and gpu_hours is 7.9"),
        (Limits(blast_radius=1, gpu_hours=8.0, duration_s=10.0), "and duration_s is 10"),
    ],
)
def test_a_plan_over_its_limits_is_not_applied(clock, limits, told):
    plan = plan_of(clock, limits=limits)
    assert any(told in problem for problem in plan.problems)
    with pytest.raises(PlanProblemError, match="at worst"):
        require_fitting(plan, place=PLACE, digests=digests(), clock=clock)


def test_a_fault_that_hits_too_many_is_over_the_limit(clock):
    scenario = msgspec.structs.replace(
        SCENARIO, platform=Platform(tasks=3), injections=(Injection(fault=CancelExecution(), at=AfterSeconds(seconds=1.0)),)
    )
    plan = plan_of(clock, scenario=scenario, limits=msgspec.structs.replace(WIDE, blast_radius=2))
    assert plan.problems == ("1-cancel-execution of killed-job-resumes hits 3 tasks, and blast_radius is 2",)


def test_limits_that_were_lowered_since_hold(clock):
    plan = plan_of(clock)
    with pytest.raises(OverLimitError, match="gpu_hours is 1"):
        require_holding(plan, plan_of(clock), Limits(blast_radius=1, gpu_hours=1.0, duration_s=1e6))


@pytest.mark.parametrize("which", [JOB, BUCKET])
@pytest.mark.parametrize("labels", [{}, {"labels.harness-chaos": "yes"}, {"labels.harness": "allowed"}])
def test_only_what_its_owner_has_labelled_is_touched(clock, which, labels):
    bare = msgspec.structs.replace(which, facts={"uid": "u1"} | labels)
    resources = tuple(bare if each is which else each for each in (JOB, BUCKET))
    plan = plan_of(clock, resolved=replace(RESOLVED, resources=resources))
    assert plan.problems == (f"{which.kind} {which.name} is not labelled harness-chaos=allowed; its owner may allow it by that label",)
    with pytest.raises(HarnessError, match="harness-chaos=allowed"):
        require_allowed(which.kind, which.name, {key.removeprefix("labels."): value for key, value in labels.items()})


def test_what_is_missing_or_may_not_be_is_told_all_at_once(clock):
    resolved = replace(
        RESOLVED,
        job=None,
        resources=(Resource(kind="job", name=PLACE.job_name, action="missing"), BUCKET),
        permissions=(
            Permission(resource="b/our-bucket", name="storage.objects.create", is_held=False),
            Permission(resource="b/our-bucket", name="storage.objects.delete", is_held=False),
            Permission(resource="projects/our-project", name="logging.logEntries.list", is_held=None, why="nobody tells"),
        ),
        problems=("b/x could not be read",),
    )
    plan = plan_of(clock, resolved=resolved)
    assert plan.problems == (
        "b/x could not be read",
        f"job {PLACE.job_name} is not there; name an image, and it is made",
        "storage.objects.create, storage.objects.delete are missing on b/our-bucket",
    )
    assert plan.unknowns == ("whether logging.logEntries.list are held on projects/our-project: nobody tells",)


def quota_of(limit: float | None, name: str = "run.googleapis.com/nvidia_l4_gpu_allocation") -> Quota:
    return Quota(name=name, place="our-project/europe-west4", needed=2.0, limit=limit, why="" if limit is not None else "nobody tells")


@pytest.mark.parametrize(
    ("limits", "is_problem"),
    [((1.0,), True), ((2.0,), False), ((None,), False), ((1.0, 3.0), False), ((1.0, 0.0), True), ((1.0, None), False), ((), False)],
)
def test_a_quota_stands_in_the_way_only_where_it_is_known_to(clock, limits, is_problem):
    plan = plan_of(clock, resolved=replace(RESOLVED, quotas=tuple(map(quota_of, limits))))
    assert bool(plan.problems) == is_problem
    assert [quota.limit for quota in plan.quotas] == list(limits)


METRICS = [
    {
        "metric": "run.googleapis.com/cpu_allocation",
        "displayName": "Total CPU allocation",
        "consumerQuotaLimits": [{"quotaBuckets": [{"effectiveLimit": "9"}]}],
    },
    {
        "metric": "run.googleapis.com/nvidia_l4_gpu_allocation_no_zonal_redundancy",
        "displayName": "Total Nvidia L4 GPU allocation without zonal redundancy",
        "consumerQuotaLimits": [
            {
                "unit": "1/{project}/{region}",
                "quotaBuckets": [
                    {"effectiveLimit": "0"},
                    {"effectiveLimit": "3", "dimensions": {"region": "europe-west4"}},
                    {"effectiveLimit": "5", "dimensions": {"region": "us-central1"}},
                ],
            }
        ],
    },
    {
        "metric": "run.googleapis.com/other_gpu",
        "displayName": "RTX PRO 6000 GPU",
        "consumerQuotaLimits": [{"quotaBuckets": [{"effectiveLimit": "-1"}]}],
    },
]


@pytest.mark.parametrize(
    ("gpu_type", "region", "limits"),
    [
        ("nvidia-l4", "europe-west4", [3.0]),
        ("nvidia-l4", "asia-south1", [0.0]),
        ("rtx-pro-6000", "europe-west4", [1e9]),
        ("h100", "europe-west4", [None]),
    ],
)
def test_limits_of_gpus_are_those_of_the_type_and_the_region(clock, gpu_type, region, limits):
    pages = {"": Page(items=METRICS[:1], token="next"), "next": Page(items=METRICS[1:])}
    place = msgspec.structs.replace(PLACE, region=region)
    found = gpu_quotas(Caller(clock=clock), place, lambda token, timeout_s: pages[token], gpu_type=gpu_type, needed=1)
    assert [quota.limit for quota in found] == limits
    assert all(quota.needed == 1.0 for quota in found)


def test_quotas_that_cannot_be_read_are_unknown_and_say_why(clock):
    def fetch(token: str, timeout_s: float) -> Page:
        raise exceptions.Forbidden("Service Usage API has not been used")

    (quota,) = gpu_quotas(Caller(clock=clock), PLACE, fetch, gpu_type="nvidia-l4", needed=1)
    assert quota.limit is None
    assert "Service Usage API has not been used" in quota.why
    assert gpu_quotas(Caller(clock=clock), PLACE, fetch, gpu_type="nvidia-l4", needed=0) == ()


def test_what_a_service_tells_amiss_is_no_quota(clock):
    pages = {
        "": Page(
            items=[
                {"metric": "l4-gpu", "consumerQuotaLimits": "none"},
                {"metric": "l4-gpu", "consumerQuotaLimits": [{"quotaBuckets": [None]}]},
            ]
        )
    }
    (quota,) = gpu_quotas(Caller(clock=clock), PLACE, lambda token, timeout_s: pages[token], gpu_type="nvidia-l4", needed=1)
    assert quota.limit is None


def test_a_plan_is_what_was_written(clock, tmp_path: Path):
    plan = plan_of(clock)
    write_plan(plan, tmp_path / "plan.json")
    assert read_plan(tmp_path / "plan.json") == plan


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"version": 1}', "is no plan: Object missing required field `made_at`; make one with `harness run --target gcp --plan`"),
        ('{"version": 1, "made', "is no plan: Input data was truncated; make one with"),
        ('"import sys"', "is no plan: it is 'import sys': expected `object`, got `str`; make one with"),
        ('{"made_at": "yesterday"}', "is no plan: made_at: Invalid RFC3339 encoded datetime; make one with"),
        (None, "the plan cannot be read: No such file or directory; make one with"),
    ],
)
def test_what_is_no_plan_is_refused_and_how_to_make_one_is_said(tmp_path: Path, text: str | None, said: str):
    if text is not None:
        (tmp_path / "plan.json").write_text(text)
    with pytest.raises(InvalidDocumentError) as refused:
        read_plan(tmp_path / "plan.json")
    assert str(refused.value).startswith(f"{tmp_path / 'plan.json'}: {said}")


@pytest.mark.parametrize(
    "edit",
    [
        lambda plan: plan["scenarios"][0].update(seed=7),
        lambda plan: plan["scenarios"].append(plan["scenarios"][0]),
        lambda plan: plan["limits"].update(gpu_hours=1.0),
        lambda plan: plan.update(expires_at="2099-01-01T00:00:00Z"),
        lambda plan: plan.pop("notes"),
        lambda plan: plan["resources"][0]["facts"].update(uid="u2"),
        lambda plan: plan.pop("sha256"),
    ],
    ids=["seed", "twice", "limits", "expiry", "notes", "facts", "sha256"],
)
def test_a_plan_that_was_edited_is_refused_whatever_was_edited(clock, tmp_path: Path, edit):
    path = tmp_path / "plan.json"
    write_plan(msgspec.structs.replace(plan_of(clock), notes=("worth knowing",)), path)
    document = msgspec.json.decode(path.read_bytes())
    path.write_bytes(msgspec.json.encode(document))
    read_plan(path)  # spaces are no edits
    edit(document)
    path.write_bytes(msgspec.json.encode(document))
    with pytest.raises(InvalidDocumentError, match="was changed after it was written"):
        read_plan(path)


def test_no_directory_is_made_for_a_plan(clock, tmp_path: Path):
    with pytest.raises(UsageError, match="No such file or directory; name a writable place with --plan-file"):
        write_plan(plan_of(clock), tmp_path / "none" / "plan.json")
    assert list(tmp_path.iterdir()) == []


def test_a_credential_in_what_a_service_tells_is_not_in_the_plan(clock, tmp_path: Path):
    job = with_facts(JOB, **{"labels.api-key": "planted-1", "images": "host/i?access_token=planted-2"})
    plan = plan_of(clock, resolved=replace(RESOLVED, resources=(job, BUCKET), problems=("Authorization: Bearer planted-3-token",)))
    write_plan(plan, tmp_path / "plan.json")
    text = (tmp_path / "plan.json").read_text()
    assert "planted" not in text
    assert MASK in text
    assert read_plan(tmp_path / "plan.json") == plan


def test_a_plan_that_fits_and_holds_is_applied(clock):
    plan = plan_of(clock)
    clock.advance(EXPIRES_AFTER_S - 1)
    require_fitting(plan, place=PLACE, digests=digests(), clock=clock)
    require_holding(plan, plan_of(clock), WIDE)


@pytest.mark.parametrize("shift_s", [EXPIRES_AFTER_S, -1.0])
def test_a_plan_that_is_too_old_or_of_tomorrow_is_refused(clock, shift_s):
    plan = plan_of(clock)
    later = ManualClock(utc=clock.utc() + timedelta(seconds=shift_s))
    with pytest.raises(PlanExpiredError, match="2026-01-01 00:00:00 UTC"):
        require_fitting(plan, place=PLACE, digests=digests(), clock=later)


@pytest.mark.parametrize("field", ["project", "region", "bucket", "job", "image", "service_account", "cluster", "zone"])
def test_a_plan_of_another_place_is_refused(clock, field):
    place = msgspec.structs.replace(PLACE, **{field: "another-one"})
    with pytest.raises(PlanOfAnotherError, match=f"{field}: planned .*, found another-one"):
        require_fitting(plan_of(clock), place=place, digests=digests(), clock=clock)


def test_a_plan_of_other_scenarios_is_refused(clock):
    edited = msgspec.structs.replace(SCENARIO, deadline_s=61.0)
    another = msgspec.structs.replace(SCENARIO, name="another-one")
    for scenarios in ((edited,), (another,), (SCENARIO, another), ()):
        found = {scenario.name: digest_of(scenario) for scenario in scenarios}
        with pytest.raises(PlanOfAnotherError, match="scenario"):
            require_fitting(plan_of(clock), place=PLACE, digests=found, clock=clock)


DRIFTS = {
    "etag": (with_facts(JOB, etag="e2"), f"job {PLACE.job_name}: etag: planned e1, found e2"),
    "generation": (with_facts(JOB, generation="4"), "generation: planned 3, found 4"),
    "another job of that name": (with_facts(JOB, uid="u2"), "uid: planned u1, found u2"),
    "a label more": (with_facts(JOB, **{"labels.team": "vision"}), "labels.team: planned nothing, found vision"),
    "gone": (Resource(kind="job", name=PLACE.job_name, action="missing"), "planned adopt, found missing"),
}


@pytest.mark.parametrize("drift", DRIFTS)
def test_each_field_that_drifted_is_named(clock, drift):
    job, told = DRIFTS[drift]
    with pytest.raises(PlanDriftedError) as caught:
        require_holding(plan_of(clock), plan_of(clock, resolved=replace(RESOLVED, resources=(job, BUCKET))), WIDE)
    assert told in str(caught.value)


def test_all_that_drifted_is_named_at_once(clock):
    found = replace(
        RESOLVED,
        resources=(with_facts(JOB, etag="e2", generation="4"), with_facts(BUCKET, metageneration="2")),
        permissions=(Permission(resource=PLACE.job_name, name="run.jobs.run", is_held=False),),
    )
    with pytest.raises(PlanDriftedError) as caught:
        require_holding(plan_of(clock), plan_of(clock, resolved=found), WIDE)
    assert [(drift.planned, drift.found) for drift in caught.value.drifts] == [("e1", "e2"), ("3", "4"), ("1", "2"), ("held", "missing")]


LACKING = replace(
    RESOLVED,
    permissions=(
        Permission(resource=PLACE.job_name, name="run.jobs.get", is_held=True),
        Permission(resource=PLACE.job_name, name="run.jobs.run", is_held=False),
    ),
)
HOLDING = replace(LACKING, permissions=tuple(msgspec.structs.replace(one, is_held=True) for one in LACKING.permissions))


def plan_of_reader(clock: ManualClock, resolved: Resolved = LACKING) -> Plan:
    return make_plan([Wanted(scenario=SCENARIO)], PLACE, resolved, WIDE, clock=clock, secrets=Secrets(), read_only_planner=True)


def test_what_a_planner_that_only_reads_lacks_for_writing_is_unknown_and_of_reading_a_problem(clock):
    plan = plan_of_reader(clock)
    assert (plan.problems, plan.permissions[1].is_held) == ((), None)
    assert plan.unknowns == (f"whether run.jobs.run are held on {PLACE.job_name}: {ASKED_AGAIN}",)
    blind = replace(RESOLVED, permissions=(Permission(resource=PLACE.job_name, name="run.jobs.get", is_held=False),))
    assert plan_of_reader(clock, blind).problems == (f"run.jobs.get is missing on {PLACE.job_name}",)
    assert plan_of(clock, resolved=LACKING).problems == (f"run.jobs.run is missing on {PLACE.job_name}",)


def test_who_applies_the_plan_of_one_that_only_reads_must_hold_all(clock):
    plan = plan_of_reader(clock)
    require_holding(plan, plan_of(clock, resolved=HOLDING), WIDE)
    with pytest.raises(PlanProblemError, match=r"run\.jobs\.run is missing"):
        require_holding(plan, plan_of(clock, resolved=LACKING), WIDE)
    with pytest.raises(PlanDriftedError, match=r"run\.jobs\.run on .*: planned missing, found held"):
        require_holding(msgspec.structs.replace(plan_of(clock, resolved=LACKING), problems=()), plan_of(clock, resolved=HOLDING), WIDE)


def test_quotas_that_one_of_two_accounts_may_not_read_are_no_drift_and_a_quota_that_fell_is(clock):
    asked = Quota(name="GPUs of Cloud Run", place="our-project/europe-west4", needed=1.0, limit=None, why="permission denied")
    unread, read = (replace(HOLDING, quotas=(msgspec.structs.replace(asked, limit=limit),)) for limit in (None, 3.0))
    require_holding(plan_of_reader(clock, unread), plan_of(clock, resolved=read), WIDE)
    less = replace(HOLDING, quotas=(msgspec.structs.replace(asked, limit=2.0),))
    for plan, found in ((plan_of_reader(clock, read), less), (plan_of(clock, resolved=unread), read)):
        with pytest.raises(PlanDriftedError, match="quota GPUs of Cloud Run"):
            require_holding(plan, plan_of(clock, resolved=found), WIDE)


def test_costs_that_rose_are_drift(clock):
    dearer = replace(RESOLVED, job=JobShape(tasks=1, max_retries=3, timeout_s=7200.0, gpus=8))
    with pytest.raises(PlanDriftedError, match=r"GPU-hours of killed-job-resumes: planned 8\.000, found 64\.000"):
        require_holding(plan_of(clock), plan_of(clock, resolved=dearer), WIDE)


def test_a_quota_that_fell_is_drift(clock):
    plan = plan_of(clock)
    less = msgspec.structs.replace(plan, quotas=(Quota(name="GPUs of Cloud Run", place="our-project/europe-west4", needed=1.0, limit=0.0),))
    with pytest.raises(PlanDriftedError, match="quota GPUs of Cloud Run"):
        require_holding(plan, less, WIDE)


def test_problems_struck_out_of_the_file_come_back(clock):
    resolved = replace(RESOLVED, resources=(msgspec.structs.replace(JOB, facts={"uid": "u1"}), BUCKET))
    plan = plan_of(clock, resolved=resolved)
    edited = msgspec.structs.replace(plan, problems=())
    require_fitting(edited, place=PLACE, digests=digests(), clock=clock)
    with pytest.raises(PlanProblemError, match="not labelled"):
        require_holding(edited, plan_of(clock, resolved=resolved), WIDE)


CALM = Reading(elapsed_s=10.0, gpu_hours=0.1, labels={"job": {"harness-chaos": "allowed"}}, holds_lock=True)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, ""),
        ({"holds_lock": False}, "lock of the project"),
        ({"elapsed_s": 3601.0}, "duration_s is 3600"),
        ({"gpu_hours": 1.1}, "gpu_hours is 1"),
        ({"labels": {"job": None}}, "job is gone"),
        ({"labels": {"job": {}}}, "its owner wants no faults"),
        ({"foreign_executions": ("train-abc",)}, "train-abc"),
    ],
)
def test_a_run_ends_itself(change, told):
    reason = abort_reason(msgspec.structs.replace(CALM, **change), Limits())
    assert told in reason
    assert bool(reason) == bool(told)


@pytest.mark.parametrize("name", ["harness/ab12/../other/x", "harness/ab1/x", "checkpoints/x", "harness/ab12", "/harness/ab12/x"])
def test_an_object_outside_of_the_runs_prefix_is_left_alone(name):
    with pytest.raises(HarnessError):
        require_run_owned(name, "ab12")
    with pytest.raises(HarnessError):
        require_run_owned("harness//x", "")
    require_run_owned("harness/ab12/checkpoints/x", "ab12")


def test_what_a_bucket_keeps_of_what_is_deleted_is_told_and_one_that_deletes_nothing_is_refused(clock):
    document = {"versioning": {"enabled": True}, "softDeletePolicy": {"retentionDurationSeconds": "604800"}}
    facts = bucket_facts(document | {"labels": {"harness-chaos": "allowed"}})
    plan = plan_of(clock, resolved=replace(RESOLVED, resources=(JOB, msgspec.structs.replace(BUCKET, facts=facts))))
    assert plan.problems == ()
    assert "bucket our-bucket keeps versions: all that a run writes over is billed until the run ends, and is deleted then" in plan.notes
    assert "bucket our-bucket keeps what is deleted or written over for 7 days, and it is billed" in plan.notes
    assert not any("folders" in note for note in plan.notes)
    kept = facts | {"retention_s": bucket_facts({"retentionPolicy": {"retentionPeriod": "3600"}})["retention_s"]}
    plan = plan_of(clock, resolved=replace(RESOLVED, resources=(JOB, msgspec.structs.replace(BUCKET, facts=kept))))
    assert plan.problems == ("bucket our-bucket has a retention policy of 3600 s: what a run has written could not be removed",)
    holding = facts | {"holds": bucket_facts({"defaultEventBasedHold": True})["holds"]}
    plan = plan_of(clock, resolved=replace(RESOLVED, resources=(JOB, msgspec.structs.replace(BUCKET, facts=holding))))
    assert [problem.partition(" (")[0] for problem in plan.problems] == ["bucket our-bucket holds every new object"]


def test_folders_that_stay_in_a_bucket_with_its_own_are_told(clock):
    facts = BUCKET.facts | {"hierarchicalNamespace": bucket_facts({"hierarchicalNamespace": {"enabled": True}})["hierarchicalNamespace"]}
    plan = plan_of(clock, resolved=replace(RESOLVED, resources=(JOB, msgspec.structs.replace(BUCKET, facts=facts))))
    assert plan.problems == ()
    assert any("bucket our-bucket has folders of its own: those of a run stay, empty" in note for note in plan.notes)


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"environment": {"HF_TOKEN": "hunter22"}}, "environment: HF_TOKEN is named like a credential"),
        ({"environment": {"HUB": "https://me:hunter22@hub"}}, "environment: the value of HUB looks like a credential"),
        ({"command": ("train", "--password=hunter22")}, "command: argument 1 looks like a credential"),
        ({"command": ("train", "--password", "hunter22")}, "command: argument 2 looks like a credential"),
    ],
)
def test_a_credential_in_a_workload_is_a_problem_of_the_plan(clock, fields, told):
    workload = msgspec.structs.replace(SCENARIO.workload, **fields)
    plan = plan_of(clock, scenario=msgspec.structs.replace(SCENARIO, workload=workload))
    assert len(plan.problems) == 1
    assert plan.problems[0].startswith(f"killed-job-resumes: {told}")
    assert "hunter22" not in str(plan)


def test_gpus_of_scenarios_that_run_at_once_are_needed_together():
    wanted = [Wanted(scenario=SCENARIO)] * 3
    assert [gpus_needed(wanted, PLACE, RESOLVED.job, jobs) for jobs in (1, 2, 8)] == [1, 2, 3]
