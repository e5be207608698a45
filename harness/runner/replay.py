"""The line that runs a run again."""

import shlex
import sys
from pathlib import Path

from harness.scenario import Scenario


def replay_script(scenario: Scenario, *, target: str, seed: int, root: Path) -> str:
    """A shell script that replays the run it lies in: the same scenario, faults, target and seed, from its own ``scenario.json``."""
    python = shlex.quote(sys.executable)  # the one that has the harness: it need not be on the PATH of whoever replays
    options = f"--target {shlex.quote(target)} --seed {seed} --root {shlex.quote(str(root.resolve()))}"
    line = f'exec {python} -m harness replay {options} "$here" "$@"'
    return f'#!/bin/sh\n# {scenario.name}\nhere=$(cd "$(dirname "$0")" && pwd) || exit 70\n{line}\n'
