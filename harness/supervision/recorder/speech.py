"""What the job says: lines of its event file, and text on the standard output and error that it was started with."""

import os
import stat

from harness.supervision.recorder.caller import CHUNK_SIZE, Caller
from harness.supervision.recorder.native import as_int
from harness.supervision.recorder.nodes import Key, key_of
from harness.supervision.recorder.operation_log import as_text
from harness.supervision.recorder.record import Record
from harness.supervision.recorder.writing import Writing, taken
from harness.supervision.syscalls import Call

_STREAMS = {1: "stdout", 2: "stderr"}


class Speech:
    """Knows the event file and the two streams by their inode, through whichever descriptor they are written to.

    Seen are ``write`` and ``writev`` and their relatives; text that is spliced into a stream is not.
    """

    def __init__(self, record: Record, events: str) -> None:
        """Raises OSError when the event file cannot be made."""
        self._record = record
        descriptor = os.open(events, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
        self.events: Key = key_of(os.fstat(descriptor))
        os.close(descriptor)
        self._streams = {key_of(os.fstat(number)): name for number, name in reversed(_STREAMS.items()) if _tells_someone(number)}
        self._unfinished: dict[int, bytes] = {}

    def hears(self, key: Key) -> bool:
        """Whether it is the event file or one of the streams."""
        return key == self.events or key in self._streams

    def take_event(self, caller: Caller, call: Call, arguments: list[int]) -> int:
        """Write to the event file for the caller, and log each line that is whole now."""
        said = bytearray(self._unfinished.pop(caller.process, b""))
        with taken(caller, as_int(arguments[0])) as descriptor:
            total, _ = Writing(caller, call, arguments).perform(caller, descriptor, said.extend)
        *lines, rest = bytes(said).split(b"\n")
        if rest:
            self._unfinished[caller.process] = rest
        for line in lines:
            if line.strip():
                self._record.note("event", caller, line=as_text(line))
        return total

    def take_text(self, caller: Caller, call: Call, arguments: list[int], key: Key) -> None:
        """Log the text, before it is on its way: a stream may have to wait for its reader, and so would all the job with us.

        A stream takes text at any moment between this call and the next one of this thread, so nothing is claimed that could not be.
        """
        segments = Writing(caller, call, arguments).segments
        text = bytearray()
        for chunk in caller.chunks(segments):
            text += chunk
            if len(text) >= CHUNK_SIZE:
                break
        number = as_int(arguments[0])
        stream = _STREAMS[number] if number in _STREAMS and self._is_ambiguous() else self._streams[key]
        if text:
            self._record.note("print", caller, stream=stream, text=as_text(bytes(text)))

    def _is_ambiguous(self) -> bool:
        """Whether both streams are one file: then the descriptor's number tells which is meant."""
        return len(self._streams) == 1


def _tells_someone(descriptor: int) -> bool:
    """Whether it is a pipe, a socket, a file or a terminal; what goes to ``/dev/null`` is told to nobody."""
    try:
        mode = os.fstat(descriptor).st_mode
    except OSError:  # closed
        return False
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or stat.S_ISREG(mode) or os.isatty(descriptor)
