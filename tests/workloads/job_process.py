"""A job as a process that a test starts, stops at an event, hurts and starts again: what the platform and the harness do, by hand."""

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 90.0  # two JAX ranks end within seven seconds on two quiet cores, the other jobs within two; the rest is for a loaded machine


class Attempt:
    """One process (or gang) of a job, with its own events file, log and barrier."""

    def __init__(self, module: str, home: Path, environment: dict[str, str], armed: str) -> None:
        self.events_path = home / "events"
        self.log_path = home / "log"
        self.events_path.touch()
        self.barrier = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.barrier.bind(str(home / "barrier"))
        self.barrier.listen()
        self.barrier.settimeout(DEADLINE_S)
        self.held: list[socket.socket] = []
        watched = {"HARNESS_EVENTS": str(self.events_path), "HARNESS_BARRIER": str(home / "barrier"), "HARNESS_ARMED": armed}
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", module],
                env=environment | watched,
                cwd=ROOT,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def reach(self, event: str, *, nth: int = 1, **fields: object) -> dict[str, Any]:
        """Let the job go on to the nth armed ``event`` with these fields, and hold it there."""
        self.release()
        while True:
            connection, _ = self.barrier.accept()
            line: dict[str, Any] = json.loads(connection.makefile().readline())
            if line["event"] != event or any(line[name] != value for name, value in fields.items()):
                connection.close()
            elif nth > 1:
                nth -= 1
                connection.close()
            else:
                self.held.append(connection)
                return line

    def release(self) -> None:
        """Let the job go on from where it is held."""
        while self.held:
            self.held.pop().close()

    def wait(self) -> int:
        """Let the job go on to its end, past whatever is armed; its exit code, negative for a signal."""
        self.release()
        self.barrier.close()
        return self.process.wait(timeout=DEADLINE_S)

    def terminate(self) -> None:
        """Send SIGTERM to the job's first process, as a platform does."""
        self.process.terminate()

    def kill(self) -> int:
        """End all of its processes at once, and wait for it."""
        self.end()
        return self.process.wait(timeout=DEADLINE_S)

    def end(self) -> None:
        """Leave no process behind."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=DEADLINE_S)
        self.release()
        self.barrier.close()

    def events(self, event: str = "", *, rank: int | None = None) -> list[dict[str, Any]]:
        """What the job said, in order."""
        lines = [json.loads(line) for line in self.events_path.read_text().splitlines()]
        return [line for line in lines if event in ("", line["event"]) and rank in (None, line["rank"])]

    def steps(self, event: str) -> list[int]:
        """The steps of its events of one kind."""
        return [line["step"] for line in self.events(event)]

    @property
    def log(self) -> str:
        """What it printed."""
        return self.log_path.read_text()

    @property
    def restored_step(self) -> int:
        """The step it went on from."""
        step: int = self.events("start")[0]["restored_step"]
        return step


class Job:
    """A job, its checkpoint directory and its attempts; whatever still runs at the end is killed."""

    def __init__(self, module: str, **environment: object) -> None:
        self.module = module
        self.home = Path(tempfile.mkdtemp(prefix="job-"))  # short: the path of a Unix socket has 107 bytes
        self.checkpoints = self.home / "checkpoints"
        self.checkpoints.mkdir()
        self.environment = {"STEPS": "20", "STEP_SECONDS": "0"} | {name: str(value) for name, value in environment.items()}
        self.attempts: list[Attempt] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None) -> None:
        for attempt in self.attempts:
            attempt.end()
        shutil.rmtree(self.home)

    def start(self, *, attempt: int | None = None, armed: str = "", **environment: object) -> Attempt:
        """Start an attempt; its number is the next one unless another is given."""
        return self._start(attempt, armed, environment)

    def _start(self, attempt: int | None, armed: str, environment: dict[str, object]) -> Attempt:
        home = self.home / str(len(self.attempts))
        home.mkdir()
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("HARNESS_", "CLOUD_RUN_"))}
        number = len(self.attempts) if attempt is None else attempt
        own = {"CHECKPOINT_DIR": str(self.checkpoints), "CLOUD_RUN_TASK_ATTEMPT": str(number), **self.environment}
        given = {name: str(value) for name, value in environment.items()}
        self.attempts.append(Attempt(self.module, home, inherited | own | given, armed))
        return self.attempts[-1]

    def run(self, *, attempt: int | None = None, **environment: object) -> Attempt:
        """Run an attempt to its end."""
        started = self._start(attempt, "", environment)
        started.wait()
        return started

    def kill_at(self, event: str, when: str = "after", *, nth: int = 1) -> Attempt:
        """Run an attempt up to its nth ``event`` and kill it exactly there."""
        started = self.start(armed=f"{event}:{when}")
        started.reach(event, nth=nth)
        started.kill()
        return started

    def terminate_at(self, event: str, *, nth: int = 1, **environment: object) -> Attempt:
        """Run an attempt up to its nth ``event``, send SIGTERM there, and let it come to its end."""
        started = self._start(None, f"{event}:after", environment)
        started.reach(event, nth=nth)
        started.terminate()
        started.wait()
        return started

    def files(self) -> dict[str, bytes]:
        """What the checkpoint directory holds."""
        paths = sorted(path for path in self.checkpoints.rglob("*") if path.is_file())
        return {str(path.relative_to(self.checkpoints)): path.read_bytes() for path in paths}

    def directories(self) -> list[str]:
        """The names of the directories of checkpoints."""
        return sorted(path.name for path in self.checkpoints.glob("step_*"))
