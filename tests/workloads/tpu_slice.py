"""A Ray cluster on this machine that looks like a slice of TPU hosts; as a program it is that cluster, until its standard input ends.

Each raylet takes from its environment what GKE puts into the pods of a slice; no chip is there, so jobs train on CPU devices.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from tests.workloads.job_process import ROOT
from workloads.jax_tpu import cluster

CHIPS_PER_HOST = 4


@contextmanager
def tpu_slice(topology: str, hosts: int) -> Iterator[dict[str, str]]:
    """Start one in a process of its own; yields what a job needs in its environment to find it."""
    command = [sys.executable, "-m", __name__, topology, str(hosts)]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        lines = (line for line in process.stdout if line.startswith(b"{"))
        found = json.loads(next(lines, b"{}"))
        yield {"RAY_ADDRESS": found["address"], "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN_PATH": found["token_path"]} | AS_ON_A_HOST


AS_ON_A_HOST = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "JAX_PLATFORMS": "cpu", "RAY_TRAIN_ENABLE_PRINT_PATCH": "0"}


def main(topology: str, hosts: int) -> None:
    with ExitStack() as stack:
        directory = cluster._prepare(stack)
        from ray.cluster_utils import Cluster

        ray_cluster = Cluster()
        stack.callback(ray_cluster.shutdown)
        place = {"node_ip_address": cluster.LOOPBACK, "object_store_memory": cluster.OBJECT_STORE_BYTES, "dashboard_agent_listen_port": 0}
        cluster._reap(ray_cluster.add_node(num_cpus=1, include_dashboard=False, no_monitor=True, **place))
        os.environ |= {"JAX_PLATFORMS": "cpu", "TPU_TOPOLOGY": topology, "TPU_ACCELERATOR_TYPE": f"v6e-{CHIPS_PER_HOST * hosts}"}
        os.environ["TPU_NAME"] = "slice-0"
        for host in range(hosts):
            os.environ["TPU_WORKER_ID"] = str(host)
            cluster._reap(ray_cluster.add_node(num_cpus=2, resources={"TPU": CHIPS_PER_HOST}, **place))
        print(json.dumps({"address": ray_cluster.address, "token_path": str(directory / "token")}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
