"""The images of nodes: the base with every image that they run, unpacked.

Two of them: what workers need is copied for every worker when it starts, so it is kept small.
"""

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.kind.bundle.job_image import job_image
from harness.kind.bundle.node_base import IMAGES, NodeBase, build_image
from harness.kind.bundle.piece import DirectoryPiece, has_image, key_of
from harness.kind.bundle.programs import COREDNS_PROGRAM, ETCD_PROGRAM, KUBERAY_PROGRAM, KUBERNETES_PROGRAMS, KUEUE_PROGRAM
from harness.kind.commands import run_command
from harness.kind.versions import COREDNS, ETCD_IMAGE_TAG, KUBERAY, KUBERNETES, KUEUE, PAUSE_TAGS

RECIPES = Path(__file__).parent / "recipes"
LOAD_S = 600.0
"""600 MB of images, unpacked and copied twice: half a minute on a disk that is idle."""

SMALL_S = 120.0
BUILDER = "chaos-harness-build-node"
NOBODY = "65532"
"""Kueue and KubeRay ask for a user that is not root, by number. Source: their own images use it."""

KUEUE_IMAGE = f"{IMAGES}/kueue:{KUEUE}"
KUBERAY_IMAGE = f"{IMAGES}/kuberay:{KUBERAY}"


class ProgramImage(msgspec.Struct, frozen=True, kw_only=True):
    """An image that holds one program.

    Attributes:
        reference: As pods name it.
        program: On the host.
        inside: Where it is in the image.
        base: What it stands on: nothing, or an image.
        user: Who runs it; root by default.
    """

    reference: str
    program: Path
    inside: str
    base: str = "scratch"
    user: str = "0"

    def dockerfile(self) -> str:
        """How it is built."""
        lines = [
            f"FROM {self.base}",
            f"COPY {self.program.name} {self.inside}",
            "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        ]
        return "\n".join([*lines, f"USER {self.user}", f'ENTRYPOINT ["{self.inside}"]', ""])

    def build(self, scratch: Path, log: Path) -> None:
        """Build it in a folder of its own, so that nothing else is sent to the builder."""
        context = scratch / self.program.name
        context.mkdir()
        shutil.copyfile(self.program, context / self.program.name)
        (context / self.program.name).chmod(0o755)
        build_image(self.reference, self.dockerfile(), context, log)


def worker_images(pause: Path) -> list[ProgramImage]:
    """What every node runs. kube-proxy calls iptables, which the job image has: one layer for both."""
    sandboxes = [ProgramImage(reference=f"{IMAGES}/pause:{tag}", program=pause, inside="/pause") for tag in PAUSE_TAGS]
    proxy = _kubernetes("kube-proxy", base=job_image())
    return [*sandboxes, proxy]


def control_plane_images() -> list[ProgramImage]:
    """What only the control plane runs, the operators too: they outlive every pool."""
    return [
        *(_kubernetes(name) for name in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")),
        ProgramImage(reference=f"{IMAGES}/etcd:{ETCD_IMAGE_TAG}", program=ETCD_PROGRAM.program("etcd"), inside="/usr/local/bin/etcd"),
        ProgramImage(reference=f"{IMAGES}/coredns:{COREDNS}", program=COREDNS_PROGRAM.program("coredns"), inside="/coredns"),
        ProgramImage(reference=KUEUE_IMAGE, program=KUEUE_PROGRAM.program("kueue"), inside="/manager", user=NOBODY),
        ProgramImage(reference=KUBERAY_IMAGE, program=KUBERAY_PROGRAM.program("ray-operator"), inside="/manager", user=NOBODY),
    ]


class NodeImages:
    """See the module."""

    name = "node-images"
    expected_s = 120

    def worker(self) -> str:
        """The image of workers."""
        return f"chaos-harness-worker:{self._key()}"

    def control_plane(self) -> str:
        """The image of the control plane."""
        return f"chaos-harness-node:{self._key()}"

    def is_present(self) -> bool:
        """See ``Piece``; the control plane's is made last."""
        return has_image(self.control_plane()) and has_image(self.worker())

    def build(self, log: Path) -> None:
        """See ``Piece``."""
        DirectoryPiece(name=self.name, key=self._key()).fill_and_discard(lambda scratch: self._make(scratch, log))

    def _key(self) -> str:
        programs = (KUBERNETES_PROGRAMS, ETCD_PROGRAM, COREDNS_PROGRAM, KUEUE_PROGRAM, KUBERAY_PROGRAM)
        recipes = [(RECIPES / name).read_bytes() for name in ("load_images.sh", "pause.c")]
        pause = Path("pause")
        dockerfiles = [image.reference + image.dockerfile() for image in (*worker_images(pause), *control_plane_images())]
        return key_of(NodeBase().reference(), job_image(), *(program.key() for program in programs), *dockerfiles, *recipes)

    def _make(self, scratch: Path, log: Path) -> None:
        pause = scratch / "compiled" / "pause"
        pause.parent.mkdir()
        run_command(["cc", "-static", "-O2", "-o", str(pause), str(RECIPES / "pause.c")], deadline_s=SMALL_S, log=log)
        workers = worker_images(pause)
        for image in workers[:1] + workers[len(PAUSE_TAGS) :] + control_plane_images():
            image.build(scratch, log)
        for other in workers[1 : len(PAUSE_TAGS)]:
            run_command(["docker", "tag", workers[0].reference, other.reference], deadline_s=SMALL_S, log=log)
        load(NodeBase().reference(), [job_image(), *(image.reference for image in workers)], self.worker(), scratch, log)
        load(self.worker(), [image.reference for image in control_plane_images()], self.control_plane(), scratch, log)


def load(base: str, images: Sequence[str], reference: str, scratch: Path, log: Path) -> None:
    """Make a node image that holds more images, out of one that holds some.

    Raises:
        CommandFailedError: When one of them does not come in.
    """
    archive = scratch / "images.tar"
    run_command(["docker", "save", "--output", str(archive), *images], deadline_s=LOAD_S, log=log)
    run_command(["docker", "rm", "--force", "--volumes", BUILDER], deadline_s=SMALL_S, log=log)
    keep = [
        "docker",
        "run",
        "--detach",
        "--privileged",
        "--name",
        BUILDER,
        "--volume",
        "/unpack",
        "--entrypoint",
        "sleep",
        base,
        "infinity",
    ]
    run_command(keep, deadline_s=SMALL_S, log=log)
    script = (RECIPES / "load_images.sh").read_text()
    names = " ".join(image if "/" in image else f"library/{image}" for image in images)
    inside = f"docker exec --interactive {BUILDER} sh -c {shlex.quote(script)} load {names} < {shlex.quote(str(archive))}"
    run_command(["sh", "-c", inside], deadline_s=LOAD_S, log=log)
    entry = 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]'
    run_command(["docker", "commit", "--change", entry, BUILDER, reference], deadline_s=LOAD_S, log=log)
    run_command(["docker", "rm", "--force", "--volumes", BUILDER], deadline_s=SMALL_S, log=log)


def _kubernetes(name: str, *, base: str = "scratch") -> ProgramImage:
    return ProgramImage(
        reference=f"{IMAGES}/{name}:{KUBERNETES}",
        program=KUBERNETES_PROGRAMS.program(name),
        inside=f"/usr/local/bin/{name}",
        base=base,
    )
