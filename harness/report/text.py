"""Text that others wrote, made fit to be shown: control characters do not act, nothing is endless, only web addresses become links."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

TEXT_MAX = 2000
"""Characters of one piece of text; a reader sees more only in the file itself."""

LINE_MAX = 600
"""Characters of one line of a log or of evidence."""

_COLOURS = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_])")
"""Escape sequences of terminals: colours, titles, cursor movements."""

_DIRECTIONS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Characters that reorder what follows them: a line could show other words than it holds."""

_VISIBLE: dict[int, str] = {
    **{code: chr(0x2400 + code) for code in range(0x20) if code not in (0x09, 0x0A)},
    0x7F: "\u2421",
    **dict.fromkeys((*range(128, 160), *range(55296, 57344), 65534, 65535), "�"),
    **{code: f"\u27e8U+{code:04X}\u27e9" for code in _DIRECTIONS},
}

_LINK = re.compile(r"https?://[^\s<>\"'()]+[^\s<>\"'().,;:!?]")


class Whole(str):
    """Text of our own making that is shown to its last character."""

    __slots__ = ()


def clean(text: str, limit: int = TEXT_MAX) -> str:
    """Text without escape sequences, its control characters made visible, cut to ``limit`` characters with its true length said."""
    if isinstance(text, Whole):
        return text.translate(_VISIBLE)
    shown = _COLOURS.sub("", text[: limit + TEXT_MAX]).translate(_VISIBLE)
    if len(text) <= limit or (len(text) <= limit + TEXT_MAX and len(shown) <= limit):
        return shown
    return f"{shown[:limit]}… ({len(text):,} characters)"


def line(text: str) -> str:
    """A text as one line."""
    return clean(text.rstrip("\r\n").replace("\n", "\u240a"), LINE_MAX)


@dataclass(frozen=True, slots=True)
class Piece:
    """Part of a text; ``url`` is empty where it is no link."""

    text: str
    url: str = ""


def links(text: str) -> tuple[Piece, ...]:
    """A text cut into plain pieces and web addresses."""
    return tuple(_pieces(clean(text)))


def _pieces(text: str) -> Iterator[Piece]:
    begin = 0
    for match in _LINK.finditer(text):
        if match.start() > begin:
            yield Piece(text[begin : match.start()])
        yield Piece(match.group().partition("://")[2], url=match.group())
        begin = match.end()
    if begin < len(text):
        yield Piece(text[begin:])


def codes(text: str) -> tuple[tuple[str, bool], ...]:
    """A text cut into pieces, each with whether it is code: what stands between backticks."""
    pieces = clean(text).split("`")
    if len(pieces) % 2 == 0:
        pieces[-2:] = ["`".join(pieces[-2:])]  # the last one closes nothing
    return tuple((piece, bool(number % 2)) for number, piece in enumerate(pieces) if piece)
