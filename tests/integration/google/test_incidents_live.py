"""Incidents read with Google's own client: from what it lists, and from the log of a project as it is now."""

import json
import subprocess
import sys
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from google.auth.credentials import AnonymousCredentials
from google.cloud import logging as cloud_logging

from harness.cli.reproduce import entries_asked_for
from harness.clock import SystemClock
from harness.emulator import Emulator
from harness.emulator.project import ProjectState
from harness.errors import UsageError
from harness.incidents import read_export, read_values
from harness.incidents.timestamps import NANOSECONDS, read_timestamp, write_timestamp
from harness.targets.gcp.log_reading import live_entries
from tests.unit.incidents.logs import as_lines, diagnosed, kinds
from tests.unit.incidents.test_written_exports import SHOWS, documents

PROJECT = "demo-project"
CLOUD_RUN = sorted(name for name in SHOWS if name.startswith("cloud-run"))
EXECUTIONS = {"cloud-run-out-of-memory.jsonl": "finetune-q2w9z", "cloud-run-never-resumed.jsonl": "pair-zz9k1"}


@pytest.fixture
def emulator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Emulator]:
    with Emulator(tmp_path / "emulator", projects=[ProjectState(name=PROJECT, number=7)]) as running:
        for name, value in running.endpoints.environment().items():
            monkeypatch.setenv(name, value)
        yield running


def lately(name: str) -> list[dict[str, object]]:
    """A written export as if it ended a minute ago: the service forgets after a month, and the client asks for a day."""
    entries = [dict(each) for each in documents(name) if isinstance(each, dict)]
    now_ns = int((SystemClock().utc() - timedelta(minutes=1)).timestamp()) * NANOSECONDS
    later_ns = now_ns - max(read_timestamp(str(each["timestamp"])) for each in entries)
    return [{**each, "timestamp": write_timestamp(read_timestamp(str(each["timestamp"])) + later_ns)} for each in entries]


def listed(emulator: Emulator) -> list[dict[str, object]]:
    """What the client's ``list_entries`` gives, by its own ``to_api_repr``."""
    options = {"api_endpoint": f"http://{emulator.endpoints.http}"}
    client = cloud_logging.Client(project=PROJECT, _use_grpc=False, client_options=options, credentials=AnonymousCredentials())
    try:
        return [entry.to_api_repr() for entry in client.list_entries(page_size=50)]
    finally:
        client._http.close()


@pytest.mark.parametrize("name", CLOUD_RUN)
def test_what_the_client_lists_is_diagnosed_like_the_export(name, emulator):
    emulator.log.append(lately(name))

    entries = json.loads(json.dumps(listed(emulator), default=str))

    assert len(entries) == len(documents(name))
    assert kinds(diagnosed(as_lines(entries))) == SHOWS[name]


@pytest.mark.parametrize("name", EXECUTIONS)
def test_the_log_of_a_project_is_read_by_execution(name, emulator):
    mine = lately(name)
    emulator.log.append(mine)
    for other in EXECUTIONS:
        if other != name:
            emulator.log.append(lately(other))
    writes = len(emulator.world.calls.writes())

    export = read_values(live_entries(project=PROJECT, execution=EXECUTIONS[name]))

    assert export.entries == read_export(as_lines(mine)).entries
    assert len(emulator.world.calls.writes()) == writes


def test_the_command_asks_the_project(emulator, tmp_path):
    emulator.log.append(lately("cloud-run-out-of-memory.jsonl"))
    command = [sys.executable, "-m", "harness", "reproduce", "--project", PROJECT, "--execution", "finetune-q2w9z"]

    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)

    assert done.returncode == 1, done.stderr
    assert "out-of-memory (seen): attempt 0 of task 0" in done.stdout


def test_no_credential_of_a_log_is_kept_of_an_incident(emulator, tmp_path):
    entries = lately("cloud-run-out-of-memory.jsonl")
    line = next(each for each in entries if "textPayload" in each)
    for number, text in enumerate(("password=planted-0", "-----BEGIN PRIVATE KEY-----", "planted1", "-----END PRIVATE KEY-----")):
        entries.append({**line, "insertId": f"planted-id-{number}", "textPayload": text})
    emulator.log.append(entries)
    command = [
        sys.executable,
        "-m",
        "harness",
        "reproduce",
        "--project",
        PROJECT,
        "--execution",
        EXECUTIONS["cloud-run-out-of-memory.jsonl"],
    ]

    done = subprocess.run([*command, "--json"], cwd=tmp_path, capture_output=True, check=False)

    kept = [path.read_bytes() for path in (tmp_path / "runs").rglob("*") if path.is_file()]
    assert any(b"[redacted]" in content for content in kept)
    for content in (done.stdout, done.stderr, *kept):
        assert b"planted-0" not in content
        assert b"planted1" not in content


def test_an_execution_of_which_the_log_has_nothing_is_said_to_and_how_others_are_found(emulator, tmp_path):
    emulator.log.append(lately("cloud-run-out-of-memory.jsonl"))

    with pytest.raises(UsageError) as refused:
        entries_asked_for("", project=PROJECT, execution="xyz")

    assert f"the log of project {PROJECT} has no entry of an execution 'xyz'; name another: `gcloud run jobs executions list" in str(
        refused.value
    )
