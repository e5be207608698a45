"""What machines use of quotas, and when there is none left."""

import pytest

from harness.clock import ManualClock
from harness.emulator.compute.instances import Described, Instances
from harness.emulator.compute.machines import Accelerator, usage_of
from harness.emulator.compute.places import Zone
from harness.emulator.compute.quotas import require_quotas
from harness.emulator.failures import ApiError
from harness.emulator.project import ProjectState


@pytest.mark.parametrize(
    ("machine_type", "accelerators", "used"),
    [
        ("n2-standard-4", (), {"CPUS": 4}),
        ("zones/z/machineTypes/g2-standard-4", (), {"CPUS": 4, "NVIDIA_L4_GPUS": 1}),
        ("g2-standard-24", (), {"CPUS": 24, "NVIDIA_L4_GPUS": 2}),
        ("a2-highgpu-8g", (), {"CPUS": 96, "NVIDIA_A100_GPUS": 8}),
        ("a3-highgpu-8g", (), {"CPUS": 208, "NVIDIA_H100_GPUS": 8}),
        ("n1-standard-8", (("zones/z/acceleratorTypes/nvidia-tesla-t4", 2),), {"CPUS": 8, "NVIDIA_T4_GPUS": 2}),
        ("n1-standard-8", (("nvidia-tesla-v100", 1),), {"CPUS": 8, "NVIDIA_V100_GPUS": 1}),
        ("ct6e-standard-4t", (), {}),
        ("no-such", (), {}),
        ("", (), {}),
    ],
)
def test_a_machine_uses_its_quotas(machine_type, accelerators, used):
    attached = [Accelerator(accelerator_type=kind, accelerator_count=count) for kind, count in accelerators]

    assert usage_of(machine_type, attached, is_spot=False) == {"INSTANCES": 1, **used}


def test_spot_accelerators_have_quotas_of_their_own():
    assert usage_of("g2-standard-4", (), is_spot=True) == {"INSTANCES": 1, "CPUS": 4, "PREEMPTIBLE_NVIDIA_L4_GPUS": 1}


@pytest.fixture
def instances():
    return Instances(ManualClock(), lambda instance, event: None)


def add(instances, name, zone="us-central1-a", project="p"):
    return instances.add(Zone(project=project, name=zone), Described(name=name, machine_type="g2-standard-4"), {})


def test_the_last_one_fits_and_one_more_does_not(instances):
    project = ProjectState(name="p", number=1, quotas={"NVIDIA_L4_GPUS": 2.0})
    add(instances, "one")
    require_quotas(instances, project, add(instances, "two"))

    with pytest.raises(ApiError) as refused:
        require_quotas(instances, project, add(instances, "three"))
    assert str(refused.value).endswith("Quota 'NVIDIA_L4_GPUS' exceeded.  Limit: 2.0 in region us-central1.")


def test_other_regions_and_projects_use_nothing_of_it(instances):
    project = ProjectState(name="p", number=1, quotas={"NVIDIA_L4_GPUS": 1.0})
    add(instances, "one", zone="us-east5-b")
    add(instances, "two", project="q")

    require_quotas(instances, project, add(instances, "three"))


def test_over_all_regions_they_are_added(instances):
    project = ProjectState(name="p", number=1, quotas={"GPUS_ALL_REGIONS": 1.0})
    add(instances, "one", zone="us-east5-b")

    with pytest.raises(ApiError, match=r"Quota 'GPUS_ALL_REGIONS' exceeded\.  Limit: 1\.0 globally\."):
        require_quotas(instances, project, add(instances, "two"))
