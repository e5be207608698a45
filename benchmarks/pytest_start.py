"""What the plugin costs a pytest that selects no chaos test: it is loaded at every start of every test suite beside it."""

import resource
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from benchmarks.figure import Effort, Figure, Goal, Measured, Row

START = Row(
    name="pytest-start",
    what="pytest with the plugin and no chaos test selected, over one without the plugin, processor time",
    unit="ms more",
    goal=Goal(limit=60.0),
    decimals=0,
)


def measure(effort: Effort) -> Mapping[str, Measured]:
    """Run an empty test file with the plugin and without, in turns, and take the difference of each pair."""
    differences: list[float] = []
    with tempfile.TemporaryDirectory() as scratch:
        directory = Path(scratch)
        (directory / "test_empty.py").write_text("def test_nothing() -> None: ...\n", encoding="utf-8")
        (directory / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
        for number in range(effort.rounds(25, 3)):
            with_first = number % 2 == 0
            first_s, second_s = (_processor_s(directory, has_plugin=has) for has in (with_first, not with_first))
            differences.append(1000 * (first_s - second_s if with_first else second_s - first_s))
    return {START.name: Measured(differences)}


def _processor_s(directory: Path, *, has_plugin: bool) -> float:
    """What a start took: it reads and compiles and waits for nobody, so what others do on the machine does not count."""
    switch = [] if has_plugin else ["-p", "no:harness"]
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *switch, "test_empty.py"]
    before_s = _children_s()
    subprocess.run(command, cwd=directory, stdout=subprocess.DEVNULL, check=True)
    return _children_s() - before_s


def _children_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


FIGURE = Figure(rows=(START,), measure=measure)
