"""Cuts a filter into tokens, each of which knows where it stands."""

import re
from dataclasses import dataclass

WORD, STRING, SIGN, END, BROKEN = "word", "string", "sign", "end", "broken"

_PATTERN = re.compile(
    r"""(?P<space>\s+|--[^\n]*)
      | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
      | (?P<sign>=~|!~|!=|<=|>=|[=<>:(),-])
      | (?P<word>[^\s"'()=<>!:,~\\-][^\s"'()=<>!:,~\\]*)
      | (?P<broken>.)""",
    re.VERBOSE | re.DOTALL,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "'": "'", "\\": "\\"}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of a filter.

    Attributes:
        kind: One of the constants of this module.
        text: As it is written.
        start: Its first character in the filter.
        line: From 1.
        column: From 0, as Google counts.
    """

    kind: str
    text: str
    start: int
    line: int
    column: int

    @property
    def end(self) -> int:
        """The character after its last."""
        return self.start + len(self.text)

    @property
    def value(self) -> str:
        """What it means: a quoted string without its quotes. An escape that is none keeps its backslash, as regular expressions want it."""
        if self.kind != STRING:
            return self.text
        return _ESCAPE.sub(lambda found: _ESCAPES.get(found[1], found[0]), self.text[1:-1])


def cut(text: str) -> list[Token]:
    """All tokens in order, with one ``END`` behind them; what is none of them is ``BROKEN``."""
    tokens: list[Token] = []
    line, line_start = 1, 0
    for found in _PATTERN.finditer(text):
        kind = found.lastgroup or BROKEN
        if kind != "space":
            tokens.append(Token(kind, found[0], found.start(), line, found.start() - line_start))
        if breaks := found[0].count("\n"):
            line, line_start = line + breaks, found.start() + found[0].rindex("\n") + 1
    return [*tokens, Token(END, "<EOF>", len(text), line, len(text) - line_start)]


def quote(text: str) -> str:
    """The text as a quoted string of a filter."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
