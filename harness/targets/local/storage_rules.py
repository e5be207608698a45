"""The caller's side of the supervisor: starting a command under it, setting rules, counting what they hit."""

import functools
import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from harness.capabilities import StorageRule
from harness.supervision.syscalls import this_architecture
from harness.targets.local.supervisor import HITS_SUFFIX, LEFT_SUFFIX

SCRIPT = Path(__file__).with_name("interposer_script.py")

CONTROL_TIMEOUT_S = 2.0
"""A supervisor answers within a millisecond of being scheduled; one that is stopped along with its job answers when it goes on."""

PROBE_TIMEOUT_S = 30.0
"""The probe starts two interpreters, 0.1 s on an idle machine."""

_MAKE_A_DIRECTORY = """
import os, sys
try:
    os.mkdir(sys.argv[1])
except OSError as error:
    sys.exit(f"got {error.strerror} instead of Read-only file system" if error.errno != 30 else 0)
sys.exit("a system call went past the supervisor")
"""


def interposed(command: Sequence[str], *, control: Path, root: Path, rule: StorageRule | None = None) -> tuple[str, ...]:
    """The command line that runs ``command`` under a supervisor.

    ``-P`` keeps the job's directory from standing in front of the standard library.

    Args:
        command: Program and arguments.
        control: Where the supervisor listens; at most 107 bytes, one path an attempt, and nothing may be there yet.
        root: The directory whose changes meet the rules.
        rule: In force from the first system call on.
    """
    program = [sys.executable, "-P", str(SCRIPT), "--control", str(control), "--root", str(root)]
    if rule is not None:
        program += ["--rule", json.dumps(msgspec.to_builtins(rule))]
    return (*program, "--", *command)


class StorageRules:
    """The rules of one attempt, by the control path it was started with.

    A request to a supervisor that has not opened its socket yet is left where it looks when it has.
    """

    def __init__(self, control: Path) -> None:
        self._control = control
        self._hits_file = Path(f"{control}{HITS_SUFFIX}")
        self._left_file = Path(f"{control}{LEFT_SUFFIX}")
        self._generation = 0

    def set(self, rule: StorageRule) -> None:
        """Put a rule in force in place of the last one; counting starts again.

        Raises:
            LookupError: When the attempt has ended, or the supervisor refuses the rule.
        """
        generation = self._generation + 1
        self._ask({"op": "set", "rule": msgspec.to_builtins(rule), "generation": generation})
        self._generation = generation

    def clear(self) -> None:
        """Take the rule back; operations that it holds go on.

        Raises:
            LookupError: When the attempt has ended, and its rule with it.
        """
        self._ask({"op": "clear"})

    def hits(self) -> int:
        """How many operations the rule in force, or the last one, has hit; known even when the attempt has ended since.

        A supervisor that has not taken up the rule yet still counts for the one before it: those hits are none of this one.
        """
        try:
            generation, hits = self._hits_file.read_bytes().split()
        except (FileNotFoundError, ValueError):  # it has not begun to count
            return 0
        return int(hits) if int(generation) == self._generation else 0

    def _ask(self, request: dict[str, object]) -> None:
        line = json.dumps(request).encode() + b"\n"
        if self._deliver(line):
            return
        self._leave(line)
        # Its socket opens first, then it takes what was left, then it starts to count: so what counts and does not listen has ended.
        if self._deliver(line) or not self._hits_file.exists() or self._deliver(line):
            return
        raise LookupError(f"no supervisor listens at {self._control}: the attempt has ended")

    def _deliver(self, line: bytes) -> bool:
        """Hand a request over; False when nobody listens.

        Raises:
            LookupError: When it was refused.
        """
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(CONTROL_TIMEOUT_S)
            try:
                connection.connect(str(self._control))
                connection.sendall(line)
                reply = connection.makefile("rb").readline()
            except TimeoutError:
                return True  # it lies in the socket, and is met when the supervisor goes on
            except OSError:
                return False
        problem = json.loads(reply).get("problem") if reply else "it hung up"
        if problem:
            raise LookupError(f"the supervisor at {self._control} refused {line.decode().strip()}: {problem}")
        return True

    def _leave(self, line: bytes) -> None:
        unfinished = self._left_file.with_name(f"{self._left_file.name}.tmp")
        unfinished.write_bytes(line)
        unfinished.replace(self._left_file)


@functools.cache
def interposer_available() -> str:
    """Empty when commands can be supervised here, else why not: found out by supervising one, for sandboxes differ in what they forbid."""
    if sys.platform != "linux":
        return f"seccomp user notification is Linux only; this is {sys.platform}"
    if this_architecture() is None:
        return f"no table of system calls for {os.uname().machine}"
    with tempfile.TemporaryDirectory(prefix="interposer-") as scratch:
        root = Path(scratch, "root")
        root.mkdir()
        probe = (sys.executable, "-S", "-c", _MAKE_A_DIRECTORY, str(root / "probe"))
        command = interposed(probe, control=Path(scratch, "control"), root=root, rule=StorageRule(error="EROFS"))
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PROBE_TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"the supervisor does not run: {error}"
    if done.returncode != 0:
        said = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        return f"system calls cannot be supervised: {said[-1]}"
    return ""
