"""What the plugin costs a pytest that selects no chaos test: it is loaded at every start of every test suite beside it."""

import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from benchmarks.figure import Effort, Figure, Goal, Measured, Row

START = Row(
    name="pytest-start", what="pytest start with the plugin, no chaos test selected", unit="ms more", goal=Goal(limit=60.0), decimals=0
)


def measure(effort: Effort) -> Mapping[str, Measured]:
    """Run an empty test file with the plugin and without, in turns, and take the difference of each pair."""
    differences: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        (directory / "test_empty.py").write_text("def test_nothing() -> None: ...\n", encoding="utf-8")
        (directory / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        for number in range(effort.rounds(25, 3)):
            without_first = number % 2 == 0
            first_s, second_s = (_run_s(directory, has_plugin=has) for has in (not without_first, without_first))
            differences.append(1000 * (second_s - first_s if without_first else first_s - second_s))
    return {START.name: Measured(differences)}


def _run_s(directory: Path, *, has_plugin: bool) -> float:
    switch = [] if has_plugin else ["-p", "no:harness"]
    begin_s = time.perf_counter()
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *switch, "test_empty.py"]
    subprocess.run(command, cwd=directory, stdout=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin_s


FIGURE = Figure(rows=(START,), measure=measure)
