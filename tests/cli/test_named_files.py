"""Whatever the command line reads: what is no file, or has no end, is refused at once, and nothing is left."""

import os
from pathlib import Path

import pytest

from tests.cli.conftest import Command

COMMANDS = {
    "a-config": ("list", "--config", "named"),
    "a-job": ("explore", "--config", "named"),
    "a-scenario": ("run", "named.json"),
    "a-plan": ("run", "--target", "gcp", "--apply", "named"),
    "a-config-of-a-project": ("clean", "--target", "gcp", "--config", "named"),
    "faults": ("emulate", "--inject", "named", "--", "true"),
    "an-export": ("reproduce", "named"),
    "what-is-replayed": ("replay", "beside/scenario.json"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_no_file_holds_nobody_up(harness: Command, here: Path, command: str) -> None:
    (here / "beside").mkdir()
    for name in ("named", "named.json", "beside/scenario.json"):
        os.mkfifo(here / name)
    fifo = harness(*COMMANDS[command])
    for name in ("named", "named.json", "beside/scenario.json"):
        (here / name).unlink()
        (here / name).symlink_to("/dev/zero")
    zero = harness(*COMMANDS[command])

    for result in (fifo, zero):
        assert result.returncode == 64, result.stderr
        (said,) = result.stderr.splitlines()
        assert ("not a regular file" in said) or (command == "what-is-replayed" and "no run directory is named" in said)


def test_a_catalogue_that_is_no_file_is_not_imported(harness: Command, here: Path) -> None:
    os.mkfifo(here / "others.py")

    result = harness("list", "--catalogue", "others:CATALOGUE")

    assert result.returncode == 64
    assert "no module named others" in result.stderr


@pytest.mark.parametrize("command", ["a-config", "a-plan", "faults", "a-scenario"])
def test_what_is_larger_than_a_document_is_not_read_whole(harness: Command, here: Path, command: str) -> None:
    for name in ("named", "named.json"):
        with (here / name).open("wb") as file:
            file.truncate(1 << 40)

    result = harness(*COMMANDS[command])

    assert result.returncode == 64
    assert "larger than 64 MiB, which no document is" in result.stderr
