"""Start RANKS processes of the training job on this machine and end as one: a small torchrun, standard library only.

CPU devices unless JAX_PLATFORMS says otherwise (``cuda``: rank n takes GPU n). SIGTERM goes on to every rank. When a rank dies, the
others are ended, for they would wait for it; one that leaves with 143 has saved together with them, and they leave by themselves.
The exit code is that of the first rank that failed, 128 + n for signal n.
"""

import ctypes
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable

GRACE_SECONDS = 3  # a rank whose partner died has nothing left to save
POLL_SECONDS = 0.05
PREEMPTED = 128 + signal.SIGTERM
PR_SET_PDEATHSIG = 1  # linux/prctl.h


class Ranks:
    """The processes of one attempt."""

    def __init__(self, count: int) -> None:
        address = f"127.0.0.1:{_free_port()}"
        common = {"JAX_PLATFORMS": "cpu", **os.environ, "RANKS": str(count), "COORDINATOR": address}
        command = [sys.executable, "-m", "workloads.jax_gpu.train"]
        die_with_launcher = _die_with(os.getpid())
        self._processes = [
            subprocess.Popen(command, env={**common, "RANK": str(rank)}, preexec_fn=die_with_launcher) for rank in range(count)
        ]
        self._deadline: float | None = None
        self._exit_code = 0

    def forward(self, number: int, _frame: object) -> None:
        for process in self._running():
            process.send_signal(number)

    def wait(self) -> int:
        """Wait for all ranks, no longer than the grace once one has failed; returns the exit code of the job."""
        while self._running():
            self._note_failure()
            if self._deadline and time.monotonic() > self._deadline:
                self.kill()
            time.sleep(POLL_SECONDS)
        self._note_failure()
        return self._exit_code

    def kill(self) -> None:
        for process in self._running():
            process.kill()

    def _running(self) -> list[subprocess.Popen[bytes]]:
        return [process for process in self._processes if process.poll() is None]

    def _note_failure(self) -> None:
        failed = [(rank, process.returncode) for rank, process in enumerate(self._processes) if process.returncode]
        if not failed or self._deadline:
            return
        rank, returncode = failed[0]
        self._exit_code = returncode if returncode > 0 else 128 - returncode
        self._deadline = time.monotonic() + GRACE_SECONDS
        print(f"Rank {rank} ended with exit code {self._exit_code}.", flush=True)
        if self._exit_code != PREEMPTED:
            self.forward(signal.SIGTERM, None)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _die_with(launcher_pid: int) -> Callable[[], None]:
    """Make what a child runs before its program: the kernel kills a rank whose launcher is gone, or it would go on writing checkpoints."""
    prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None

    def prepare() -> None:
        if prctl:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != launcher_pid:
            os._exit(1)

    return prepare


def main() -> int:
    ranks = Ranks(int(os.environ.get("RANKS", "1")))
    signal.signal(signal.SIGTERM, ranks.forward)
    try:
        return ranks.wait()
    finally:
        ranks.kill()


if __name__ == "__main__":
    sys.exit(main())
