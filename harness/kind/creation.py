"""Brings the cluster up, phase by phase, and says what each took."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import msgspec

from harness.clock import Clock
from harness.errors import HarnessError, UsageError
from harness.kind.answers import answered_versions
from harness.kind.bundle.builder import missing_pieces
from harness.kind.bundle.environment import Environment
from harness.kind.bundle.job_image import job_image
from harness.kind.cache import checkout_dir, cluster_dir, shared_dir
from harness.kind.cluster import (
    CLUSTER_NAME,
    NETWORK_NAME,
    OWNER_MOUNT,
    KindCluster,
    cluster_uid,
    find_cluster,
    kubectl,
    problem_with_record,
    write_state,
)
from harness.kind.commands import CommandFailedError, run_command
from harness.kind.engine import require_engine
from harness.kind.health import lasting_problem, problem_with, problem_with_operators, reason_and_advice
from harness.kind.kind_configuration import Mount, kind_configuration
from harness.kind.lock import Turn
from harness.kind.materials import ImageSource, Materials, find_materials
from harness.kind.nodes import NodeContainers
from harness.kind.operators import install_operators, pin_dns, start_operators, wait_for_operators
from harness.kind.removal import OWNER_LABEL, only_one_works, remove_cluster
from harness.kind.room import require_room
from harness.kind.topology import DEFAULT_TOPOLOGY, Topology
from harness.kind.versions import versions

CREATE_S = 400.0
"""kind takes 30 to 60 s for six nodes on two idle cores."""

LOAD_S = 300.0
NETWORK_S = 30.0
EVIDENCE_S = 20.0


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a caller wants of a cluster; without a topology, any will do."""

    topology: Topology | None = None
    source: ImageSource = ImageSource.AUTO


def bring_up(wish: Wish, clock: Clock, say: Callable[[str], None]) -> KindCluster:
    """Make the cluster, or find that it is up. What a killed attempt left half is removed first.

    Raises:
        UsageError: When a cluster is up that does not fit, or was not made by this harness.
        TargetUnavailableError: When this machine lacks something.
        CommandFailedError: When a phase fails; what was made is then removed, and the error says where its evidence is.
    """
    with only_one_works(clock, say):
        require_engine()
        present = _present(wish, clock, say)
        if present is not None:
            return present
        materials = find_materials(wish.source, clock, say)
        require_room()
        return _create(wish.topology or DEFAULT_TOPOLOGY, materials, clock, say)


def _present(wish: Wish, clock: Clock, say: Callable[[str], None]) -> KindCluster | None:
    """The cluster that is up; nothing when one must be made, and what there was of one is then removed.

    Raises:
        UsageError: When one is up that does not fit: only the caller can say whether it may go.
        TargetUnavailableError: When a run that uses it does not end.
    """
    found = find_cluster()
    if found is not None:
        _refuse_unfit(found, wish)
    if found is None or problem_with(found) or problem_with_operators(found):
        with Turn(CLUSTER_NAME).held(clock, say):  # a run may have stopped its API server for a moment, and uses it
            broken = lasting_problem(found, clock)
            if found is not None and not broken:
                broken = _mended_operators(found, clock, say)
            if found is None or broken:
                if found is not None:
                    say(f"{reason_and_advice(broken)[0]}; it is made again")
                half = remove_cluster()
                if half:
                    say(f"removed what an earlier attempt left: {half}")
                return None
    say(f"the cluster {found.name} is up")
    return found


def _mended_operators(found: KindCluster, clock: Clock, say: Callable[[str], None]) -> str:
    """Bring Kueue and KubeRay back where one is away; what is wrong still after that, and nothing when they are ready."""
    problem = problem_with_operators(found)
    if problem:
        say(f"{reason_and_advice(problem)[0]}; it is started")
        try:
            start_operators(found)
            wait_for_operators(found, clock)
        except CommandFailedError as error:
            return f"Kueue and KubeRay do not come back: {error}"
    return ""


def _refuse_unfit(found: KindCluster, wish: Wish) -> None:
    problem = problem_with_record(found)
    if not problem and wish.topology is not None and wish.topology != found.topology:
        problem = f"the cluster {found.name} is up with another topology; run `harness down kind`, then `harness up kind`"
    problem = problem or _problem_with_pieces(found, wish)
    if problem:
        raise UsageError(problem)


def _problem_with_pieces(found: KindCluster, wish: Wish) -> str:
    """Whether jobs would run in another image or with other packages than those that are asked for now."""
    if wish.source is ImageSource.PULLED or found.made_from != ImageSource.BUNDLE or missing_pieces():
        return ""
    wanted = {"environment": str(Environment().directory()), "job image": job_image()}
    seen = {"environment": str(found.environment_dir), "job image": found.job_image}
    other = [name for name, piece in wanted.items() if seen[name] != piece]
    return f"the cluster {found.name} has another {' and '.join(other)}; run `harness down kind`, then `harness up kind`" if other else ""


def _create(topology: Topology, materials: Materials, clock: Clock, say: Callable[[str], None]) -> KindCluster:
    began_s = clock.monotonic_s()
    directory = cluster_dir(CLUSTER_NAME)
    directory.mkdir(parents=True, exist_ok=True)
    shared_dir().mkdir(parents=True, exist_ok=True)
    cluster = _planned(topology, materials)
    try:
        with _phase("nodes", clock, say):
            _create_nodes(cluster, materials)
        answered = answered_versions(cluster, materials.kind) if materials.source is ImageSource.PULLED else {}
        cluster = msgspec.structs.replace(cluster, uid=cluster_uid(cluster), versions={**cluster.versions, **answered})
        nodes = NodeContainers(cluster, clock)
        with _phase("manifests", clock, say):
            pin_dns(cluster)
            install_operators(cluster, materials.manifests)
        with _phase("pod network and TPU capacity", clock, say):
            nodes.repair()
        if not materials.has_job_image:
            with _phase("job image", clock, say):
                load = ["load", "docker-image", "--name", cluster.name, cluster.job_image]
                run_command([str(materials.kind), *load], deadline_s=LOAD_S)
        with _phase("Kueue and KubeRay ready", clock, say):
            wait_for_operators(cluster, clock)
        write_state(cluster)
    except BaseException as error:
        _undo(cluster, error)
        raise
    say(f"the cluster {cluster.name} is up, from what was {_made(materials)}, in {clock.monotonic_s() - began_s:.0f} s")
    return cluster


def _planned(topology: Topology, materials: Materials) -> KindCluster:
    return KindCluster(
        name=CLUSTER_NAME,
        kubeconfig=cluster_dir(CLUSTER_NAME) / "kubeconfig",
        kubectl=materials.kubectl,
        uid="",
        topology=topology,
        versions=versions(is_pulled=materials.source is ImageSource.PULLED),
        shared_dir=shared_dir(),
        checkout_dir=checkout_dir(),
        environment_dir=materials.environment,
        job_image=job_image(),
        made_from=str(materials.source),
    )


def _create_nodes(cluster: KindCluster, materials: Materials) -> None:
    """Let kind make the nodes on a network of our own."""
    owner = f"{OWNER_LABEL}={cluster_dir(cluster.name)}"
    run_command(["docker", "network", "create", "--driver", "bridge", "--label", owner, NETWORK_NAME], deadline_s=NETWORK_S)
    mounts = (
        Mount(path=cluster.shared_dir),
        Mount(path=cluster.environment_dir, is_read_only=True),
        Mount(path=cluster.checkout_dir, is_read_only=True),
        Mount(path=cluster_dir(cluster.name), is_read_only=True, inside=OWNER_MOUNT),
    )
    configuration = cluster_dir(cluster.name) / "kind.json"
    configuration.write_text(kind_configuration(cluster.topology, materials.images, mounts))
    create = [
        "create",
        "cluster",
        "--name",
        cluster.name,
        "--config",
        str(configuration),
        "--kubeconfig",
        str(cluster.kubeconfig),
        "--retain",
    ]
    environment = {"KIND_EXPERIMENTAL_DOCKER_NETWORK": NETWORK_NAME, "KIND_EXPERIMENTAL_PROVIDER": "docker"}
    run_command([str(materials.kind), *create], deadline_s=CREATE_S, environment=environment, ends_with_us=True)


def _undo(cluster: KindCluster, error: BaseException) -> None:
    """Keep what tells why, then remove the half; neither hides the error."""
    evidence = cluster_dir(cluster.name).with_suffix(".failed.log")
    texts = [f"{error}\n"]
    for what in (("get", "pods,nodes", "--all-namespaces", "--output", "wide"), ("get", "events", "--all-namespaces")):
        try:
            texts.append(kubectl(cluster, *what, deadline_s=EVIDENCE_S))
        except CommandFailedError as silent:
            texts.append(f"{silent}\n")
    evidence.write_text("\n".join(texts))
    error.add_note(f"what the cluster showed is in {evidence}")
    try:
        remove_cluster()
    except HarnessError as left:
        error.add_note(f"and what was made could not be removed: {left}; run `harness down kind`")


@contextmanager
def _phase(name: str, clock: Clock, say: Callable[[str], None]) -> Iterator[None]:
    began_s = clock.monotonic_s()
    yield
    say(f"{name}: {clock.monotonic_s() - began_s:.0f} s")


def _made(materials: Materials) -> str:
    return "built here" if materials.source is ImageSource.BUNDLE else "pulled"
