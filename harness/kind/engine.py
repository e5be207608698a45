"""The Docker engine: the one that answers, else one that is installed and started here, where that is allowed.

``harness up docker`` brings it up and is harmless when it is up already.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from harness.clock import Clock
from harness.errors import TargetUnavailableError
from harness.kind.cache import engine_dir
from harness.kind.commands import CommandFailedError, run_command
from harness.kind.lock import Lock

CAP_SYS_RESOURCE = 24
"""Its number. Source: linux/capability.h."""

ANSWER_S = 10.0
"""A healthy engine answers `docker version` in well under a second; a busy machine may need a few."""

START_S = 60.0
"""dockerd starts in 2 to 10 s; longer when it repairs its storage after a crash."""

INSTALL_S = 600.0
"""About 300 MB of packages."""

ONE_STARTS_S_MAX = 3 * INSTALL_S + START_S
"""Two that start an engine at once would fight for its socket: the second waits as long as the first may take, and finds its engine."""

POLL_S = 0.25

RUNTIME_NAME = "chaos-harness"
PACKAGES = ("docker.io", "containerd", "runc", "iptables")
INSTALL_ADVICE = "install and start Docker, or run `make docker-up` as root on Debian or Ubuntu"


def server_version() -> str:
    """The version of the engine that answers, or nothing.

    Raises:
        CommandFailedError: Never; an engine that does not answer has no version.
    """
    try:
        return run_command(["docker", "version", "--format", "{{.Server.Version}}"], deadline_s=ANSWER_S).strip()
    except CommandFailedError:
        return ""


def problem_with_engine() -> str:
    """Why no Docker engine can be used here, or nothing."""
    if shutil.which("docker") is None:
        return "the command docker is not there"
    return "" if server_version() else "no Docker engine answers"


def require_engine() -> None:
    """Refuse to go on without an engine.

    Raises:
        TargetUnavailableError: When none answers.
    """
    problem = problem_with_engine()
    if problem:
        raise TargetUnavailableError(target="docker", reason=problem, advice=INSTALL_ADVICE)


def start_engine(clock: Clock, say: Callable[[str], None]) -> None:
    """Make a Docker engine answer: use the present one, else install and start one.

    Raises:
        TargetUnavailableError: When none answers and none may be started here, with the reason.
    """
    with Lock(engine_dir() / "lock", target="docker", others="starts a Docker engine", patience_s=ONE_STARTS_S_MAX).held(clock, say):
        version = server_version()
        if version:
            say(f"a Docker engine answers: {version}")
            return
        _require_allowed()
        if any(shutil.which(program) is None for program in ("docker", "dockerd", "runc", "iptables")):
            _install(say)
        _start(clock, say)


def lacks_capability(status: str) -> bool:
    """Whether CAP_SYS_RESOURCE is missing from the bounding set, read from the text of ``/proc/self/status``."""
    sets = dict(line.split(":", 1) for line in status.splitlines() if ":" in line)
    return not int(sets["CapBnd"].strip(), 16) >> CAP_SYS_RESOURCE & 1


def write_wrapper(directory: Path, runtime: str) -> Path:
    """Write the runtime wrapper where the engine finds it, and return its path.

    The interpreter is the base one: it stays when the virtual environment goes.
    """
    script = directory / "runtime_wrapper.py"
    script.write_text((Path(__file__).parent / "runtime_wrapper.py").read_text())
    interpreter = Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    wrapper = directory / "runc-without-sys-resource"
    wrapper.write_text(
        "#!/bin/sh\n"
        "# Only create, run and exec carry a specification; for the rest no interpreter is started.\n"
        'for word in "$@"; do\n'
        f'  case "$word" in create|run|exec) exec "{interpreter}" -IS "{script}" "{runtime}" "$@";; esac\n'
        "done\n"
        f'exec "{runtime}" "$@"\n'
    )
    wrapper.chmod(0o755)
    return wrapper


def _require_allowed() -> None:
    """Refuse where an engine must not be installed or started by us, with what to do instead."""
    if os.environ.get("DOCKER_HOST"):
        reason, advice = f"DOCKER_HOST is {os.environ['DOCKER_HOST']!r} and nothing answers there", "correct it, or unset it"
    elif sys.platform != "linux":
        reason, advice = f"no Docker engine answers, and one can be started only on Linux, not on {sys.platform}", "start Docker Desktop"
    elif os.geteuid() != 0:
        reason, advice = "no Docker engine answers, and only root may start one", "start Docker, or run `make docker-up` as root"
    elif shutil.which("dockerd") is None and shutil.which("apt-get") is None:
        reason, advice = "no Docker engine is installed, and this is not Debian or Ubuntu", "install Docker by your system's own means"
    else:
        return
    raise TargetUnavailableError(target="docker", reason=reason, advice=advice)


def _install(say: Callable[[str], None]) -> None:
    """Install the engine from Debian's packages; the client is a package of its own in newer releases."""
    say(f"installing {', '.join(PACKAGES)}")
    quiet = {"DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
    install = ["apt-get", "install", "--yes", "--quiet", "--no-install-recommends"]
    run_command(["apt-get", "update", "--quiet"], deadline_s=INSTALL_S, environment=quiet)
    run_command([*install, *PACKAGES], deadline_s=INSTALL_S, environment=quiet)
    if shutil.which("docker") is None:
        run_command([*install, "docker-cli"], deadline_s=INSTALL_S, environment=quiet)


def _start(clock: Clock, say: Callable[[str], None]) -> None:
    """Start dockerd in a session of its own, so that it outlives us, and wait until it answers."""
    directory = engine_dir()
    log = directory / "dockerd.log"
    command = ["dockerd", "--pidfile", str(directory / "dockerd.pid")]
    if lacks_capability(Path("/proc/self/status").read_text()):
        wrapper = write_wrapper(directory, str(shutil.which("runc")))
        command += ["--add-runtime", f"{RUNTIME_NAME}={wrapper}", "--default-runtime", RUNTIME_NAME]
        say("CAP_SYS_RESOURCE is missing here: the engine gets a runtime wrapper that does not ask for it")
    began_s = clock.monotonic_s()
    with log.open("ab") as file:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True, cwd="/")
    while not (version := server_version()):
        if process.poll() is not None or clock.monotonic_s() - began_s > START_S:
            raise TargetUnavailableError(target="docker", reason=f"dockerd {_fate(process.poll())}", advice=f"see the end of {log}")
        clock.sleep(POLL_S)
    say(f"started Docker {version}, process {process.pid}, log {log}, in {clock.monotonic_s() - began_s:.1f} s")


def _fate(exit_code: int | None) -> str:
    return f"does not answer within {START_S:g} s" if exit_code is None else f"ended with {exit_code}"
