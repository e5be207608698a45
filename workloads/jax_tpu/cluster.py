"""A Ray cluster of one or more nodes on this machine: loopback only, and gone with the process that started it.

Each node is a raylet with its own workers, so that a node can be drained or killed while another takes over; the first one is the head.
They share one machine: no network between them fails, and no disk of theirs is lost.
"""

import contextlib
import ctypes
import os
import secrets
import shutil
import sys
import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psutil

LOOPBACK = "127.0.0.1"
OBJECT_STORE_BYTES = 80 * 2**20  # Ray accepts no less than 75 MiB; checkpoints do not pass through it
TEMPORARY_PATH_BYTES = 24  # for $TMPDIR: Ray makes Unix sockets 83 bytes further down, and their paths have 107
REAP_SECONDS = 2  # a killed process is gone at once, unless it waits for a disk
PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h

# Ray reads these when it is imported; all of its processes inherit them. What the caller has set stays.
DEFAULTS = {
    "RAY_AUTH_MODE": "token",  # loopback belongs to every user of the machine
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # Ray's switch for "the address of a node is 127.0.0.1"; else it listens on all interfaces
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing leaves the machine
    "DASHBOARD_METRIC_PORT": "0",  # fixed otherwise, and two runs would meet there
    "RAY_prestart_worker_first_driver": "0",  # those workers lack our runtime environment, so nobody would use them
    "RAY_GRACEFUL_SHUTDOWN_DRAIN_TIMEOUT_S": "0",  # no service to hand over
    "RAY_health_check_period_ms": "1000",  # with the threshold of 5: a node that does not answer is dead after 5 s, not 15
    "RAY_gcs_rpc_server_reconnect_timeout_s": "5",  # one head, which does not come back: 60 s of waiting are lost
}


def start_cluster(stack: ExitStack, *, nodes: int, cpus: int) -> dict[str, Any]:
    """Start ``nodes`` nodes of ``cpus`` CPUs each; closing ``stack`` ends every process of theirs.

    Returns:
        What it takes to hurt it: the address of the GCS, its pid, its session directory, the file of its token, and each node's id and pid.
    """
    directory = _prepare(stack)
    from ray.cluster_utils import Cluster  # late: the environment must be set first

    cluster = Cluster()
    stack.callback(cluster.shutdown)
    for _ in range(nodes):
        node = cluster.add_node(
            num_cpus=cpus,
            node_ip_address=LOOPBACK,
            object_store_memory=OBJECT_STORE_BYTES,
            include_dashboard=False,
            no_monitor=True,  # the autoscaler's: there is nothing to scale
            dashboard_agent_listen_port=0,
        )
        _reap(node)
    pid_of = {node.node_id: node.all_processes["raylet"][0].process.pid for node in cluster.list_all_nodes()}
    return {
        "address": cluster.address,
        "gcs_pid": cluster.head_node.all_processes["gcs_server"][0].process.pid,
        "session_dir": cluster.head_node.get_session_dir_path(),
        "token_path": str(directory / "token"),
        "nodes": [{"node_id": node_id, "raylet_pid": pid} for node_id, pid in pid_of.items()],
    }


def _prepare(stack: ExitStack) -> Path:
    """Set the environment of the processes to come and have whatever remains of them ended; returns the directory for Ray's files."""
    if "RAY_TMPDIR" not in os.environ:
        is_short = len(tempfile.gettempdir()) <= TEMPORARY_PATH_BYTES
        os.environ["RAY_TMPDIR"] = tempfile.mkdtemp(prefix="ray-", dir=None if is_short else "/tmp")
        stack.callback(shutil.rmtree, os.environ["RAY_TMPDIR"], ignore_errors=True)
    directory = Path(os.environ["RAY_TMPDIR"])
    (directory / "ray").mkdir(parents=True, exist_ok=True)
    token_path = directory / "token"
    token_path.touch(mode=0o600)
    token_path.write_text(secrets.token_hex(32))
    os.environ.setdefault("RAY_AUTH_TOKEN_PATH", str(token_path))
    for name, value in DEFAULTS.items():
        os.environ.setdefault(name, value)
    if sys.platform == "linux":  # elsewhere the children of a killed raylet are out of reach
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    stack.callback(end_descendants)
    return directory


def _reap(node: Any) -> None:
    """Wait for each process of a node: workers take a dead raylet that nobody waits for as alive, and train on as orphans."""
    for info in (info for infos in node.all_processes.values() for info in infos):
        threading.Thread(target=info.process.wait, daemon=True).start()


def end_descendants() -> None:
    """Kill what outlives its raylet for a moment: workers that have not looked yet, and the children of a raylet that was killed."""
    psutil.wait_procs(kill_descendants(), timeout=REAP_SECONDS)


def kill_descendants() -> list[psutil.Process]:
    descendants = psutil.Process().children(recursive=True)
    for process in descendants:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    return descendants


def keep_on_loopback() -> None:
    """Run in a worker before JAX connects them all: it would bind the coordinator to every interface, and Gloo to the host name's."""
    import jax
    from jax._src.lib import _jax

    initialize, make_gloo = jax.distributed.initialize, _jax.make_gloo_tcp_collectives

    def initialize_on_loopback(address: str, *arguments: Any) -> None:
        # A rank that leaves waits for the others as long as this; when one of them has died, for nothing.
        initialize(address, *arguments, coordinator_bind_address=address, shutdown_timeout_seconds=2)

    jax.distributed.initialize = initialize_on_loopback
    _jax.make_gloo_tcp_collectives = lambda **options: make_gloo(**options, hostname=LOOPBACK)
