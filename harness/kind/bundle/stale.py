"""What earlier inputs left of the bundle: 1.3 GB of Python packages and 1.4 GB of images each time."""

from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from harness.kind.bundle.environment import Environment
from harness.kind.bundle.job_image import job_image
from harness.kind.bundle.manifests import Manifests
from harness.kind.bundle.modules import GoPrograms
from harness.kind.bundle.node_base import NodeBase
from harness.kind.bundle.node_images import NodeImages
from harness.kind.bundle.piece import remove_tree
from harness.kind.bundle.pieces import COMPILED
from harness.kind.cluster import KindCluster, find_cluster
from harness.kind.commands import run_command

IMAGES_S = 60.0
IMAGE_NAMES = ("chaos-harness-job", "chaos-harness-worker", "chaos-harness-node", "chaos-harness-node-base")


def remove_stale(say: Callable[[str], None]) -> None:
    """Remove pieces of other inputs, but for what the present cluster and any container still use.

    Raises:
        CommandFailedError: When Docker does not answer.
    """
    cluster = find_cluster()
    folders = stale_folders(_current_folders(), cluster)
    for folder in folders:
        remove_tree(folder)
    images = stale_images(_present_images(), _used_images())
    if images:
        run_command(["docker", "image", "rm", *images], deadline_s=IMAGES_S)
    if folders or images:
        say(f"removed what earlier inputs left: {', '.join([*(f'{folder.parent.name} {folder.name}' for folder in folders), *images])}")


def stale_folders(current: Iterable[Path], cluster: KindCluster | None) -> list[Path]:
    """Folders beside the current ones, but for those that a cluster has mounted or runs programs from."""
    kept = set(current)
    used = {cluster.environment_dir, cluster.kubectl.parent} if cluster else set()
    siblings = {sibling for folder in kept if folder.parent.is_dir() for sibling in folder.parent.iterdir()}
    return sorted(siblings - kept - used)


def stale_images(present: Iterable[str], kept: Collection[str]) -> list[str]:
    """Images of ours that nobody needs."""
    return sorted(image for image in present if image.partition(":")[0] in IMAGE_NAMES and image not in kept)


def _current_folders() -> list[Path]:
    programs = [piece.directory() for piece in COMPILED if isinstance(piece, GoPrograms)]
    return [*programs, Environment().directory(), Manifests().directory()]


def _present_images() -> list[str]:
    return run_command(["docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}"], deadline_s=IMAGES_S).split()


def _used_images() -> set[str]:
    """The current ones, and those of every container, stopped ones too."""
    running = run_command(["docker", "ps", "--all", "--format", "{{.Image}}"], deadline_s=IMAGES_S).split()
    images = NodeImages()
    return {job_image(), NodeBase().reference(), images.worker(), images.control_plane(), *running}
