"""Which image a job runs in, and what is mounted into it to run there."""

import os
from pathlib import Path

from harness.capabilities import Launch
from harness.kind.bundle.environment import Environment
from harness.kind.bundle.job_image import job_image
from harness.kind.cluster import ENVIRONMENT_MOUNT

IMAGE_VARIABLE = "HARNESS_DOCKER_IMAGE"

INTERPRETER = "python3"
"""By name: an image has its own, wherever it lies."""


def image_of(launch: Launch) -> str:
    """The job's own image, else the one that the environment names, else the harness's: Debian with Python and nothing more."""
    return launch.image or default_image()


def default_image() -> str:
    """The image of jobs that name none."""
    return os.environ.get(IMAGE_VARIABLE) or job_image()


def advice_for(image: str) -> str:
    """What to do where the engine does not have an image."""
    if image == job_image():
        return f"build it with `python -m harness.kind.bundle --only job-image`, or name one of your own in {IMAGE_VARIABLE}"
    return f"`docker pull {image}`, or build it, or name another one"


def environment_mount(image: str) -> list[tuple[Path, str, bool]]:
    """The packages of ``requirements/all.txt``, where they have been built for the harness's own image; another image has its own."""
    environment = Environment()
    if image != job_image() or not environment.is_present():
        return []
    return [(environment.directory(), str(ENVIRONMENT_MOUNT), False)]
