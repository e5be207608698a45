"""Where a process is: a container is no machine."""

from pathlib import Path

import pytest

from harness import machine as room


@pytest.fixture
def id_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    found = tmp_path / "machine-id"
    found.write_text("0123456789abcdef0123456789abcdef\n")
    monkeypatch.setattr(room, "MACHINE_ID_PATH", found)
    monkeypatch.setattr(room, "pid_namespace", lambda: room.FIRST_PID_NAMESPACE)
    return found


def test_a_machine_is_known_by_a_word_that_does_not_tell_its_id(id_path):
    found = room.machine()
    assert found
    assert found not in id_path.read_text()
    assert room.machine() == found


def test_a_container_has_the_id_of_its_image_and_is_no_machine(id_path, monkeypatch):
    monkeypatch.setattr(room, "pid_namespace", lambda: "pid:[1]")
    assert room.machine() == ""


@pytest.mark.parametrize("text", ["", "uninitialized\n", None])
def test_a_machine_without_an_id_is_not_known(id_path, text):
    if text is None:
        id_path.unlink()
    else:
        id_path.write_text(text)
    assert room.machine() == ""
