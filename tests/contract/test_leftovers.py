"""Nothing of an attempt outlives it, whatever it does to escape."""

import signal

from harness.history import LogLine, Marked
from harness.targets import left_behind
from tests.contract.driver import python

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

    assert [(exited.exit_code, exited.leftovers) for exited in run.exits()] == [(0, 20)]
    assert left_behind(run.launch.run_id) == []


def test_twenty_children_that_flee_die_with_their_attempt(start):
    run = start(python(BOMB + "time.sleep(60)"))
    run.until(Marked)

    pids = run.target.signal(run.victim(), signal.SIGKILL, cause="fault")
    run.finish()

    assert len(pids) == 21
    assert [exited.leftovers for exited in run.exits()] == [0]
    assert left_behind(run.launch.run_id) == []


def test_a_child_that_hides_its_environment_is_found_by_its_parents_and_its_session(start):
    run = start(python("subprocess.Popen(['env', '-i', 'sh', '-c', 'sleep 60 & sleep 60; exit'])\ntime.sleep(60)"))
    run.until_true(lambda: len(run.target.process_ids(run.victim())) == 4)

    run.target.signal(run.victim(), signal.SIGTERM, cause="fault")
    run.finish()

    (exited,) = run.exits()
    assert exited.leftovers == 3


def test_a_child_that_keeps_the_output_open_does_not_keep_the_attempt_open(start):
    run = start(("sh", "-c", "echo up; sleep 60 & exit 0"))

    run.finish()

    assert [exited.leftovers for exited in run.exits()] == [1]
    assert "up" in [line.text for line in run.of(LogLine)]


def test_stopped_children_are_killed_too(start):
    run = start(("sh", "-c", "sleep 60 & kill -STOP $!; exit 3"))

    run.finish()

    assert [(exited.exit_code, exited.leftovers) for exited in run.exits()] == [(3, 1)]
