"""Runs a command and records what it does to a directory: ``python recorder_script.py --root DIR --log DIR --events FILE -- COMMAND``.

The command and all it starts, in any language and on any thread, hand their file-changing system calls to this process. Those that change
something in the directory are performed here, one after the other, and logged with their data; the others go on at once.

What the command can notice: as with the supervisor of storage (``targets.local.interposer``), and that calls on the directory wait for one
another. What the caller must know: this process ends as the command does, and passes on the signals that are sent to it alone. When it is
killed the command is, too, and the log has no last line. When processes outlive the command it goes on for ``OUTLIVING_S`` at most, and
then kills them.

Not seen: stores into mappings, asynchronous I/O, processes with other rights, sockets, pipes and devices, changes of modes, times and
attributes that a recovery could go by (the log says so when it happens); changes of owner; text that is spliced into the standard output;
what is still being written to a file elsewhere while another thread renames it into the directory, which is found at the end as somebody
else's. Needs Linux 5.19: before, a signal would interrupt a call that we have done already.
"""
# ruff: noqa: PTH112, PTH118 - pathlib would cost a tenth of the start

import argparse
import errno
import functools
import os
import resource
import sys
from types import TracebackType

from harness.supervision import seccomp
from harness.supervision.job import EXIT_BROKEN, catch_signals, end_as, start_job
from harness.supervision.recorder.elsewhere import Elsewhere
from harness.supervision.recorder.operation_log import LogBrokenError, OperationLog
from harness.supervision.recorder.record import Record
from harness.supervision.recorder.recorder import Recorder
from harness.supervision.recorder.speech import Speech
from harness.supervision.syscalls import this_architecture


def record(command: list[str], *, root: str, log_directory: str, events: str) -> int:
    """Record a command to its end; returns its wait status.

    Raises:
        OSError: When it could not be begun.
        LogBrokenError: When the log could not be written.
    """
    architecture = this_architecture()
    if architecture is None:
        raise OSError(errno.ENOSYS, f"no table of system calls for {os.uname().machine}")
    real_root = os.path.realpath(os.fsencode(root))
    for path in (log_directory, events):
        if os.path.join(os.path.realpath(os.fsencode(path)), b"").startswith(os.path.join(real_root, b"")):
            raise OSError(errno.EINVAL, f"{path} lies in the directory that is recorded")
    if not os.path.isdir(real_root) or real_root == b"/":
        raise OSError(errno.ENOTDIR, "it is no directory, or the root of all")
    log = OperationLog(log_directory)
    state = Record(real_root, log, {call.name: number for number, call in architecture.recorded.items()})
    initial = state.take_in((state.nodes.above, state.nodes.name))
    log.begin(real_root, command, initial)
    state.log_more_names()
    speech = Speech(state, events)
    seccomp.adopt_orphans()
    signals = catch_signals()
    calls = architecture.recorded
    install = functools.partial(seccomp.install_filter, architecture, calls, may_be_interrupted=False, tells_what_is_refused=True)
    job, listener = start_job(command, install)
    lift_limits()
    elsewhere = Elsewhere(state, ignored=(os.environb.get(b"TMPDIR", b""),), events=speech.events)
    return Recorder(job, listener, record=state, speech=speech, calls=calls, signals=signals, elsewhere=elsewhere).run()


def lift_limits() -> None:
    """The job's limits are kept for the job's calls; ours would hit the log."""
    for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE):
        resource.setrlimit(limit, (resource.getrlimit(limit)[1],) * 2)


def break_down(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What nobody expected is our fault, and must not look like an end of the job."""
    sys.__excepthook__(kind, error, trace)
    os._exit(EXIT_BROKEN)


def main(arguments: list[str]) -> None:
    """Read the command line, record, and end as the command did."""
    usage = "recorder_script.py --root DIR --log DIR --events FILE -- COMMAND ..."
    parser = argparse.ArgumentParser(prog="recorder", usage=usage)
    parser.add_argument("--root", required=True, metavar="DIR", help="the directory whose changes are recorded")
    parser.add_argument("--log", required=True, metavar="DIR", help="where the log is made; there must be none yet")
    parser.add_argument("--events", required=True, metavar="FILE", help="where the job says what it does (HARNESS_EVENTS)")
    at = arguments.index("--") if "--" in arguments else len(arguments)  # argparse would also take a "--" of the command's own
    command = arguments[at + 1 :]
    options = parser.parse_args(arguments[:at])
    if not command:
        parser.error("no command after --")
    sys.excepthook = break_down
    try:
        status = record(command, root=options.root, log_directory=options.log, events=options.events)
    except (OSError, LogBrokenError) as error:
        parser.exit(EXIT_BROKEN, f"recorder: cannot record {command[0]!r} in {options.root}: {error}\n")
    end_as(status)
