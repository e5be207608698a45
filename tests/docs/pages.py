"""Pages of the manual, as blocks that can be run.

A fenced block follows a comment that says what it is: ``file: NAME`` (written before anything is run), ``run`` (commands with their
output), ``toml``, ``scenario`` (documents that must validate), ``copy: PATH`` (equals a file below docs/), ``by hand`` (what no test can
afford).
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"

COMMAND_TIMEOUT_S = 240.0
"""The longest takes 15 s on an idle machine."""

_BLOCK = re.compile(
    r"(?:<!-- (?P<what>[a-z ]+)(?:: (?P<name>\S+))? -->\n)?```(?P<language>[a-z]+)\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE
)
_PRIVATE = ("HARNESS_", "CLOUD_RUN_", "PYTEST_")

ANY_LINES = "…"


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block; ``what`` is empty where no comment stands before it."""

    what: str
    name: str
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Command:
    """A line after a ``$``, and what it prints."""

    line: str
    output: str


def blocks_of(page: str) -> list[Block]:
    """The blocks of a page, in order."""
    text = (DOCS / page).read_text(encoding="utf-8")
    return [Block(found["what"] or "", found["name"] or "", found["language"], found["text"]) for found in _BLOCK.finditer(text)]


def files_of(page: str) -> dict[str, str]:
    """The files that a page shows."""
    return {block.name: block.text for block in blocks_of(page) if block.what == "file"}


def commands_in(block: Block) -> Iterator[Command]:
    """The commands of a console block."""
    for part in re.split(r"^\$ ", block.text, flags=re.MULTILINE)[1:]:
        line, _, output = part.partition("\n")
        yield Command(line, output)


def run_page(page: str, directory: Path, *, files: Sequence[dict[str, str]] = ()) -> list[tuple[str, str, str]]:
    """Write a page's files, run its commands one after another, and return each with what it should print and what it did, as patterns."""
    for name, text in [pair for group in (*files, files_of(page)) for pair in group.items()]:
        (directory / name).write_text(text, encoding="utf-8")
    ran = [command for block in blocks_of(page) if block.what == "run" for command in commands_in(block)]
    return [(command.line, plain(command.output), plain(run(command.line, directory))) for command in ran]


def run(line: str, directory: Path) -> str:
    """Run a command line as a reader would, and return all that it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(_PRIVATE)}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment.get("PATH", os.defpath)])
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=directory,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=COMMAND_TIMEOUT_S,
        check=False,
        text=True,
    )
    return done.stdout.replace(f"{directory.resolve()}/", "")


def plain(output: str) -> str:
    """Output without what differs from run to run: numbers, digests, the names of runs, the width of the terminal."""
    output = re.sub(r"\d{8}T\d{6}\.\d{3}Z-\d+", "RUN", output)
    output = re.sub(r"\b[0-9a-f]{16}\b", "DIGEST", output)
    output = re.sub(r"\d+ ms\b", "0.1 s", output)  # what a faster machine says of the same
    output = re.sub(r"\d+(\.\d+)?", "N", output)
    output = re.sub(r"={3,}", "===", output)
    return "\n".join(" ".join(line.split()) for line in output.strip().splitlines())


def matches(expected: str, printed: str) -> bool:
    """Whether what was printed is what a page shows; a line ``…`` stands for any lines."""
    parts = ["(?:.*\n)*?" if line == ANY_LINES else re.escape(line) + "\n" for line in expected.splitlines()]
    return re.fullmatch("".join(parts), f"{printed}\n" if printed else "") is not None
