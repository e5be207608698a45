"""How an adopted job mounts its checkpoints is how its copy mounts them."""

from pathlib import Path

from google.cloud import run_v2

from harness.targets.gcp.deployment import Surroundings, copy_job
from harness.targets.gcp.pace import PROJECT
from tests.unit.targets.gcp.launches import PLACE, launch_of


def test_a_copy_keeps_the_mount_options_of_the_checkpoints_but_for_the_part_of_the_bucket(tmp_path: Path):
    source = run_v2.GCSVolumeSource(bucket="theirs", mount_options=["only-dir=models", "implicit-dirs", "rename-dir-limit=200"])
    mount = run_v2.VolumeMount(name="data", mount_path="/checkpoints/")
    task = run_v2.TaskTemplate(
        containers=[run_v2.Container(image="some/image", volume_mounts=[mount])], volumes=[run_v2.Volume(name="data", gcs=source)]
    )
    adopted = run_v2.Job(template=run_v2.ExecutionTemplate(template=task))

    copy = copy_job(adopted, launch_of(tmp_path), Surroundings(place=PLACE, pace=PROJECT))

    options = {volume.name: list(volume.gcs.mount_options) for volume in copy.template.template.volumes}["checkpoint-volume"]
    assert options[0].startswith("only-dir=harness/")
    assert options[1:] == ["implicit-dirs", "rename-dir-limit=200"]
