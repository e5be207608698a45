"""Starts the recorder as a file: ``python -P .../recorder_script.py``.

As with the storage supervisor, the packages are put in place empty, by where this file lies: nothing but the recorder is imported, and the
interpreter need not have them installed.
"""

import os.path
import sys
from types import ModuleType

folder = os.path.abspath(__file__)  # noqa: PTH100 - pathlib would cost a tenth of the start
for name in ("harness.supervision", "harness"):
    folder = os.path.dirname(folder)  # noqa: PTH120 - likewise
    package = ModuleType(name)
    package.__path__ = [folder]
    sys.modules[name] = package

from harness.supervision.recorder.command_line import main  # noqa: E402 - the packages come first

main(sys.argv[1:])
