"""What the log of an execution tells: patterns read what stands there, and nothing that looks like a credential is told."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from harness.history import LogLine, StepDone
from harness.targets.gcp.log_book import ENTRIES_NAME, LogBook
from harness.targets.gcp.log_reading import read_entry
from harness.targets.gcp.masking import Mask
from harness.targets.gcp.secrets import Secrets

PLACE = {"run.googleapis.com/task_index": "0", "run.googleapis.com/task_attempt": "0"}


def book_of(home: Path, pattern: str, secrets: Secrets | None = None) -> LogBook:
    launch: Any = SimpleNamespace(log_patterns={"step": pattern}, steps=200_000, epoch_s=0.0, logs_dir=home)
    return LogBook(launch=launch, secrets=secrets or Secrets())


def take(book: LogBook, text: str) -> tuple[LogLine, list[int]]:
    entry = {
        "logName": "projects/p/logs/run.googleapis.com%2Fstdout",
        "labels": PLACE,
        "insertId": text,
        "timestamp": "2026-01-01T00:00:00Z",
        "textPayload": text,
    }
    seen = read_entry(entry)
    assert seen is not None
    line, *events = book.take([(seen, {name: value for name, value in entry.items() if name != "insertId"})], 1e9)
    assert isinstance(line, LogLine)
    return line, [event.step for event in events if isinstance(event, StepDone)]


@pytest.mark.parametrize("text", ["loss_per_token:3.2|step:7", "loss/token=0.5/step=7", "secret=planted/step=7"])
def test_a_step_beside_what_looks_like_a_credential_is_read(tmp_path: Path, text: str):
    line, steps = take(book_of(tmp_path, r"step[:= _](?P<step>\d+)"), text)
    assert steps == [7]
    assert "[redacted]" in line.text
    assert "step" not in line.text
    assert line.is_masked


def test_what_is_told_of_a_line_is_masked_wherever_it_goes(tmp_path: Path):
    secret = "planted-without-a-known-form"
    book = book_of(tmp_path, r"step (?P<step>\d+)", Secrets([secret]))
    line, steps = take(book, f"step 7 with {secret}, password=hunter22")
    assert steps == [7]
    told = msgspec.json.encode(line).decode() + (tmp_path / ENTRIES_NAME).read_text()
    assert not [each for each in (secret, "hunter22") if each in told]
    assert line.is_masked


def test_what_no_part_is_masked_of_says_so(tmp_path: Path):
    line, _ = take(book_of(tmp_path, r"step (?P<step>\d+)"), "step 7")
    assert not line.is_masked
    assert Mask(Secrets()).of([line]) == [line]
    (masked,) = Mask(Secrets(["step 7"])).of([line])
    assert masked.is_masked
