"""Answers the calls of a job: those that concern the checkpoint directory are performed and logged, the others go on at once."""

import errno
import os
from collections.abc import Callable

from harness.clock import SystemClock
from harness.supervision import seccomp
from harness.supervision.loop import Supervision
from harness.supervision.recorder import attributes, blindness, copying, naming, opening, writing
from harness.supervision.recorder.caller import Caller, CallerGoneError, ElsewhereError, UnseenError
from harness.supervision.recorder.children import end_children
from harness.supervision.recorder.comparison import differences
from harness.supervision.recorder.elsewhere import Elsewhere
from harness.supervision.recorder.native import as_int
from harness.supervision.recorder.nodes import Node, key_of
from harness.supervision.recorder.record import Record
from harness.supervision.recorder.speech import Speech
from harness.supervision.seccomp import Notification
from harness.supervision.syscalls import OPEN, WRITE, Call, this_architecture

OUTLIVING_S = 5.0
"""So long recording goes on for processes that outlive the job's first one; helpers of an interpreter end within a second of it."""

DIFFERENCES_MAX = 50
"""Of so many paths the log says that somebody else has written there."""

_ON_FILE: dict[str, Callable[[Record, Caller, Call, list[int], Node], int]] = {
    **dict.fromkeys(("write", "pwrite64", "writev", "pwritev", "pwritev2"), writing.write),
    **dict.fromkeys(("sendfile", "copy_file_range", "splice"), copying.copy),
    **dict.fromkeys(("fsync", "fdatasync"), writing.sync_file),
    "ioctl": copying.clone,
    "ftruncate": writing.truncate_descriptor,
    "fallocate": writing.allocate,
}
_ON_PATH: dict[str, Callable[[Record, Caller, Call, list[int]], int | None]] = {
    **dict.fromkeys(("mkdir", "mkdirat"), naming.make_directory),
    **dict.fromkeys(("mknod", "mknodat"), naming.make_node),
    "bind": naming.bind_socket,
    **dict.fromkeys(("symlink", "symlinkat"), naming.make_symlink),
    **dict.fromkeys(("unlink", "rmdir", "unlinkat"), naming.remove),
    **dict.fromkeys(("link", "linkat"), naming.link),
    **dict.fromkeys(("rename", "renameat", "renameat2"), naming.rename),
    **dict.fromkeys(("sync", "syncfs"), writing.sync_all),
    "truncate": writing.truncate_path,
    **dict.fromkeys(("chmod", "fchmod", "fchmodat", "fchmodat2"), attributes.note_mode),
    **dict.fromkeys(("utime", "utimes", "futimesat", "utimensat"), attributes.note_times),
    **dict.fromkeys(("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr"), attributes.note_attribute),
    "mmap": blindness.note_mapping,
    "io_submit": blindness.note_aio,
}


class Recorder:
    """One loop over a job's calls, until nobody is left who could make one; ``elsewhere`` notes those that do not concern the directory."""

    def __init__(
        self,
        job: int,
        listener: int,
        *,
        record: Record,
        speech: Speech,
        calls: dict[int, Call],
        signals: int,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        self._listener, self._record, self._speech, self._calls, self._elsewhere = listener, record, speech, calls, elsewhere
        self._loop = Supervision(job, listener, answer_next=self._answer_next, signals=signals)
        self._clock = SystemClock()
        architecture = this_architecture()
        assert architecture is not None, "there is a filter"
        self._architecture = architecture

    def run(self) -> int:
        """Record until the job's first process and all it left have ended; returns the wait status of the first.

        Processes that outlive it by ``OUTLIVING_S`` are killed, whatever they have done to be nobody's, and the log says so.
        """
        while self._loop.status is None:
            self._loop.turn(None)
        self._turn_until(lambda: self._loop.is_deserted)
        if not self._loop.is_deserted:
            self._record.note_blind("foreign", f"processes outlived the job by {OUTLIVING_S:g} s and were not recorded any longer")
            self._turn_until(lambda: not end_children())
        self._finish(self._loop.status)
        return self._loop.status

    def _turn_until(self, is_so: Callable[[], bool]) -> None:
        deadline_s = self._clock.monotonic_s() + OUTLIVING_S
        while not is_so() and (left_s := deadline_s - self._clock.monotonic_s()) > 0:
            self._loop.turn(max(1, int(left_s * 1000)))

    def _finish(self, status: int) -> None:
        record = self._record
        record.log_closed()
        if self._elsewhere is not None:
            self._elsewhere.log()
        found = list(differences(record))
        for what, path, why in found[:DIFFERENCES_MAX]:
            record.note_blind(what, why, path=path)
        if len(found) > DIFFERENCES_MAX:
            record.note_blind("foreign", f"{len(found) - DIFFERENCES_MAX} more paths differ from what the calls that were seen have made")
        if os.WIFSIGNALED(status):
            record.log.append("end", signal=os.WTERMSIG(status))
        else:
            record.log.append("end", exit_code=os.WEXITSTATUS(status))

    def _answer_next(self) -> None:
        notification = seccomp.receive(self._listener)
        if notification is None:
            return
        if notification.audit == self._architecture.audit and notification.number in self._calls:
            self._answer(notification)
        else:
            self._refuse(notification)

    def _refuse(self, notification: Notification) -> None:
        """As a kernel without the call would, and say so: a job may not come through by that."""
        is_native = notification.audit == self._architecture.audit
        name = self._architecture.refused.get(notification.number, "") if is_native else ""
        self._record.note_refused(name or "calls of another instruction set", thread=notification.thread)
        seccomp.refuse(self._listener, notification.id, errno.ENOSYS)

    def _answer(self, notification: Notification) -> None:
        caller = Caller(notification, self._listener)
        try:
            result = self._perform(caller, self._calls[notification.number], notification.arguments)
        except ElsewhereError:
            self._record.staged.note(caller, self._calls[notification.number], notification.arguments)
            if self._elsewhere is not None:
                self._elsewhere.note(caller, self._calls[notification.number], notification.arguments)
            seccomp.let_go(self._listener, notification.id)
        except CallerGoneError:
            seccomp.let_go(self._listener, notification.id)
        except UnseenError as reason:
            self._record.note_blind("user", f"a process cannot be looked into: {reason}", thread=notification.thread)
            seccomp.let_go(self._listener, notification.id)
        except copying.NotYetError as pipe:
            self._answer_later(notification, caller, pipe.descriptor)
        except OSError as error:
            number = error.errno or errno.EIO
            self._give(notification, lambda: seccomp.refuse(self._listener, notification.id, number))
        else:
            if result is not None:
                self._give(notification, lambda: seccomp.answer(self._listener, notification.id, result))

    def _give(self, _notification: Notification, answer: Callable[[], bool]) -> None:
        """Give a call that was performed its result."""
        answer()

    def _answer_later(self, notification: Notification, caller: Caller, pipe: int) -> None:
        """Look again when there is something in a pipe; when the caller is killed meanwhile, nobody reads from it through us any more."""
        try:
            life = os.pidfd_open(caller.process)
        except (OSError, CallerGoneError):
            os.close(pipe)
            return

        def end() -> None:
            for descriptor in (pipe, life):
                self._loop.forget(descriptor)
                os.close(descriptor)

        def look_again() -> None:
            end()
            self._answer(notification)

        self._loop.watch(pipe, look_again)
        self._loop.watch(life, end)

    def _perform(self, caller: Caller, call: Call, arguments: list[int]) -> int | None:
        """The result of the call; None: nobody waits for it any more."""
        if call.name in _ON_FILE:
            number = as_int(arguments[call.descriptor])
            status = caller.stat(number)
            key = key_of(status)
            if call.kind == WRITE and self._speech.hears(key):
                return self._hear(caller, call, arguments, status=status)
            return _ON_FILE[call.name](self._record, caller, call, arguments, self._record.file_of(caller, status, number))
        if call.kind == OPEN:
            return opening.open_file(self._record, caller, call, arguments, self._listener)
        return _ON_PATH[call.name](self._record, caller, call, arguments)

    def _hear(self, caller: Caller, call: Call, arguments: list[int], *, status: os.stat_result) -> int:
        if key_of(status) == self._speech.events:
            return self._speech.take_event(caller, call, arguments)
        self._speech.take_text(caller, call, arguments, key_of(status))
        raise ElsewhereError
