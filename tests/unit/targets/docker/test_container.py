"""A container's processes are signalled as what they were: who has an id of theirs by now is a stranger on this machine."""

import dataclasses
import signal
import subprocess
import sys
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest

from harness.targets.docker.container import Container
from harness.targets.docker.process_namespace import ProcessNamespace

PATIENCE_S = 10.0


@pytest.fixture
def process() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-S", "-c", "import time; time.sleep(60)"]) as process:
        yield process
        process.kill()


def container_of(process: subprocess.Popen[bytes], **row: Any) -> Container:
    """A container whose first process began as this one did, but for ``row``."""
    namespace = ProcessNamespace()
    namespace.begin(process.pid)
    assert namespace.row is not None
    namespace.row = dataclasses.replace(namespace.row, **row)
    engine = SimpleNamespace(remove=lambda _: None)
    output = SimpleNamespace(is_at_end=False, close=lambda: None)
    return Container("0123456789abcdef", engine=cast("Any", engine), output=cast("Any", output), namespace=namespace, memory_mib=0)


def test_a_stranger_with_the_id_of_the_first_process_gets_no_signal(process: subprocess.Popen[bytes]) -> None:
    container = container_of(process, started=0.0)

    assert container.signal(signal.SIGTERM) == ()
    assert container.signal(signal.SIGTERM, process.pid) == ()
    assert container.kill([process.pid]) == ()
    assert container.state_of(process.pid) == "gone"
    for number in (signal.SIGKILL, signal.SIGSTOP):
        with pytest.raises(LookupError, match="container 0123456789ab has ended already"):
            container.signal(number)
    assert process.poll() is None
    container.close()


def test_what_runs_gets_it(process: subprocess.Popen[bytes]) -> None:
    container = container_of(process)

    assert container.find() == container.signal(signal.SIGCONT) == (process.pid,)
    assert container.state_of(process.pid) == "running"
    with pytest.raises(LookupError, match="process 1 does not run, or is none of this attempt"):
        container.find(1)
    assert container.kill([1]) == ()
    assert container.kill([process.pid]) == (process.pid,)
    assert process.wait(PATIENCE_S) == -signal.SIGKILL
    container.returncode = -signal.SIGKILL
    assert container.foreign_kill() is None  # it was ours
    container.close()
