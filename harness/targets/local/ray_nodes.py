"""The parts of a Ray cluster among the processes of an attempt, read from their command lines.

Ray starts a node as one ``raylet``, whose children are the node's agents and workers, and the cluster's control store as one ``gcs_server``
beside the head's raylet. A raylet is told everything that matters here as an argument, so the job need not say where its cluster is.

Source: ray 2.60.0, ray/_private/services.py (start_raylet, start_gcs_server); read on a running cluster.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath

import psutil

RAYLET, CONTROL_STORE = "raylet", "gcs_server"


@dataclass(frozen=True, slots=True, kw_only=True)
class RayNode:
    """A node of a cluster, as its raylet was told.

    Attributes:
        node_id: As Ray names it, hexadecimal.
        raylet: The raylet's process id; the node's agents and workers descend from it.
        is_head: Whether it is the head's.
        address: Of the cluster's control store, ``host:port``.
        python: The interpreter that its workers run under: it has the very Ray that the cluster is made of.
    """

    node_id: str
    raylet: int
    is_head: bool
    address: str
    python: str


def find_nodes(pids: Sequence[int]) -> list[RayNode]:
    """The nodes whose raylets are among these processes, those that are not the head first."""
    found = (node for pid, arguments in _named(RAYLET, pids) if (node := read_node(pid, arguments)) is not None)
    return sorted(found, key=lambda node: (node.is_head, node.raylet))


def find_control_stores(pids: Sequence[int]) -> list[int]:
    """Those of these processes that are the control store of a cluster."""
    return [pid for pid, _ in _named(CONTROL_STORE, pids)]


def read_node(pid: int, arguments: Sequence[str]) -> RayNode | None:
    """The node of a raylet; None when its command line is not one that Ray writes."""
    options = dict(_options(arguments))
    node_id, address = options.get("node_id", ""), options.get("gcs-address", "")
    try:
        python = shlex.split(options.get("python_worker_command", ""))[0]
    except (ValueError, IndexError):
        return None
    if not node_id or not address:
        return None
    return RayNode(node_id=node_id, raylet=pid, is_head="head" in options, address=address, python=python)


def _named(name: str, pids: Sequence[int]) -> Iterator[tuple[int, list[str]]]:
    for pid in pids:
        try:
            command = psutil.Process(pid).cmdline()
        except psutil.Error:  # it has ended meanwhile
            continue
        if command and PurePath(command[0]).name == name:
            yield pid, command[1:]


def _options(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    for argument in arguments:
        name, _, value = argument.removeprefix("--").partition("=")
        yield name, value
