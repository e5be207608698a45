"""The line that runs a run again."""

import os
import shlex
import sys
from pathlib import Path

from harness.emulator.session import is_emulated_session
from harness.scenario import Scenario

EMULATED_TARGET = "gcp"
"""The one that has its services emulated."""


def replay_script(scenario: Scenario, *, target: str, seed: int, root: Path) -> str:
    """A shell script that replays the run it lies in: the same scenario, faults, target and seed, from its own ``scenario.json``.

    A run on an emulator that goes with it is made again on one of that kind.
    """
    python = shlex.quote(sys.executable)  # the one that has the harness: it need not be on the PATH of whoever replays
    options = f"--target {shlex.quote(target)} --seed {seed} --root {shlex.quote(str(root.resolve()))}"
    if target == EMULATED_TARGET and is_emulated_session(os.environ):
        options += " --emulator"
    line = f'exec {python} -m harness replay {options} "$here" "$@"'
    return f'#!/bin/sh\n# {scenario.name}\nhere=$(cd "$(dirname "$0")" && pwd) || exit 70\n{line}\n'
