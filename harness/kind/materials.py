"""What a cluster is made of: the bundle, or images and manifests that are pulled."""

import shutil
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

import msgspec

from harness.clock import Clock
from harness.errors import TargetUnavailableError
from harness.kind.bundle.builder import build_bundle, missing_pieces
from harness.kind.bundle.environment import Environment
from harness.kind.bundle.job_image import PACKAGES, JobImage, job_image
from harness.kind.bundle.manifests import KUBERAY, KUEUE, PROVISIONING, Manifests, render
from harness.kind.bundle.node_base import IMAGES
from harness.kind.bundle.node_images import NodeImages
from harness.kind.bundle.overlay import kuberay_overlay, kueue_overlay
from harness.kind.bundle.piece import has_image
from harness.kind.bundle.programs import KIND_PROGRAM, KUBERNETES_PROGRAMS
from harness.kind.cache import bundle_dir
from harness.kind.commands import CommandFailedError, run_command
from harness.kind.kind_configuration import NodeImage
from harness.kind.versions import AUTOSCALER_COMMIT, NODE_IMAGE
from harness.kind.versions import KUBERAY as KUBERAY_VERSION
from harness.kind.versions import KUEUE as KUEUE_VERSION

PULL_S = 900.0
"""A node image of 400 MB over a slow line."""

ANSWER_S = 30.0
"""A registry that is there answers about a manifest in two seconds."""

BUILD_ADVICE = "run `make kind-bundle` (up to 30 minutes when all is missing), or go where images can be pulled"


class ImageSource(StrEnum):
    """Where images come from; ``auto`` takes the bundle when it is there, else pulls when a registry answers."""

    AUTO = "auto"
    BUNDLE = "bundle"
    PULLED = "pulled"


class Materials(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a cluster is made of, present on this machine.

    Attributes:
        source: Where it came from.
        kind: The program.
        kubectl: The program.
        images: Of the nodes.
        manifests: The folder of the three manifests.
        environment: The Python environment of jobs.
        has_job_image: The nodes hold the job image already.
    """

    source: ImageSource
    kind: Path
    kubectl: Path
    images: NodeImage
    manifests: Path
    environment: Path
    has_job_image: bool


def find_materials(source: ImageSource, clock: Clock, say: Callable[[str], None]) -> Materials:
    """The bundle, or what can be pulled.

    Raises:
        TargetUnavailableError: When neither is to be had, with what to do.
        CommandFailedError: When a pull fails half way.
    """
    missing = missing_pieces() if source is not ImageSource.PULLED else []
    if source is not ImageSource.PULLED and not missing:
        return _bundled()
    lacks = f"the offline bundle lacks {', '.join(missing)}, and " if missing else ""
    if source is ImageSource.BUNDLE:
        raise TargetUnavailableError(target="kind", reason=lacks.removesuffix(", and "), advice=BUILD_ADVICE)
    if not _answers(NODE_IMAGE):
        reason = f"{lacks}{NODE_IMAGE.partition('@')[0]} cannot be pulled"
        raise TargetUnavailableError(target="kind", reason=reason, advice=BUILD_ADVICE)
    return _pulled(clock, say)


def _bundled() -> Materials:
    images = NodeImages()
    return Materials(
        source=ImageSource.BUNDLE,
        kind=KIND_PROGRAM.program("kind"),
        kubectl=KUBERNETES_PROGRAMS.program("kubectl"),
        images=NodeImage(control_plane=images.control_plane(), worker=images.worker(), repository=IMAGES),
        manifests=Manifests().directory(),
        environment=Environment().directory(),
        has_job_image=True,
    )


def _pulled(clock: Clock, say: Callable[[str], None]) -> Materials:
    """The published node image and the released manifests. The programs kind and kubectl are the installed ones."""
    programs = {name: shutil.which(name) for name in ("kind", "kubectl")}
    for name, path in programs.items():
        if path is None:
            raise TargetUnavailableError(
                target="kind", reason=f"the command {name} is not here", advice=f"install {name}, or {BUILD_ADVICE}"
            )
    say(f"pulling {NODE_IMAGE.partition('@')[0]}")
    run_command(["docker", "pull", "--quiet", NODE_IMAGE], deadline_s=PULL_S)
    _build_job_image()
    build_bundle(clock, say, only=(Environment.name,))
    kubectl = Path(str(programs["kubectl"]))
    return Materials(
        source=ImageSource.PULLED,
        kind=Path(str(programs["kind"])),
        kubectl=kubectl,
        images=NodeImage(control_plane=NODE_IMAGE, worker=NODE_IMAGE),
        manifests=_released_manifests(kubectl),
        environment=Environment().directory(),
        has_job_image=False,
    )


def _build_job_image() -> None:
    """The job image from Debian's own image, where it is not built already; the packages and the name are the same."""
    if JobImage().is_present():
        return
    install = f"apt-get update && apt-get install --yes --no-install-recommends {' '.join(PACKAGES)}"
    link = "ln -s /usr/bin/python3 /usr/local/bin/python"
    dockerfile = "\n".join(["FROM debian:bookworm-slim", f"RUN {install} && {link}", *JobImage.changes, ""])
    run_command(["docker", "build", "--tag", job_image(), "-"], deadline_s=PULL_S, stdin=dockerfile)


def _released_manifests(kubectl: Path) -> Path:
    """The released manifests under the same overlays as the bundle's."""
    folder = bundle_dir() / "released" / f"{KUEUE_VERSION}-{KUBERAY_VERSION}"
    if (folder / PROVISIONING).exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    project = "https://github.com/{}"
    kueue = project.format(f"kubernetes-sigs/kueue/releases/download/{KUEUE_VERSION}/manifests.yaml")
    kuberay = project.format(f"ray-project/kuberay/ray-operator/config/default?ref={KUBERAY_VERSION}")
    crds = project.format(f"kubernetes/autoscaler/cluster-autoscaler/apis/config/crd?ref={AUTOSCALER_COMMIT}")
    render(kueue_overlay(base=kueue, image=""), folder / "kueue", folder / KUEUE, kubectl=kubectl)
    render(kuberay_overlay(base=kuberay, image=""), folder / "kuberay", folder / KUBERAY, kubectl=kubectl)
    (folder / PROVISIONING).write_text(run_command([str(kubectl), "kustomize", crds], deadline_s=PULL_S))
    return folder


def _answers(image: str) -> bool:
    """Whether an image is here or its registry answers for it."""
    if has_image(image):
        return True
    try:
        run_command(["docker", "manifest", "inspect", image], deadline_s=ANSWER_S)
    except CommandFailedError:
        return False
    return True
