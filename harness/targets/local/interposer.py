"""Runs a command under a supervisor that can make its storage fail or slow: ``python -m harness.targets.local.interposer``.

The command and all it starts, in any language and on any thread, hand their file-changing system calls to this process, which lets them
go on, refuses them, or holds them, by the rule in force. A rule is set over a Unix socket, one JSON object a line:
``{"op": "set", "rule": {"error": "ENOSPC", "operations": 3, "delay_s": 0.0}, "generation": 1}`` or ``{"op": "clear"}``; the reply is
``{"hits": n}`` or ``{"problem": "..."}``. The generation of the last rule (0: the command line's) and how many operations it has hit also
stand in the file ``<socket>.hits``, where they outlive this process. A request that comes before the socket is open is left in
``<socket>.request``.

What the command can notice: it is not the first process of its session; set-user-id programs gain nothing (``no_new_privs``); io_uring and
``open_by_handle_at`` are not there; a signal that arrives in the instant before a call is picked up interrupts it. What the caller must
know: this process ends as the command does (exit code or signal) and passes on the signals that are sent to it alone; a signal to the
whole process group reaches the command twice, once directly, so send those to the command's own processes. SIGKILL and SIGSTOP cannot be
passed on; when this process is killed the command is, too. Descendants that outlive the command cannot change files any more.

Not seen, so never hit: see ``syscalls``. Paths are told apart by their real name: another mount of the same directory is elsewhere.

Starts in front of every attempt it watches: standard library only, and as little of it as it takes.
"""
# ruff: noqa: PTH108, PTH123 - pathlib would cost a tenth of the start

import argparse
import errno
import json
import os
import socket
import sys

from harness.supervision import seccomp
from harness.supervision.job import EXIT_BROKEN, catch_signals, end_as, start_job
from harness.supervision.syscalls import this_architecture
from harness.targets.local.supervisor import HITS_SUFFIX, LEFT_SUFFIX, Calls, Rule, Supervisor, rule_asked_for


def supervise(command: list[str], *, door: socket.socket, hits_file: int, root: str, rule: Rule | None) -> int:
    """Run a command to its end; returns its wait status.

    Raises:
        OSError: When the filter could not be put in force.
    """
    architecture = this_architecture()
    if architecture is None:
        raise OSError(errno.ENOSYS, f"no table of system calls for {os.uname().machine}")
    seccomp.adopt_orphans()
    signals = catch_signals()
    job, listener = start_job(command, lambda: seccomp.install_filter(architecture, architecture.calls))
    calls = Calls(listener, root=os.path.realpath(os.fsencode(root)), architecture=architecture, hits_file=hits_file)
    calls.set(rule)
    return Supervisor(job, listener, calls=calls, door=door, signals=signals).run()


def _rule_left(path: str, otherwise: Rule | None) -> Rule | None:
    """What was asked for before we listened, else what the command line says."""
    try:
        with open(path, "rb", buffering=0) as file:
            return rule_asked_for(file.read())
    except FileNotFoundError:
        return otherwise


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except FileNotFoundError:
        return  # the caller has cleared away already


def main(arguments: list[str]) -> None:
    """Read the command line, supervise, and end as the command did."""
    usage = "python -m harness.targets.local.interposer --control SOCKET --root DIR [--rule JSON] -- COMMAND ..."
    parser = argparse.ArgumentParser(prog="interposer", usage=usage)
    parser.add_argument("--control", required=True, metavar="SOCKET", help="where to listen; must not exist")
    parser.add_argument("--root", required=True, metavar="DIR", help="the directory whose changes meet the rule")
    parser.add_argument("--rule", type=lambda text: Rule(**json.loads(text)), metavar="JSON", help="a rule that is in force from the start")
    at = arguments.index("--") if "--" in arguments else len(arguments)  # argparse would also take a "--" of the command's own
    command = arguments[at + 1 :]
    options = parser.parse_args(arguments[:at])
    if not command:
        parser.error("no command after --")
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
            door.bind(options.control)
            door.listen()
            rule = _rule_left(f"{options.control}{LEFT_SUFFIX}", options.rule)
            hits_file = os.open(f"{options.control}{HITS_SUFFIX}", os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                status = supervise(command, door=door, hits_file=hits_file, root=options.root, rule=rule)
            finally:
                _remove(options.control)
    except OSError as error:
        parser.exit(EXIT_BROKEN, f"interposer: cannot supervise {command[0]!r} at {options.control}: {error}\n")
    end_as(status)


if __name__ == "__main__":
    main(sys.argv[1:])
