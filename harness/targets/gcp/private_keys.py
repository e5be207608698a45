"""Private keys that are told over several lines of a log: what begins in one line and ends in another is masked in between."""

import re
from collections.abc import Hashable

from harness.targets.gcp.secrets import KEY_BEGIN, KEY_END, MASK, Secrets

LINES_MAX = 500
"""Of one key: one of 16,384 bits, and its headers, has less. A key that never ends does not mask a log for ever."""

_BODY = re.compile(r"[A-Za-z0-9+/=\\]+")
_HEADER = re.compile(r"[A-Z][A-Za-z\-]*: .*")
_PART = re.compile(r"[A-Za-z0-9+/=]{16,}")
"""Of a line that says more than the key: who writes a log may put a time, or a name, before each line."""


_LINE = re.compile(r"^(?P<kept>[ \t]*)(?=[^\n]*[a-z])(?=[^\n]*[A-Z])(?=[^\n]*[0-9+/])[A-Za-z0-9+/]{64}(?=[ \t\r]*$)", re.MULTILINE)
"""A line of a key on its own, as RFC 7468 has it: lines of a log come in any order, or one is missing. No digest in hexadecimal is one."""


class KeyLines:
    """Masks lines in their order; each source (a stream of one attempt) tells its own keys."""

    def __init__(self, secrets: Secrets) -> None:
        self._secrets = secrets
        self._left: dict[Hashable, int] = {}

    def redact(self, source: Hashable, text: str) -> str:
        """The next text of a source, of one line or several, without credentials."""
        if not self._left.get(source) and "PRIVATE KEY" not in text:
            return _LINE.sub(rf"\g<kept>{MASK}", self._secrets.redact(text))
        whole = self._secrets.redact(text)  # a key that begins and ends within it is gone
        lines = whole.split("\n")
        return "\n".join(self._line(source, line) for line in lines)

    def _line(self, source: Hashable, line: str) -> str:
        left = self._left.get(source, 0)
        if left:
            self._left[source] = left - 1
            end = KEY_END.search(line)
            if end is not None:
                self._left[source] = 0
                return MASK + self._line(source, line[end.end() :])
            line = self._inner(line)
        begin = KEY_BEGIN.search(line)
        if begin is not None:
            self._left[source] = LINES_MAX
            return f"{line[: begin.end()]}{MASK}"
        return line

    def _inner(self, line: str) -> str:
        bare = line.strip()
        if not bare:
            return line
        if _BODY.fullmatch(bare) or _HEADER.fullmatch(bare):
            return MASK
        return _PART.sub(MASK, line)
