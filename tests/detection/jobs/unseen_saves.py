"""A job that says what it trains and not what it saves: it overwrites its only checkpoint in place, where no Python in it writes a file.

``python -m tests.detection.jobs.unseen_saves c`` lets the C library write, ``… http`` a server on loopback that the job has started.
"""

import ctypes
import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

from workloads.protocol import emit

CHECKPOINT = Path(os.environ["CHECKPOINT_DIR"]) / f"{os.environ['CLOUD_RUN_JOB']}-task-0-checkpoint.txt"
STEPS = int(os.environ["STEPS"])
SAVE_EVERY = int(os.environ["SAVE_EVERY"])
STEP_S = 0.01

Save = Callable[[int], None]


def save_through_c(step: int) -> None:
    """Open the checkpoint for writing, which empties it, and write it anew."""
    library = ctypes.CDLL(None)
    library.fopen.restype = ctypes.c_void_p
    file = ctypes.c_void_p(library.fopen(os.fsencode(CHECKPOINT), b"w"))
    library.fputs(str(step).encode(), file)
    library.fclose(file)


class Storage(BaseHTTPRequestHandler):
    """Keeps one object, and says nothing."""

    def do_PUT(self) -> None:
        """Overwrite the object."""
        CHECKPOINT.write_bytes(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def serve() -> None:
    """Serve the object on loopback, and say on which port."""
    server = HTTPServer(("127.0.0.1", 0), Storage)
    print(server.server_port, flush=True)
    server.serve_forever()


def save_over_http(port: int) -> Save:
    """Make a function that sends the checkpoint to the server."""

    def save(step: int) -> None:
        request = urllib.request.Request(f"http://127.0.0.1:{port}/checkpoint", data=str(step).encode(), method="PUT")
        urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request).close()

    return save


def train(save: Save) -> None:
    """Count from the checkpoint to the end."""
    emit("boot")
    step = int(CHECKPOINT.read_text()) if CHECKPOINT.exists() else 0
    emit("start", restored_step=step, steps=STEPS)
    while step < STEPS:
        time.sleep(STEP_S)
        step += 1
        emit("step", step=step)
        if step % SAVE_EVERY == 0:
            save(step)
    emit("done", step=step)


def main(way: str) -> None:
    """Train with saves of one kind, or be the server."""
    if way == "serve":
        serve()
    elif way == "c":
        train(save_through_c)
    else:
        with subprocess.Popen([sys.executable, "-m", __spec__.name, "serve"], stdout=subprocess.PIPE, text=True) as server:
            try:
                train(save_over_http(int(server.stdout.readline())))
            finally:
                server.kill()


if __name__ == "__main__":
    main(sys.argv[1])
