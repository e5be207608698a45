"""The manifests of Kueue, KubeRay and ProvisioningRequest, read from their module folders at build time."""

import inspect
import shutil
from pathlib import Path

from harness.kind.bundle import overlay
from harness.kind.bundle.modules import module_folder
from harness.kind.bundle.node_images import KUBERAY_IMAGE, KUEUE_IMAGE
from harness.kind.bundle.overlay import KUEUE_FRAMEWORKS, Overlay, kuberay_overlay, kueue_overlay, with_frameworks
from harness.kind.bundle.piece import DirectoryPiece, key_of
from harness.kind.bundle.programs import KUBERAY_PROGRAM, KUBERNETES_PROGRAMS, KUEUE_PROGRAM
from harness.kind.commands import run_command
from harness.kind.versions import AUTOSCALER_APIS, AUTOSCALER_MODULE

RENDER_S = 120.0
KUEUE, KUBERAY, PROVISIONING = "kueue.yaml", "kuberay.yaml", "provisioning-request.yaml"


class Manifests:
    """See the module."""

    name = "manifests"
    expected_s = 10

    def directory(self) -> Path:
        """Where ``KUEUE``, ``KUBERAY`` and ``PROVISIONING`` lie once they are built."""
        return self._place().path

    def is_present(self) -> bool:
        """See ``Piece``."""
        return self.directory().is_dir()

    def build(self, log: Path) -> None:  # noqa: ARG002  kustomize prints the manifest, or its error
        """See ``Piece``."""
        self._place().fill(self._render)

    def _place(self) -> DirectoryPiece:
        sources = (KUEUE_PROGRAM.version, KUBERAY_PROGRAM.version, AUTOSCALER_APIS, KUEUE_IMAGE, KUBERAY_IMAGE)
        return DirectoryPiece(name=self.name, key=key_of(*sources, inspect.getsource(overlay)))

    def _render(self, scratch: Path) -> None:
        work = scratch / ".work"
        kueue = _copied(module_folder(KUEUE_PROGRAM.module, KUEUE_PROGRAM.version) / "config", work / "kueue")
        configuration = kueue / "components" / "manager" / "controller_manager_config.yaml"
        configuration.write_text(with_frameworks(configuration.read_text(), KUEUE_FRAMEWORKS))
        _copied(module_folder(KUBERAY_PROGRAM.module, KUBERAY_PROGRAM.version) / "config", work / "kuberay")
        render(kueue_overlay(base="../kueue/default", image=KUEUE_IMAGE), work / "kueue-overlay", scratch / KUEUE)
        render(kuberay_overlay(base="../kuberay/default", image=KUBERAY_IMAGE), work / "kuberay-overlay", scratch / KUBERAY)
        crds = module_folder(AUTOSCALER_MODULE, AUTOSCALER_APIS) / "config" / "crd"
        (scratch / PROVISIONING).write_text("---\n".join(path.read_text() for path in sorted(crds.glob("*.yaml"))))
        shutil.rmtree(work)


def render(overlay: Overlay, folder: Path, result: Path, *, kubectl: Path | None = None) -> None:
    """Let kustomize make the manifest of an overlay.

    Raises:
        CommandFailedError: When a patch no longer fits.
    """
    folder.mkdir(parents=True)
    (folder / "kustomization.yaml").write_text(overlay.kustomization())
    if overlay.namespace:
        (folder / "namespace.yaml").write_text(overlay.namespace_document())
    program = kubectl or KUBERNETES_PROGRAMS.program("kubectl")
    result.write_text(run_command([str(program), "kustomize", str(folder)], deadline_s=RENDER_S))


def _copied(source: Path, target: Path) -> Path:
    """A copy that may be written: a module's own files are read-only."""
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    for path in (target, *target.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    return target
