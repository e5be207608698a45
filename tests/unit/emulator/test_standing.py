"""Emulators that stand are written down, and what is left of dead ones is known."""

from pathlib import Path

import msgspec
import pytest

from harness.emulator import standing as room
from harness.emulator.standing import Standing, dead_ones, forget, standing, standing_directory
from harness.errors import StoreError, UsageError
from harness.machine import boot_id
from harness.undo import ProcessId

NOBODY = ProcessId(pid=2**22 + 1, started_s=1.0, boot_id=boot_id())


@pytest.fixture(autouse=True)
def places(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(room.tempfile, "gettempdir", lambda: str(tmp_path))


def written():
    return sorted(standing_directory().glob("*"))


def killed(found: Standing, **owner) -> Standing:
    """As if its process were gone."""
    changed = msgspec.structs.replace(found, owner=msgspec.structs.replace(found.owner, process=NOBODY, **owner))
    (standing_directory() / f"{found.owner.run_id}.json").write_bytes(msgspec.json.encode(changed))
    return changed


def test_a_temporary_root_is_ours_alone_and_goes_with_the_emulator(tmp_path):
    with standing(None) as found:
        assert (found.is_temporary, found.root.parent, found.root.stat().st_mode & 0o777) == (True, tmp_path, 0o700)
        assert written() == [standing_directory() / f"{found.owner.run_id}.json"]

    assert not found.root.exists()
    assert written() == []


def test_a_root_that_is_named_stays(tmp_path):
    with standing(tmp_path / "deep/kept") as found:
        (found.root / "file").touch()

    assert (found.root / "file").exists()
    assert written() == []


def test_a_root_is_had_by_one_and_then_by_the_next(tmp_path):
    with standing(tmp_path / "kept"), pytest.raises(UsageError, match="another emulator has"), standing(tmp_path / "kept"):
        pass
    with standing(tmp_path / "kept"):
        assert len(written()) == 1
    assert written() == []


@pytest.mark.parametrize(("first", "second"), [("rr", "rr/buckets"), ("rr/deep", "rr")])
def test_emulators_lie_beside_one_another(tmp_path, first, second):
    with standing(tmp_path / first), pytest.raises(UsageError, match="overlaps with it"), standing(tmp_path / second):
        pass
    with standing(tmp_path / second):
        assert len(written()) == 1
    assert not (tmp_path / second / "buckets" / "emulator.lock").exists()


def test_one_that_is_dead_has_nothing(tmp_path):
    with standing(tmp_path / "rr") as first:
        killed(first)
        with standing(tmp_path / "rr/buckets"):
            pass


def test_the_root_of_the_file_system_is_nobodys():
    with pytest.raises(UsageError, match="the root of the file system"), standing(Path("/")):
        pass
    assert written() == []


def test_who_fails_leaves_nothing_and_who_is_interrupted_leaves_it_to_clean():
    with pytest.raises(LookupError), standing(None) as failed:
        raise LookupError
    assert (failed.root.exists(), written()) == (False, [])

    with pytest.raises(KeyboardInterrupt), standing(None) as interrupted:
        raise KeyboardInterrupt
    assert interrupted.root.exists()
    assert len(written()) == 1


def test_a_root_that_cannot_be_removed_stays_written_down_and_hides_no_error(monkeypatch):
    def refuse(path):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(room.shutil, "rmtree", refuse)
    with pytest.raises(StoreError, match="Operation not permitted"), standing(None):
        pass
    with pytest.raises(LookupError) as caught, standing(None):
        raise LookupError
    assert "Operation not permitted" in caught.value.__notes__[0]
    assert len(written()) == 2


def test_only_dead_emulators_of_this_machine_are_anybody_s(tmp_path):
    with standing(None) as living, standing(tmp_path / "kept") as other:
        assert dead_ones() == []
        killed(other, host="elsewhere")
        assert dead_ones() == []
        dead = killed(other)
        (standing_directory() / "broken.json").write_text("{")
        assert dead_ones() == [dead]
        assert living.root.exists()


def test_its_processes_carry_its_own_id_or_that_of_an_execution():
    with standing(None) as found:
        assert found.run_ids() == [found.owner.run_id]
        for name in ("b", "a"):
            (found.root / "executions" / name).mkdir(parents=True)
        assert found.run_ids() == [found.owner.run_id, "a", "b"]


def test_forgetting_twice_is_harmless():
    with standing(None) as found:
        pass
    forget(found)
    assert written() == []
