"""The image under every node: Debian with systemd, containerd and Kubernetes' programs, and kind's own base files."""

from pathlib import Path

from harness.kind.bundle.modules import module_folder
from harness.kind.bundle.piece import DirectoryPiece, has_image, key_of
from harness.kind.bundle.programs import KUBERNETES_PROGRAMS
from harness.kind.bundle.root_file_system import LEFT_OUT, SUITE, import_image, make_root_file_system
from harness.kind.commands import run_command
from harness.kind.versions import KIND, KUBERNETES, PAUSE_TAGS

REPOSITORY = "chaos-harness-node-base"
IMAGES = "chaos-harness"
"""The repository that kubeadm and containerd are told to take Kubernetes' images from: nothing can be pulled by mistake."""

PACKAGES = (
    *("systemd", "systemd-sysv", "dbus"),
    *("containerd", "runc", "containernetworking-plugins"),
    *("conntrack", "iptables", "nftables", "iproute2", "ethtool", "ebtables", "socat"),
    *("mount", "kmod", "libseccomp2", "pigz", "ca-certificates", "curl", "jq", "procps"),
)
"""kind's own list, less storage drivers; not etcd-server: its service would take the port."""

COPY_S = 300.0
RECIPE = Path(__file__).parent / "recipes" / "node.sh"
NODE_PROGRAMS = ("kubeadm", "kubelet", "kubectl")

STOP = "STOPSIGNAL SIGRTMIN+3"
"""systemd ends on this and executes itself again on SIGTERM; only a build can set it, not an import."""


class NodeBase:
    """See the module."""

    name = "node-base"
    expected_s = 120

    def reference(self) -> str:
        """The name of the image."""
        return f"{REPOSITORY}:{self._key()}"

    def is_present(self) -> bool:
        """See ``Piece``."""
        return has_image(self.reference())

    def build(self, log: Path) -> None:
        """See ``Piece``."""
        DirectoryPiece(name=self.name, key=self._key()).fill_and_discard(lambda scratch: self._make(scratch, log))

    def _key(self) -> str:
        return key_of(SUITE, *PACKAGES, *LEFT_OUT, RECIPE.read_bytes(), KIND, KUBERNETES_PROGRAMS.key(), STOP, IMAGES)

    def _make(self, scratch: Path, log: Path) -> None:
        root = scratch / "root"
        make_root_file_system(root, PACKAGES, log)
        base_files = module_folder("sigs.k8s.io/kind", KIND) / "images" / "base" / "files"
        # What a module holds is read-only, and its folders must be written into.
        run_command(["cp", "--recursive", "--no-preserve=mode,ownership", f"{base_files}/.", str(root)], deadline_s=COPY_S, log=log)
        for name in NODE_PROGRAMS:
            run_command(["cp", str(KUBERNETES_PROGRAMS.program(name)), str(root / "usr/bin")], deadline_s=COPY_S, log=log)
        (root / "recipe.sh").write_bytes(RECIPE.read_bytes())
        run_command(["chroot", str(root), "sh", "/recipe.sh", KUBERNETES, f"{IMAGES}/pause:{PAUSE_TAGS[0]}"], deadline_s=COPY_S, log=log)
        (root / "recipe.sh").unlink()
        unstopped = f"{self.reference()}-unstopped"
        import_image(root, unstopped, ["ENV container=docker", 'ENTRYPOINT ["/usr/local/bin/entrypoint", "/sbin/init"]'], log)
        build_image(self.reference(), f"FROM {unstopped}\n{STOP}\n", scratch, log)
        run_command(["docker", "image", "rm", unstopped], deadline_s=COPY_S, log=log)


def build_image(reference: str, dockerfile: str, context: Path, log: Path) -> None:
    """Build a small image with Docker's own builder; the client may lack the newer one.

    Raises:
        CommandFailedError: When the build fails.
    """
    path = context / "Dockerfile"
    path.write_text(dockerfile)
    ignored = context / ".dockerignore"
    ignored.write_text("root\n")
    command = ["docker", "build", "--tag", reference, "--file", str(path), str(context)]
    run_command(command, deadline_s=COPY_S, environment={"DOCKER_BUILDKIT": "0"}, log=log)
