"""The Docker engine: whose it may be, and what is said where none may be started."""

from pathlib import Path

import pytest

from harness.clock import ManualClock
from harness.errors import TargetUnavailableError
from harness.kind import engine
from harness.kind.engine import lacks_capability, start_engine, write_wrapper


@pytest.fixture(autouse=True)
def _silent_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path))
    monkeypatch.delenv("DOCKER_HOST", raising=False)
    monkeypatch.setattr(engine, "server_version", lambda: "")


def test_an_engine_that_answers_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(engine, "server_version", lambda: "20.10")

    start_engine(ManualClock(), said.append)

    assert said == ["a Docker engine answers: 20.10"]


def test_a_named_host_that_does_not_answer_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "tcp://elsewhere:2375")

    with pytest.raises(TargetUnavailableError, match="DOCKER_HOST is 'tcp://elsewhere:2375' and nothing answers there; correct it"):
        start_engine(ManualClock(), print)


def test_only_root_starts_an_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.os, "geteuid", lambda: 1000)

    with pytest.raises(TargetUnavailableError, match="only root may start one"):
        start_engine(ManualClock(), print)


def test_only_debian_gets_an_engine_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine.os, "geteuid", lambda: 0)
    monkeypatch.setattr(engine.shutil, "which", lambda _name: None)

    with pytest.raises(TargetUnavailableError, match="this is not Debian"):
        start_engine(ManualClock(), print)


@pytest.mark.parametrize(("bounding", "lacks"), [("000001ffffffffff", False), ("000001fffeffffff", True), ("0000000000000000", True)])
def test_the_capability_is_read_from_the_bounding_set(bounding: str, lacks: bool) -> None:
    assert lacks_capability(f"Name:\tx\nCapEff:\t000001ffffffffff\nCapBnd:\t{bounding}\n") is lacks


def test_the_wrapper_stands_alone(tmp_path: Path) -> None:
    wrapper = write_wrapper(tmp_path, "/usr/sbin/runc")

    assert wrapper.stat().st_mode & 0o111
    text = wrapper.read_text()
    assert text.startswith("#!/bin/sh\n")
    assert text.endswith('exec "/usr/sbin/runc" "$@"\n')
    assert f'-IS "{tmp_path}/runtime_wrapper.py" "/usr/sbin/runc" "$@"' in text
    assert "harness." not in (tmp_path / "runtime_wrapper.py").read_text()
