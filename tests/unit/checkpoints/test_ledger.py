"""The ledger names every file, and reads back as it was written."""

import hashlib
import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.checkpoints import ManifestEntry, ledger, manifest, read_manifest, write_manifest
from harness.errors import StoreError

ENTRIES = st.lists(
    st.builds(
        ManifestEntry,
        path=st.text(st.characters(exclude_categories=["Cs"])),
        size_bytes=st.integers(0, 2**63 - 1),
        sha256=st.text("0123456789abcdef-"),
    )
)


def test_every_file_is_named_in_the_order_of_its_path(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "x").write_bytes(b"1")
    (tmp_path / "a").write_bytes(b"22")
    (tmp_path / "latest").symlink_to("b")
    os.mkfifo(tmp_path / "fifo")

    entries = manifest(tmp_path)

    assert [(entry.path, entry.size_bytes) for entry in entries] == [("a", 2), ("b/x", 1), ("fifo", 0), ("latest", 0)]
    assert entries[0].sha256 == hashlib.sha256(b"22").hexdigest()
    assert entries[2].sha256 == "special-p"
    assert entries[3].sha256.startswith("link-")


def test_a_directory_that_is_gone_has_an_empty_ledger(tmp_path: Path) -> None:
    assert manifest(tmp_path / "gone") == ()


def test_a_file_that_vanishes_while_the_ledger_is_made_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"1")
    fingerprint = ledger.fingerprint

    def vanish(path: Path, status: os.stat_result, budget: ledger.Budget) -> tuple[int, str]:
        (tmp_path / "b").unlink(missing_ok=True)
        return fingerprint(path, status, budget)

    monkeypatch.setattr(ledger, "fingerprint", vanish)

    assert [entry.path for entry in manifest(tmp_path)] == ["a"]


def test_a_file_that_never_stands_still_is_named_without_a_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_bytes(b"1")

    def change(path: Path, status: os.stat_result, budget: ledger.Budget) -> tuple[int, str]:
        raise OSError("changed while it was read")

    monkeypatch.setattr(ledger, "fingerprint", change)

    assert manifest(tmp_path) == (ManifestEntry(path="a", size_bytes=1, sha256=""),)


@settings(deadline=None, max_examples=25)
@given(ENTRIES)
def test_a_ledger_reads_back_as_it_was_written(entries: list[ManifestEntry]) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "checkpoints.manifest"
        write_manifest(path, entries)

        assert read_manifest(path) == tuple(entries)
        assert [file.name for file in path.parent.iterdir()] == ["checkpoints.manifest"]


def test_names_that_are_no_utf8_survive_in_the_ledger(tmp_path: Path) -> None:
    (tmp_path / "held").mkdir()
    (tmp_path / "held" / os.fsdecode(b"w\xff")).write_bytes(b"1")

    write_manifest(tmp_path / "ledger", manifest(tmp_path / "held"))

    assert read_manifest(tmp_path / "ledger")[0].path == "w\\xff"


def test_a_line_that_is_no_entry_is_named(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    write_manifest(path, [ManifestEntry(path="a", size_bytes=1, sha256="0")])
    path.write_bytes(path.read_bytes() + b'{"path": 3}\n')

    with pytest.raises(StoreError, match=r"read the content ledger .*line 2: ") as raised:
        read_manifest(path)
    assert raised.value.path == path


def test_a_ledger_that_cannot_be_written_or_read_is_an_error_of_the_store(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="write the content ledger"):
        write_manifest(tmp_path / "gone" / "ledger", [])
    with pytest.raises(StoreError, match="read the content ledger"):
        read_manifest(tmp_path / "gone")
