"""``harness up kind`` and ``harness down kind``: the local cluster; ``harness up docker``: the engine under it."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from harness.clock import SystemClock
from harness.kind import KindCluster
from harness.kind.creation import Wish, bring_up
from harness.kind.engine import start_engine
from harness.kind.materials import ImageSource
from harness.kind.removal import take_down
from harness.kind.topology import load_topology

up_app = typer.Typer(no_args_is_help=True, help="Bring a local cluster up, or the Docker engine under it.")
down_app = typer.Typer(no_args_is_help=True, help="Take a local cluster down.")

TopologyFile = Annotated[Path | None, typer.Option("--topology", help="A TOML file with node pools; guide B's three by default.")]
Images = Annotated[ImageSource, typer.Option("--images", help="bundle: built by `make kind-bundle`; pulled: from a registry.")]


@up_app.callback()
def _up() -> None:
    """Bring a local cluster up, or the Docker engine under it."""


@up_app.command("kind")
def up_kind(topology: TopologyFile = None, images: Images = ImageSource.AUTO) -> int:
    """Make the kind cluster with Kueue and KubeRay, or find it up; says what each phase took."""
    wish = Wish(topology=load_topology(topology) if topology else None, source=images)
    cluster = bring_up(wish, SystemClock(), typer.echo)
    typer.echo(f"to look at it: {looking_at(cluster)}")
    return 0


@up_app.command("docker")
def up_docker() -> int:
    """Use the Docker engine that answers; else install and start one, where that is allowed. It stays when this ends."""
    start_engine(SystemClock(), typer.echo)
    return 0


@down_app.callback()
def _down() -> None:
    """Take a local cluster down."""


@down_app.command("kind")
def down_kind() -> int:
    """Remove the kind cluster that this harness made: nodes, network, state; nothing else."""
    take_down(SystemClock(), typer.echo)
    return 0


def looking_at(cluster: KindCluster) -> str:
    """A command line that shows what runs on the cluster: its own kubectl and kubeconfig, which are on no path of the user's."""
    kubectl = [str(cluster.kubectl), "--kubeconfig", str(cluster.kubeconfig), "get", "pods", "--all-namespaces"]
    return shlex.join(kubectl)
