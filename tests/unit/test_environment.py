"""Variables that hold for a while."""

import os

import pytest

from harness.environment import changed_environment


def test_what_was_there_before_is_there_again_however_it_ends(monkeypatch):
    monkeypatch.setenv("KEPT", "old")
    monkeypatch.setenv("THEIRS_HIDDEN", "here")
    monkeypatch.delenv("NEW", raising=False)
    before = dict(os.environ)

    def fail_meanwhile() -> None:
        with changed_environment({"KEPT": "other", "NEW": "1", "THEIRS_OWN": "2"}, hiding="THEIRS_"):
            assert {"KEPT": "other", "NEW": "1", "THEIRS_OWN": "2"}.items() <= os.environ.items()
            assert "THEIRS_HIDDEN" not in os.environ
            os.environ["NEW"] = "changed meanwhile"
            raise KeyError

    with pytest.raises(KeyError):
        fail_meanwhile()
    assert dict(os.environ) == before
