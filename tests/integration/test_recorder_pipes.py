"""A call that waits for a pipe does not hold the pipe longer than its caller lives."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.recorded import Stage


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    stage = Stage(tmp_path)
    yield stage
    stage.close()


def test_a_pipe_has_no_reader_any_more_when_who_waited_for_it_is_killed(stage: Stage) -> None:
    stage.run("""
import select
reading, writing = os.pipe()
child = os.fork()
if not child:
    os.close(writing)
    os.splice(reading, os.open("file", os.O_CREAT | os.O_WRONLY), 10)
    os._exit(1)
os.close(reading)
recorder = f"/proc/{os.getppid()}/fd"
pipe = os.readlink(f"/proc/self/fd/{writing}")
def holds(descriptor):
    try:
        return os.readlink(f"{recorder}/{descriptor}") == pipe
    except OSError:
        return False
while not any(map(holds, os.listdir(recorder))):
    time.sleep(0.01)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
poll = select.poll()
poll.register(writing, 0)
assert poll.poll(10000) == [(writing, select.POLLERR)]
""")
