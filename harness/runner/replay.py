"""The line that runs a run again."""

import shlex
from pathlib import Path

from harness.scenario import Scenario


def replay_script(scenario: Scenario, *, target: str, seed: int, root: Path) -> str:
    """A shell script that replays the run it lies in: the same scenario, faults, target and seed, from its own ``scenario.json``."""
    line = f'exec harness replay --target {shlex.quote(target)} --seed {seed} --root {shlex.quote(str(root.resolve()))} "$here" "$@"'
    return f'#!/bin/sh\n# {scenario.name}\nhere=$(cd "$(dirname "$0")" && pwd) || exit 70\n{line}\n'
