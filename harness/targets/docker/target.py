"""The docker target: Cloud Run jobs as containers of an engine on this machine."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from harness.capabilities import Fidelity, Launch
from harness.cloud_run.environment import CHECKPOINTS_AT, check_texts
from harness.cloud_run.target import CloudRunTarget
from harness.errors import InvalidDocumentError, TargetUnavailableError
from harness.targets.docker.fidelity import FIDELITY
from harness.targets.docker.images import INTERPRETER, advice_for, image_of
from harness.targets.docker.presence import open_engine

if TYPE_CHECKING:
    from harness.targets.docker.attempts import DockerAttempts


class DockerTarget(CloudRunTarget):
    """Cloud Run jobs as containers: as the local target, and each attempt is PID 1 of a container of its own.

    So PID 1's immunity, orphans that come to it, the end of all with it, a root file system that goes with the attempt, the image's
    variables and user, and memory limits with the kernel's own kill are real. The checkpoint directory is mounted at ``/checkpoints``, the
    job's directory at its own path and read-only. The engine must be on this machine: signals go to the processes themselves.

    Not emulated: the sandbox of Cloud Run, CPU limits, GPUs, identity, image pull and cold start, live migration, and Cloud Storage as a
    mounted directory. ``fidelity`` says it item by item.
    """

    name = "docker"

    def fidelity(self) -> Sequence[Fidelity]:
        """See ``Target``."""
        return FIDELITY

    def _check(self, launch: Launch) -> None:
        check_texts(launch)
        if launch.directory == Path("/"):
            problem = "is /, which would be mounted over all that the image has"
            raise InvalidDocumentError(document=launch.job, field="directory", problem=problem)
        image = image_of(launch)
        with open_engine() as engine:
            if not engine.has_image(image):
                raise TargetUnavailableError(target=self.name, reason=f"the engine has no image {image}", advice=advice_for(image))

    def _attempts(self, launch: Launch) -> "DockerAttempts":
        from harness.targets.docker.attempts import DockerAttempts

        return DockerAttempts(launch, self._clock, image_of(launch))

    # ---- ImageHost, MemoryLimiter ------------------------------------------------------------------------------------

    def interpreter(self) -> str:
        """See ``ImageHost``."""
        return INTERPRETER

    def mounted_at(self, checkpoint_dir: Path) -> str:
        """See ``ImageHost``."""
        del checkpoint_dir
        return CHECKPOINTS_AT

    def memory_problem(self) -> str:
        """See ``MemoryLimiter``."""
        try:
            with open_engine() as engine:
                return "" if engine.limits_memory() else "the engine's kernel has no memory controller"
        except TargetUnavailableError as error:
            return str(error)
