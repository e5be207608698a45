"""The runner without its surroundings."""

from importlib import import_module

import pytest


@pytest.fixture(autouse=True)
def no_repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs here belong to no commit: asking for it takes a process, and a unit test takes none."""
    loop = import_module("harness.runner.play")  # not by `from`: the package has a function of that name
    monkeypatch.setattr(loop, "commit_of", lambda _root: "")
