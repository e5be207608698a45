"""Memory: a job that wants too much is killed by the kernel, and that is nobody's SIGKILL but the platform's."""

import re
import signal

from harness.history import LogLine, Marked
from tests.contract.driver import python

TAKES_ALL = "emit('ready')\nheld = []\nwhile True: held.append(bytearray(8 << 20))"


def test_a_job_over_its_memory_limit_is_killed_by_the_platform_which_says_why(start):
    run = start(python(TAKES_ALL), memory_mib=64, max_retries=1, armed=("ready:after",))

    run.finish()

    assert [(exited.signal, exited.cause, exited.retried) for exited in run.exits()] == [
        (signal.SIGKILL, "platform", True),
        (signal.SIGKILL, "platform", False),
    ]
    lines = run.lines("system")
    assert re.match(r"Memory limit of 64 MiB exceeded( with 6\d MiB used)?\. Consider", lines[0])
    assert lines[1] == "Container terminated on signal 9."


def test_our_own_sigkill_under_a_memory_limit_stays_our_own(start):
    run = start(python("emit('ready')\ntime.sleep(60)"), memory_mib=64)
    run.until(Marked)

    run.target.signal(run.victim(), signal.SIGKILL, cause="fault")
    run.finish()

    assert [(exited.signal, exited.cause) for exited in run.exits()] == [(signal.SIGKILL, "fault")]
    assert not [line for line in run.of(LogLine) if "Memory limit" in line.text]


def test_a_rank_that_is_killed_for_memory_makes_the_failure_the_platforms(start):
    child = "held = []\nwhile True: held.append(bytearray(8 << 20))"
    run = start(
        python(f"emit('ready')\nsys.exit(abs(subprocess.run([sys.executable, '-S', '-c', {child!r}]).returncode))"),
        memory_mib=64,
        armed=("ready:after",),
    )

    run.finish()

    assert [(exited.exit_code, exited.signal, exited.cause) for exited in run.exits()] == [(9, None, "platform")]
    assert "Memory limit of 64 MiB exceeded" in run.lines("system")[0]


def test_a_kill_for_memory_within_the_grace_is_not_taken_for_ours(start):
    code = """
def eat(number, frame):
    held = []
    while True: held.append(bytearray(8 << 20))
signal.signal(signal.SIGTERM, eat)
emit("ready")
while True: time.sleep(60)
"""
    run = start(python(code), memory_mib=64, grace_s=20.0)
    run.until(Marked)

    run.target.terminate(run.victim(), cause="fault", message="taken away", reason="INSTANCE_PREEMPTED")
    run.finish()

    assert [(exited.signal, exited.cause) for exited in run.exits()] == [(signal.SIGKILL, "platform")]
    assert "Memory limit of 64 MiB exceeded" in run.lines("system")[0]


def test_memory_within_the_limit_is_granted(start):
    run = start(python("held = bytearray(32 << 20)\nsys.exit(len(held) != 32 << 20)"), memory_mib=128)

    run.finish()

    assert [(exited.exit_code, exited.cause) for exited in run.exits()] == [(0, "job")]
