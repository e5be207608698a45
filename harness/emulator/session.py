"""An emulator for a session of runs: started beside them, found by its environment, gone with all that it kept when the session ends."""

import contextlib
from collections.abc import Iterator, Mapping

from harness.environment import changed_environment

PROJECT, REGION, BUCKET, JOB = "emulated", "europe-west4", "emulated-harness", "emulated-job"
"""Names of what is emulated. Nothing with them is asked of Google: the connection goes to the emulator alone."""

PLACE = {
    "HARNESS_GCP_PROJECT": PROJECT,
    "HARNESS_GCP_REGION": REGION,
    "HARNESS_GCP_BUCKET": BUCKET,
    "HARNESS_GCP_JOB": JOB,
    "HARNESS_GCP_IMAGE": "emulated/image",
    "HARNESS_GCP_GPUS": "1",
    "HARNESS_GCP_GPU_TYPE": "nvidia-l4",
}
"""Where runs of the target ``gcp`` happen then: the guide's job, one L4 a task. Images are not looked into."""

SESSION_VARIABLE = "HARNESS_EMULATED_SESSION"
"""Says to what runs in a session that the emulator is the session's own, and no one's that a user has started."""

OWNED_LABELS = {"harness-chaos": "allowed"}
"""The bucket is ours alone."""


@contextlib.contextmanager
def emulated_session() -> Iterator[None]:
    """Have the target ``gcp`` on an emulator for a while, in this process and in all that it starts.

    Variables of a real project are hidden meanwhile, so that nothing of it is touched.
    """
    from harness.emulator.emulator import Emulator
    from harness.emulator.standing import standing
    from harness.emulator.storage.buckets import BucketSettings

    with standing(None) as here, Emulator(here.root, projects=(PROJECT,)) as emulator:
        project = emulator.world.projects.find(PROJECT)
        assert project is not None
        emulator.buckets.create(BUCKET, project=PROJECT, project_number=project.number, settings=BucketSettings(labels=OWNED_LABELS))
        told = {name: value for name, value in emulator.endpoints.environment().items() if name.startswith("HARNESS_")}
        with changed_environment({**PLACE, **told, SESSION_VARIABLE: "1"}, hiding="HARNESS_GCP_"):
            yield


def is_emulated_session(environment: Mapping[str, str]) -> bool:
    """Whether runs are on an emulator that goes with the command."""
    return environment.get(SESSION_VARIABLE) == "1"
