"""The barrier: a process of the job waits exactly where the schedule says, until it is released or killed."""

import signal

from harness.history import AttemptExited, BarrierReached, Marked, ObservationLost, SaveBegun, StepDone
from tests.contract.driver import python

STEPS = """
for step in (1, 2):
    emit("step", step=step)
emit("save.begin", step=2, digests={})
"""
RAW = """
import socket
def ask(data, then="recv"):
    s = socket.socket(socket.AF_UNIX); s.connect(os.environ["HARNESS_BARRIER"]); s.sendall(data)
    if then == "shut": s.shutdown(socket.SHUT_WR)
    return s.recv(1) if then != "go" else s
"""


def test_before_comes_before_the_event_and_after_after_it(start):
    run = start(python(STEPS), armed=("step:before", "step:after"))

    run.finish()

    kinds = [
        (type(event).__name__, event.step, getattr(event, "when", "")) for event in run.seen if isinstance(event, StepDone | BarrierReached)
    ]
    assert kinds == [
        ("BarrierReached", 1, "before"),
        ("StepDone", 1, ""),
        ("BarrierReached", 1, "after"),
        ("BarrierReached", 2, "before"),
        ("StepDone", 2, ""),
        ("BarrierReached", 2, "after"),
    ]


def test_a_process_does_nothing_until_it_is_released(start):
    run = start(python(STEPS), armed=("step:after",))
    run.releases = False
    reached = run.until(BarrierReached)
    for _ in range(5):
        run.poll()
    assert [event.step for event in run.of(StepDone)] == [1]

    run.target.release(reached)
    run.target.release(reached)
    second = run.until(BarrierReached, nth=2)

    assert second.step == 2
    assert run.of(SaveBegun) == []


def test_a_process_can_be_killed_exactly_there(start):
    run = start(python(STEPS), armed=("save.begin:before",))
    run.releases = False
    reached = run.until(BarrierReached)

    run.target.signal(run.victim(rank=0), signal.SIGKILL, cause="fault")
    run.until(AttemptExited)
    run.target.release(reached)
    run.finish()

    assert [event.step for event in run.of(StepDone)] == [1, 2]
    assert run.of(SaveBegun) == []


def test_the_wait_wakes_for_a_barrier(start):
    run = start(python(STEPS), armed=("step:after",))
    run.releases = False

    before_s = run.clock.monotonic_s()
    while not run.of(BarrierReached):
        run.target.wait(600.0)
        run.seen += run.target.poll()

    assert run.clock.monotonic_s() - before_s < 600.0


def test_ranks_that_say_the_same_wait_each_for_themselves(start):
    run = start(
        python("for rank in (0, 1):\n  if os.fork() == 0:\n    emit('meet', rank=rank)\n    os._exit(0)\nos.wait(); os.wait()"),
        armed=("meet:after",),
    )
    run.releases = False
    first = run.until(BarrierReached)
    second = run.until(BarrierReached, nth=2)

    run.target.release(first)
    run.target.release(second)
    run.finish()

    assert {first.rank, second.rank} == {0, 1}
    assert [exited.exit_code for exited in run.exits()] == [0]


def test_what_is_not_armed_does_not_hold_the_job(start):
    ask = """ask(b'{"event":"step","step":1,"when":"after"}\\n')\nemit("free")"""
    run = start(python(RAW + ask), armed=("save.begin:after",))
    run.releases = False

    run.finish()

    assert run.of(BarrierReached) == []
    assert [event.name for event in run.of(Marked)] == ["free"]


def test_garbage_at_the_barrier_is_let_go_and_counted(start):
    asks = """
ask(b"not json\\n")
ask(b'{"event":"step","when":"perhaps"}\\n')
ask(b"no newline", "shut")
try: ask(b"x" * (3 << 20))
except OSError: pass
ask(b"", "shut")
emit("free")
"""
    run = start(python(RAW + asks), armed=("step:after",))

    run.finish()

    assert run.of(BarrierReached) == []
    assert [event.name for event in run.of(Marked)] == ["free"]
    assert [(lost.what, lost.count) for lost in run.of(ObservationLost)] == [("events", 4)]


def test_a_client_that_closes_its_half_still_waits(start):
    run = start(python(RAW + """ask(b'{"event":"step","step":1,"when":"after"}\\n', "shut")\nemit("free")"""), armed=("step:after",))
    run.releases = False
    reached = run.until(BarrierReached)
    for _ in range(5):
        run.poll()
    assert run.of(Marked) == []

    run.target.release(reached)
    run.finish()

    assert [event.name for event in run.of(Marked)] == ["free"]


def test_each_attempt_asks_at_its_own_door(start):
    lie = """ask(b'{"event":"step","step":1,"when":"after","task":7,"attempt":7}\\n')\nsys.exit(1)"""
    run = start(python(RAW + lie), armed=("step:after",), max_retries=1)

    run.finish()

    assert [(event.task, event.attempt) for event in run.of(BarrierReached)] == [(0, 0), (0, 1)]
