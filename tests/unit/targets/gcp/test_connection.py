"""Clients: where they talk to, and whose project they take."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.errors import TargetUnavailableError, UsageError
from harness.targets.gcp import connection
from harness.targets.gcp.connection import EmulatorAddresses, EmulatorGoneError, connect, emulator_addresses
from harness.targets.gcp.secrets import MASK, Secrets

EMULATED = {"HARNESS_GCP_EMULATOR": "grpc=127.0.0.1:4001,http=127.0.0.1:4002"}


def test_the_emulator_of_the_environment_is_found():
    assert emulator_addresses(EMULATED) == EmulatorAddresses(grpc="127.0.0.1:4001", http="127.0.0.1:4002")
    assert emulator_addresses({"HARNESS_GCP_EMULATOR": "http=localhost:2,grpc=[::1]:1"}) == EmulatorAddresses(
        grpc="[::1]:1", http="localhost:2"
    )
    assert emulator_addresses({}) is None


@pytest.mark.parametrize(
    "value",
    [
        "grpc=10.0.0.1:4001,http=127.0.0.1:4002",
        "grpc=127.0.0.1:4001,http=storage.googleapis.com:443",
        "grpc=127.0.0.1.example.com:1,http=127.0.0.1:2",
        "grpc=0.0.0.0:1,http=127.0.0.1:2",
        "grpc=127.0.0.1,http=127.0.0.1:2",
        "grpc=user@127.0.0.1:1,http=127.0.0.1:2",
    ],
)
def test_an_emulator_that_is_not_on_loopback_is_refused(value):
    with pytest.raises(UsageError, match="not a port on loopback"):
        connect("p", {"HARNESS_GCP_EMULATOR": value}, Secrets())


@pytest.mark.parametrize("value", ["127.0.0.1:4001", "grpc=127.0.0.1:1", "grpc=127.0.0.1:1,http=127.0.0.1:2,x=y"])
def test_an_emulator_that_cannot_be_read_is_refused(value):
    with pytest.raises(UsageError, match="write it as"):
        emulator_addresses({"HARNESS_GCP_EMULATOR": value})


def test_an_emulator_that_is_not_there_is_said_so_before_anything_is_asked(monkeypatch):
    monkeypatch.setattr(connection, "_takes_connections", lambda address: address == "127.0.0.1:4001")
    with pytest.raises(
        EmulatorGoneError, match=r"no emulator answers at grpc=127\.0\.0\.1:4001,http=127\.0\.0\.1:4002; is it still running\?"
    ):
        connect("our-project", EMULATED, Secrets())


def test_what_an_emulator_held_is_lost_when_it_goes(monkeypatch):
    listening = {"127.0.0.1:4001", "127.0.0.1:4002"}
    monkeypatch.setattr(connection, "_takes_connections", listening.__contains__)
    clients = connect("our-project", EMULATED, Secrets())
    try:
        assert clients.problem() == ""
        listening.clear()
        assert clients.problem() == "the emulator at grpc=127.0.0.1:4001,http=127.0.0.1:4002 is gone"
    finally:
        clients.close()


def test_clients_of_an_emulator_ask_nobody_for_credentials(monkeypatch):
    monkeypatch.setattr(connection, "_takes_connections", lambda _address: True)
    monkeypatch.setattr("google.auth.default", lambda **_: pytest.fail("credentials were asked for"))
    clients = connect("our-project", EMULATED, Secrets())
    try:
        assert clients.is_emulator
        assert clients.storage.project == "our-project"
        assert clients.storage._connection.API_BASE_URL == "http://127.0.0.1:4002"
        assert clients.instances.transport._host == "http://127.0.0.1:4002"
    finally:
        clients.close()


@pytest.fixture
def credentials(monkeypatch):
    """Application Default Credentials that come with a project of their own."""
    from google.auth.credentials import AnonymousCredentials

    found = AnonymousCredentials()
    found.token = "ya29-planted-but-of-no-known-form"
    monkeypatch.setattr("google.auth.default", lambda **_: (found, "project-of-gcloud"))
    return found


def test_the_project_that_comes_with_credentials_is_thrown_away(credentials, monkeypatch):
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "project-of-the-environment")
    clients = connect("our-project", {}, Secrets())
    try:
        assert clients.storage.project == "our-project"
    finally:
        clients.close()


def test_variables_of_other_tools_send_no_client_elsewhere(credentials, monkeypatch):
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", "http://127.0.0.1:9")
    monkeypatch.setenv("API_ENDPOINT_OVERRIDE", "http://127.0.0.1:9")
    clients = connect("our-project", {}, Secrets())
    try:
        assert clients.storage._connection.API_BASE_URL == connection.STORAGE_ENDPOINT
    finally:
        clients.close()


def test_the_token_that_is_held_is_never_told(credentials):
    secrets = Secrets()
    connect("our-project", {}, secrets).close()
    assert secrets.redact("sent ya29-planted-but-of-no-known-form") == f"sent {MASK}"


def test_a_token_that_the_client_renewed_by_itself_is_not_told_either(credentials):
    secrets = Secrets()
    connect("our-project", {}, secrets).close()
    credentials.token = "another-planted-form"
    assert secrets.redact("another-planted-form, ya29-planted-but-of-no-known-form") == f"{MASK}, {MASK}"
    credentials.token = "a-third-planted-form"
    assert secrets.redact("another-planted-form a-third-planted-form") == f"{MASK} {MASK}"


def test_without_credentials_it_says_what_to_do(monkeypatch, tmp_path: Path):
    from google.auth.exceptions import DefaultCredentialsError

    def none(**_: object) -> None:
        raise DefaultCredentialsError(
            "Your default credentials were not found; refresh_token=1//0gplanted-token. See https://cloud.google.com."
        )

    monkeypatch.setattr("google.auth.default", none)
    with pytest.raises(TargetUnavailableError, match="application-default login") as caught:
        connect("our-project", {}, Secrets())
    assert "planted" not in str(caught.value)
    assert "See https://cloud.google.com; run `gcloud" in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_nothing_of_google_is_imported_before_it_is_used():
    program = (
        "import sys, harness, harness.config, harness.targets, harness.cli.commands, harness.pytest_plugin\n"
        "from harness.targets.gcp import place, secrets, plan\n"
        "found = sorted(name for name in sys.modules if name.split('.')[0] in {'grpc', 'proto', 'requests'} or name.startswith('google.'))\n"
        "print(found)\n"
    )
    environment = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=True)
    assert done.stdout.strip() == "[]"
