"""A line breaks between words on a terminal, and nowhere else."""

import io

import pytest
from rich.console import Console
from rich.text import Text

from harness.cli.wrapping import say_line

LINE = "adopt bucket a-name-that-is-copied-whole-and-is-longer-than-the-terminal-is-wide and what is known of it"


def printed(width: int, *, is_terminal: bool = True, **options: object) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=is_terminal, color_system=None)
    say_line(console, LINE, **options)  # type: ignore[arg-type]
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_on_a_terminal_it_goes_on_indented_and_names_stay_whole():
    assert printed(40, indent=4) == [
        "adopt bucket",
        "    a-name-that-is-copied-whole-and-is-longer-than-the-terminal-is-wide",
        "    and what is known of it",
    ]


def test_what_stands_before_it_counts_for_the_width():
    assert printed(80, indent=8, head=Text("invalid "))[0] == "invalid adopt bucket"
    assert printed(200, head=Text("valid   ")) == [f"valid   {LINE}"]


@pytest.mark.parametrize(("width", "is_terminal"), [(40, False), (20, True)])
def test_in_a_file_and_on_what_is_too_narrow_it_is_one_line(width: int, is_terminal: bool):
    assert printed(width, is_terminal=is_terminal, indent=4) == [LINE]
