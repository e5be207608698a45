"""The image that jobs run in, in pods and in containers: Debian, its Python 3.11, and what Ray and its probes call.

The Python packages are not in it: they are mounted at ``ENVIRONMENT_MOUNT``, one copy and one page cache for all containers.
"""

from pathlib import Path

from harness.kind.bundle.piece import DirectoryPiece, has_image, key_of
from harness.kind.bundle.root_file_system import LEFT_OUT, SUITE, import_image, make_root_file_system
from harness.kind.cluster import ENVIRONMENT_MOUNT

REPOSITORY = "chaos-harness-job"

PACKAGES = (
    "python3",
    "ca-certificates",
    "hostname",
    "iproute2",
    *("iptables", "conntrack", "kmod"),  # for kube-proxy, whose image stands on this one: one layer in every node for both
    "procps",  # Ray reads process tables
    "wget",  # KubeRay's probes are `wget` commands
)

CHANGES = (
    f"ENV PATH={ENVIRONMENT_MOUNT}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "ENV PYTHONUNBUFFERED=1",
    "ENV LANG=C.UTF-8",
    'CMD ["python3"]',
)


class JobImage:
    """See the module."""

    name = "job-image"
    expected_s = 90
    changes = CHANGES

    def is_present(self) -> bool:
        """See ``Piece``."""
        return has_image(job_image())

    def build(self, log: Path) -> None:
        """See ``Piece``."""
        scratch = DirectoryPiece(name=self.name, key=job_image().rpartition(":")[2])

        def fill(directory: Path) -> None:
            root = directory / "root"
            make_root_file_system(root, PACKAGES, log)
            (root / "usr/local/bin/python").symlink_to("/usr/bin/python3")
            import_image(root, job_image(), CHANGES, log)

        scratch.fill_and_discard(fill)


def job_image() -> str:
    """The reference of the job image of this version of the harness, built or not: `make kind-bundle` builds it."""
    return f"{REPOSITORY}:{key_of(SUITE, *PACKAGES, *CHANGES, *LEFT_OUT)}"
