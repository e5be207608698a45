"""Lines for a person: on a terminal they break between words and go on indented; elsewhere each is one line, to be searched."""

import textwrap

from rich.console import Console
from rich.text import Text

WIDTH_MIN = 40
"""A terminal that is narrower breaks lines itself."""


def say_line(console: Console, text: str, *, style: str = "", indent: int = 0, head: Text | None = None) -> None:
    """Print a line.

    Args:
        console: Where.
        text: The line; names in it stay whole, to be copied.
        style: Of all of it.
        indent: Where it goes on.
        head: What stands before it in a style of its own.
    """
    begin = head.plain if head is not None else ""
    if console.is_terminal and console.width >= WIDTH_MIN:
        text = textwrap.fill(
            begin + text,
            width=console.width,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
            replace_whitespace=False,
            drop_whitespace=True,
        )[len(begin) :]
    console.print(Text.assemble(head or "", (text, style)), highlight=False, soft_wrap=True)
