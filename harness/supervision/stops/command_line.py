"""Runs a command and holds it at operations on a directory.

``python stops_script.py --root DIR --events FILE --door SOCKET --stops JSON -- COMMAND``

As with the recorder, the calls that change something in the directory are performed here, one after the other: so "after" an operation is
after it alone, and "before" it is before anything of it. ``--stops`` is a list of objects with the fields of ``at-operation``. At the
socket one JSON object a line tells who is held, ``{"stop": 0, "process": 7, "thread": 8, "path": "step_5/data"}``; the number of the stop
and a line end let it go on. When the other side hangs up, nobody is held any more.

What the command can notice, and what the caller must know, is as with the recorder, but for this: it ends as soon as the command's first
process does, and what outlives that can change files no more. A fatal signal ends whoever is held; any other reaches it when it goes on.
Needs Linux 5.19, as the recorder.
"""

import argparse
import errno
import json
import os
import socket
import sys

from harness.supervision import seccomp
from harness.supervision.job import EXIT_BROKEN, catch_signals, end_as, start_job
from harness.supervision.recorder.command_line import break_down, lift_limits
from harness.supervision.stops.counting import Stop, Stops
from harness.supervision.stops.held import CountingLog, HeldRecord, Words
from harness.supervision.stops.ranks import Ranks
from harness.supervision.stops.supervisor import StopSupervisor
from harness.supervision.syscalls import this_architecture


def supervise(command: list[str], *, root: str, events: str, door: socket.socket, stops: Stops) -> int:
    """Run a command to its end; returns its wait status.

    Raises:
        OSError: When it could not be begun.
    """
    architecture = this_architecture()
    if architecture is None:
        raise OSError(errno.ENOSYS, f"no table of system calls for {os.uname().machine}")
    real_root = os.path.realpath(os.fsencode(root))
    if not os.path.isdir(real_root) or real_root == b"/":  # noqa: PTH112 - see the recorder
        raise OSError(errno.ENOTDIR, "it is no directory, or the root of all")
    numbers = {call.name: number for number, call in architecture.recorded.items()}
    ranks = Ranks()
    record = HeldRecord(real_root, CountingLog(stops, ranks), numbers, stops=stops, ranks=ranks)
    record.take_in((record.nodes.above, record.nodes.name))
    record.log_more_names()
    speech = Words(record, events)
    seccomp.adopt_orphans()
    signals = catch_signals()
    calls = architecture.recorded
    job, listener = start_job(command, lambda: seccomp.install_filter(architecture, calls, may_be_interrupted=False))
    lift_limits()
    return StopSupervisor(job, listener, record=record, speech=speech, calls=calls, signals=signals, door=door).run()


def main(arguments: list[str]) -> None:
    """Read the command line, supervise, and end as the command did."""
    usage = "stops_script.py --root DIR --events FILE --door SOCKET --stops JSON -- COMMAND ..."
    parser = argparse.ArgumentParser(prog="stops", usage=usage)
    parser.add_argument("--root", required=True, metavar="DIR", help="the directory whose operations are counted")
    parser.add_argument("--events", required=True, metavar="FILE", help="where the job says what it does (HARNESS_EVENTS)")
    parser.add_argument("--door", required=True, metavar="SOCKET", help="where somebody listens")
    parser.add_argument("--stops", required=True, type=json.loads, metavar="JSON", help="the operations to stop at")
    at = arguments.index("--") if "--" in arguments else len(arguments)  # argparse would also take a "--" of the command's own
    command = arguments[at + 1 :]
    options = parser.parse_args(arguments[:at])
    if not command:
        parser.error("no command after --")
    stops = Stops([Stop(index, **fields) for index, fields in enumerate(options.stops)])
    sys.excepthook = break_down
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            door.connect(options.door)
            status = supervise(command, root=options.root, events=options.events, door=door, stops=stops)
    except OSError as error:
        parser.exit(EXIT_BROKEN, f"stops: cannot supervise {command[0]!r} in {options.root}: {error}\n")
    end_as(status)
