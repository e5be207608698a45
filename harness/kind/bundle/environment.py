"""The Python environment of jobs in containers: what `requirements/all.txt` pins, installed by the job image's own Python.

Built at ``ENVIRONMENT_MOUNT`` inside a container, so that it may lie anywhere on the host and is always mounted there. pip itself is the
one that runs the harness, lent: no image needs it. It reaches the package index as here: the same variables, the same certificates.
"""

import os
from importlib.util import find_spec
from pathlib import Path

from harness.errors import UsageError
from harness.kind.bundle.job_image import job_image
from harness.kind.bundle.piece import DirectoryPiece, key_of
from harness.kind.cache import checkout_dir
from harness.kind.cluster import ENVIRONMENT_MOUNT
from harness.kind.commands import run_command

INSTALL_S = 1200.0
"""1.3 GB of wheels: two minutes with a near index."""

REMOVE_S = 60.0

BUILDER = "chaos-harness-build-environment"
"""The container's name: a killed build's container is removed by the next one."""

CERTIFICATES = Path("/etc/ssl/certs")

SCRIPT = f"""set -e
python3 -m venv --without-pip {ENVIRONMENT_MOUNT}
export PYTHONPATH=/lent PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
{ENVIRONMENT_MOUNT}/bin/python -m pip install --quiet --require-hashes --requirement /requirements.txt
unset PYTHONPATH
{ENVIRONMENT_MOUNT}/bin/python -c 'import jax, ray'
"""


class Environment:
    """See the module."""

    name = "environment"
    expected_s = 180

    def directory(self) -> Path:
        """Where it lies on the host once it is built."""
        return self._place().path

    def is_present(self) -> bool:
        """See ``Piece``."""
        return _requirements().is_file() and self.directory().is_dir()

    def build(self, log: Path) -> None:
        """See ``Piece``."""
        if not _requirements().is_file():
            raise UsageError(f"{_requirements()} is not there, and jobs get what it pins; run this from a checkout of the project")
        self._place().fill(lambda scratch: self._install(scratch, log))

    def _place(self) -> DirectoryPiece:
        return DirectoryPiece(name=self.name, key=key_of(_requirements().read_bytes(), job_image(), SCRIPT))

    def _install(self, scratch: Path, log: Path) -> None:
        pip = find_spec("pip")
        if pip is None or pip.origin is None:
            raise UsageError("the Python that runs this has no pip to lend; run it from the environment that `make install` makes")
        run_command(["docker", "rm", "--force", BUILDER], deadline_s=REMOVE_S, log=log)
        mounts = [f"{scratch}:{ENVIRONMENT_MOUNT}", f"{_requirements()}:/requirements.txt:ro", f"{Path(pip.origin).parent}:/lent/pip:ro"]
        mounts += [f"{path}:{path}:ro" for path in _reached_through(os.environ)]
        options = [option for mount in mounts for option in ("--volume", mount)]
        options += [option for name in os.environ if _concerns_pip(name) for option in ("--env", name)]
        command = ["docker", "run", "--rm", "--name", BUILDER, "--network", "host", *options, job_image(), "sh", "-c", SCRIPT]
        run_command(command, deadline_s=INSTALL_S, log=log)


def _requirements() -> Path:
    return checkout_dir() / "requirements" / "all.txt"


def _concerns_pip(name: str) -> bool:
    """Whether a variable says how packages are reached; only its name goes on the command line."""
    return name.startswith(("PIP_", "SSL_CERT", "REQUESTS_CA")) or name.upper() in {"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"}


def _reached_through(variables: "os._Environ[str]") -> list[Path]:
    """Files of the host that the index is reached through."""
    named = [Path(variables[name]) for name in ("PIP_CERT", "PIP_CONFIG_FILE", "PIP_FIND_LINKS", "SSL_CERT_FILE") if name in variables]
    usual = [CERTIFICATES, Path("/etc/pip.conf"), Path("/usr/local/share/ca-certificates")]
    found = {path for path in (*named, *usual) if path.is_absolute() and path.exists()}
    return sorted(path for path in found if path == CERTIFICATES or not path.is_relative_to(CERTIFICATES))
