"""The job under the filter: started as its caller meant it, signalled through us, and ended as itself.

Source: seccomp_unotify(2), signal(7), credentials(7).
"""
# ruff: noqa: PTH123, S606 - pathlib would cost a tenth of the start; running a command without a shell is the point

import errno
import os
import signal
import socket
from collections.abc import Callable

from harness.supervision import seccomp

PASSED_ON = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGABRT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGTERM,
    signal.SIGCONT,
    signal.SIGTSTP,
    signal.SIGWINCH,
)
"""What someone may send to the first process of a job; the others tell of an event of this process itself."""

EXIT_BROKEN, EXIT_NOT_EXECUTABLE, EXIT_NOT_FOUND = 70, 126, 127
"""The first as the command line of the harness, the others as every shell says it."""


def start_job(command: list[str], install_filter: Callable[[], int]) -> tuple[int, int]:
    """Start the command; returns its process id and the descriptor on which its calls arrive.

    Args:
        command: Program and arguments.
        install_filter: Puts a filter in force (``seccomp.install_filter``), in the process that is to be the command.

    Raises:
        OSError: When the filter could not be put in force; the reason is the child's.
    """
    ours, theirs = socket.socketpair()
    parent = os.getpid()
    job = os.fork()
    if job == 0:
        ours.close()
        _become_job(command, install_filter, link=theirs, parent=parent)
    theirs.close()
    with ours:
        said, descriptors, _, _ = socket.recv_fds(ours, 256, 1)
    if not descriptors:
        os.waitpid(job, 0)
        number = int(said or b"0")
        raise OSError(number, os.strerror(number) if number else "the command's process ended before it began")
    return job, descriptors[0]


def _become_job(command: list[str], install_filter: Callable[[], int], *, link: socket.socket, parent: int) -> None:
    """In the child: everything this interpreter changed is put back, then the filter, then the command."""
    try:
        seccomp.die_with_parent(signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        _restore_signals()
        try:
            listener = install_filter()
        except OSError as error:
            link.send(str(error.errno).encode())
            os._exit(EXIT_BROKEN)
        socket.send_fds(link, [b"0"], [listener])
        os.close(listener)
        os.execvpe(command[0], command, _own_environment())
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode())
        os._exit(EXIT_NOT_FOUND if error.errno == errno.ENOENT else EXIT_NOT_EXECUTABLE)


def _restore_signals() -> None:
    """Python ignores SIGPIPE and SIGXFSZ for itself, and ours are caught; what the caller had ignored stays ignored."""
    signal.set_wakeup_fd(-1)
    for number in (*PASSED_ON, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
        if number in (signal.SIGPIPE, signal.SIGXFSZ) or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def _own_environment() -> dict[bytes, bytes]:
    """As we were given it: the interpreter adds ``LC_CTYPE`` to its own where the locale is C."""
    with open("/proc/self/environ", "rb", buffering=0) as file:
        pairs = (entry.partition(b"=") for entry in file.read().split(b"\0") if b"=" in entry)
        return {name: value for name, _, value in pairs}


def catch_signals() -> int:
    """From now on signals become bytes on the descriptor that is returned."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    os.set_blocking(reading, False)
    signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    for number in (*PASSED_ON, signal.SIGCHLD):
        if signal.getsignal(number) is not signal.SIG_IGN or number == signal.SIGCHLD:
            signal.signal(number, lambda _number, _frame: None)
    return reading


def end_as(status: int) -> None:
    """Leave as the job did, by exit code or by the same signal."""
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number:
        seccomp.leave_no_core()
        if number != signal.SIGKILL:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (number,))
        os.kill(os.getpid(), number)
    os._exit(128 + number if number else os.WEXITSTATUS(status))
