"""Starts the supervisor as a file: ``python -P .../interposer_script.py``, else as ``-m harness.targets.local.interposer``.

A module is imported after its packages, and those of a target import all of it: 60 ms more before the job starts, three times what the
supervisor itself takes. So the packages are put in place empty, by where this file lies: the interpreter need not have them installed.
"""

import os.path
import sys
from types import ModuleType

folder = os.path.abspath(__file__)  # noqa: PTH100 - pathlib would cost a tenth of the start
for name in ("harness.targets.local", "harness.targets", "harness"):
    folder = os.path.dirname(folder)  # noqa: PTH120 - likewise
    package = ModuleType(name)
    package.__path__ = [folder]
    sys.modules[name] = package

from harness.targets.local.interposer import main  # noqa: E402 - the packages come first

main(sys.argv[1:])
