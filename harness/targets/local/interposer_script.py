"""Starts the supervisor as a file: ``python -P .../interposer_script.py``, else as ``-m harness.targets.local.interposer``.

A module is imported after its packages, and those of a target import all of it: 60 ms more before the job starts, three times what the
supervisor itself takes. So the packages are put in place empty.
"""

import sys
from types import ModuleType

import harness

for name in ("targets", "targets/local"):
    package = ModuleType(f"harness.{name.replace('/', '.')}")
    package.__path__ = [f"{harness.__path__[0]}/{name}"]
    sys.modules[package.__name__] = package

from harness.targets.local.interposer import main  # noqa: E402 - the packages come first

main(sys.argv[1:])
