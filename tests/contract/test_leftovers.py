"""Nothing of an attempt outlives it, whatever it does to escape."""

import os
import resource
import signal
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from harness.errors import BrokenHarnessError
from harness.history import BarrierReached, LogLine, Marked
from harness.targets import left_behind, remove_left_behind
from tests.contract.driver import ROOT, SEEN_HERE, Run, python

BOMB = """
for _ in range(20):
    if os.fork() == 0:
        os.setsid()
        if os.fork(): os._exit(0)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        time.sleep(60)
        os._exit(0)
for _ in range(20): os.wait()
emit("ready")
"""


def test_twenty_children_that_flee_the_session_are_found_and_killed(start):
    run = start(python(BOMB + "sys.exit(0)"))

    run.finish()

    assert [(exited.exit_code, exited.leftovers) for exited in run.exits()] == [(0, run.traits.leftovers(20))]
    if run.traits.is_remote:
        run.stop()
    assert left_behind(run.launch.run_id) == []


LEAVES_A_FILE = """
import tempfile
directory = tempfile.gettempdir()
left = os.path.join(directory, 'left')
print(directory + ':' + 'left' * os.path.exists(left), flush=True)
open(left, 'w').close()
os._exit(attempt == 0)
"""


def test_what_an_attempt_puts_into_its_temporary_directory_goes_with_it(start):
    run = start(python(LEAVES_A_FILE), max_retries=1)

    run.finish()

    assert [exited.exit_code for exited in run.exits()] == [1, 0]
    (first, found_first), (second, found_second) = (line.split(":") for line in run.lines())
    assert run.traits.has_image or first != second
    assert found_first == found_second == "", "nothing of the attempt before is there"
    assert not Path(first, "left").exists()
    assert not Path(second, "left").exists()


def test_twenty_children_that_flee_die_with_their_attempt(start):
    run = start(python(BOMB + "time.sleep(60)"))
    run.until(Marked)

    pids = run.target.signal(run.victim(), signal.SIGKILL, cause="fault")
    run.finish()

    assert len(pids) == 21
    assert [exited.leftovers for exited in run.exits()] == [0]
    if run.traits.is_remote:
        run.stop()
    assert left_behind(run.launch.run_id) == []


@pytest.mark.parametrize("target_name", SEEN_HERE, indirect=True)
def test_a_child_that_hides_its_environment_is_found_by_its_parents_and_its_session(start):
    hide = "subprocess.Popen(['env', '-i', 'sh', '-c', 'sleep 60 & sleep 60; exit'])\nemit('leave')\nos._exit(0)"
    run = start(python(hide), armed=("leave:before",))
    run.releases = False
    reached = run.until(BarrierReached)
    run.until_true(lambda: len(run.target.process_ids(run.victim())) == 4)

    run.target.release(reached)
    run.finish()

    (exited,) = run.exits()
    assert exited.leftovers == run.traits.leftovers(3)


def test_a_child_that_keeps_the_output_open_does_not_keep_the_attempt_open(start):
    run = start(("sh", "-c", "echo up; sleep 60 & exit 0"))

    run.finish()

    assert [exited.leftovers for exited in run.exits()] == [run.traits.leftovers(1)]
    assert "up" in [line.text for line in run.of(LogLine)]


def test_stopped_children_are_killed_too(start):
    run = start(("sh", "-c", "sleep 60 & kill -STOP $!; exit 3"))

    run.finish()

    assert [(exited.exit_code, exited.leftovers) for exited in run.exits()] == [(3, run.traits.leftovers(1))]


HARNESS = """
import sys
from pathlib import Path
from harness.targets import left_behind
from tests.contract.driver import Run
command = ("sh", "-c", "setsid sleep 60 & env -i sleep 60 & echo up; sleep 60")
run = Run(sys.argv[1], Path(sys.argv[2]), command, run_id=sys.argv[3], armed=("step:after",)).start()
while not run.lines() or len(left_behind(sys.argv[3])) < int(sys.argv[4]): run.poll()
print("up", flush=True)
while True: run.poll()
"""


@pytest.mark.parametrize("target_name", SEEN_HERE, indirect=True)  # on a project: tests/integration/google/test_sweeps.py
def test_what_a_killed_harness_leaves_is_found_and_removed(target_name, tmp_path):
    things = 6  # four processes, one of them without its environment; the scratch directory or the container; the socket directory
    run_id = uuid.uuid4().hex
    arguments = [target_name, str(tmp_path), run_id, str(things)]
    with subprocess.Popen([sys.executable, "-c", HARNESS, *arguments], stdout=subprocess.PIPE, cwd=ROOT) as harness:
        assert harness.stdout is not None
        harness.stdout.readline()
        harness.kill()

    found = left_behind(run_id)
    removed = remove_left_behind(run_id)

    assert len(found) == things
    assert removed == [f"removed {thing}" for thing in found]
    assert left_behind(run_id) == []
    assert remove_left_behind(run_id) == []


@pytest.mark.parametrize("target_name", SEEN_HERE, indirect=True)
def test_a_process_that_cannot_be_started_breaks_the_run_and_nothing_is_left(target_name, tmp_path):
    run = Run(target_name, tmp_path, ("sleep", "60"), tasks=60)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/dev/fd")) + 60, limits[1]))
    try:
        with pytest.raises(BrokenHarnessError, match="Too many open files"):
            run.start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)

    assert left_behind(run.launch.run_id) == []
