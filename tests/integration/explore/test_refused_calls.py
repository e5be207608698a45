"""A job that insists on what cannot be followed is told so: its own words name a kernel that lacks it."""

import sys
from pathlib import Path

import pytest

from harness.errors import UsageError
from harness.explore.recipe import Recipe
from harness.explore.rehearsal import Recorder

INSISTS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall(ctypes.c_long(425), ctypes.c_long(1), ctypes.create_string_buffer(120)) < 0:
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
"""


@pytest.mark.parametrize(("code", "is_refused"), [(INSISTS, True), ("raise OSError(38, 'Function not implemented')", False)])
def test_that_it_is_the_recorder_who_refuses_it_is_said(tmp_path: Path, code: str, is_refused: bool) -> None:
    recorder = Recorder(place=tmp_path / "place", log_directory=tmp_path / "log", run_id="run-0")
    recipe = Recipe(command=(sys.executable, "-S", "-c", code), directory=str(tmp_path))

    with pytest.raises(UsageError, match="Function not implemented") as refused:
        recorder.run(recipe)

    assert ("the recorder cannot follow io_uring and refuses it: let the job do without" in str(refused.value)) is is_refused
