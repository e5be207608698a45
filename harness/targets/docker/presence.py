"""Whether an engine can be used here: told without starting anything, and cheaply where there is none."""

import contextlib
import importlib.util
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from harness.errors import TargetUnavailableError
from harness.targets.docker.address import SOCKET

if TYPE_CHECKING:
    from harness.targets.docker.engine import Engine

PACKAGES = ("docker", "testcontainers")

PACKAGE_ADVICE = "pip install 'chaos-harness[docker]'"


def missing_packages() -> list[str]:
    """What the target needs and is not installed."""
    return [package for package in PACKAGES if importlib.util.find_spec(package) is None]


def may_hold_containers() -> bool:
    """Whether this machine could have run a container for us: for every run that is cleaned asks."""
    return (bool(os.environ.get("DOCKER_HOST")) or SOCKET.exists()) and not missing_packages()


def problem_and_advice() -> tuple[str, str]:
    """Why no engine can be used here, and what to do; empty when one answers."""
    try:
        with open_engine():
            return "", ""
    except TargetUnavailableError as error:
        return error.reason, error.advice


def image_problem() -> str:
    """Why jobs that name no image cannot run here, and what to do; empty when the engine has theirs."""
    from harness.targets.docker.images import advice_for, default_image

    try:
        with open_engine() as engine:
            image = default_image()
            return "" if engine.has_image(image) else f"the engine has no image {image}; {advice_for(image)}"
    except TargetUnavailableError as error:
        return error.reason


@contextlib.contextmanager
def open_engine() -> "Iterator[Engine]":
    """A connection to the engine.

    Raises:
        TargetUnavailableError: When there is none that can be used.
    """
    if sys.platform != "linux":
        reason = f"its signals need the engine's processes on this machine, and {sys.platform} runs them in another one"
        raise TargetUnavailableError(target="docker", reason=reason, advice="use Linux")
    missing = missing_packages()
    if missing:
        raise TargetUnavailableError(target="docker", reason=f"{' and '.join(missing)} not installed", advice=PACKAGE_ADVICE)
    from harness.targets.docker.engine import Engine

    with contextlib.closing(Engine()) as engine:
        yield engine
