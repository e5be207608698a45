"""docs/emulator.md is run, docs/emulator-coverage.md is what is generated, and what it says to be spoken is answered."""

import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import grpc
import msgspec
import pytest
from google.rpc.code_pb2 import Code

from harness.emulator import Emulator, failures
from harness.emulator.control_documents import FaultDocument
from harness.emulator.coverage import CLIENTS, Coverage, coverage_of
from harness.emulator.coverage_page import coverage_page
from harness.emulator.measuring import measure_coverage
from harness.emulator.wire.routing import Routes
from tests.docs.pages import DOCS, matches, run_page

PAGE = (DOCS / "emulator.md").read_text(encoding="utf-8")
COVERAGE = (DOCS / "emulator-coverage.md").read_text(encoding="utf-8")
CALL_S_MAX = 30.0


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Emulators of commands are written down there."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(scope="module")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with Emulator(tmp_path_factory.mktemp("emulator")) as emulator:
        yield emulator


@pytest.fixture(scope="module")
def coverage(emulator: Emulator) -> Coverage:
    return measure_coverage(emulator)


# ---- the page --------------------------------------------------------------------------------------------------------


def test_what_the_page_shows_is_run(tmp_path):
    for line, expected, printed in run_page("emulator.md", tmp_path):
        assert matches(expected, printed), f"$ {line}\n{printed}"


def test_every_field_of_a_fault_is_told():
    rows = re.findall(r"^\| (`[a-z_`, ]+`) \|", PAGE.partition("## Faults of the services")[2].partition("\n## ")[0], re.MULTILINE)

    assert {name for row in rows for name in re.findall(r"`(\w+)`", row)} == {*FaultDocument.__struct_fields__} - {"matched"}


def test_every_error_that_is_named_can_be_made():
    named = re.search(r"made by `harness.emulator.failures`: (.*?);", PAGE, re.DOTALL)

    assert named is not None
    for name in re.findall(r"`(\w+)`", named[1]):
        assert callable(getattr(failures, name))


def test_every_route_of_the_emulator_itself_is_told(emulator: Emulator):
    table = PAGE.partition("## Said to the emulator itself")[2].partition("\n## ")[0]
    control = Routes([route for service in emulator.services for route in service.routes() if route.is_control])
    told = set()
    for verb, path in [*re.findall(r"`(GET|POST|DELETE) ([^`?]+)[`?]", table), ("GET", "injections"), ("DELETE", "injections")]:
        found = control.find(verb, f"/_emulator/v1/{path}")
        assert found is not None, path
        told.add(found[0].name)

    assert told == {name for name in emulator.route_names() if name.startswith("emulator.")}


# ---- its tables ------------------------------------------------------------------------------------------------------


def test_the_coverage_page_is_what_is_generated(coverage: Coverage):
    assert coverage_page(coverage) == COVERAGE, "write it anew: harness emulate --coverage > docs/emulator-coverage.md"


def test_the_command_prints_the_page():
    printed = subprocess.run([sys.executable, "-m", "harness", "emulate", "--coverage"], capture_output=True, text=True, check=True).stdout

    assert printed == COVERAGE


def test_every_method_of_the_clients_is_counted_once(coverage: Coverage):
    assert len({(row.client, row.service, row.method) for row in coverage.methods}) == len(coverage.methods) > 1000
    for client in CLIENTS:
        assert not any(row.is_covered for row in coverage_of(client, ()))
        assert any(row.is_covered for row in coverage.methods if row.client == client)


def test_every_method_that_is_spoken_over_grpc_is_of_a_client(emulator: Emulator, coverage: Coverage):
    assert emulator.method_names() <= {f"{row.service}/{row.method}" for row in coverage.methods if row.is_covered}


def test_what_is_listed_as_spoken_is_answered_and_nothing_else_is(emulator: Emulator, coverage: Coverage):
    rows = [row for row in coverage.methods if row.client != "compute_v1"]
    with grpc.insecure_channel(emulator.endpoints.grpc) as channel:
        answered = {(row.service, row.method): code_of(channel, f"/{row.service}/{row.method}") for row in rows}

    assert Code.UNIMPLEMENTED not in {answered[row.service, row.method] for row in rows if row.is_covered}
    assert {answered[row.service, row.method] for row in rows if not row.is_covered} == {Code.UNIMPLEMENTED}


def code_of(channel: grpc.Channel, method: str) -> int:
    """What a method answers to an empty request, whether it streams or not."""
    call = channel.stream_stream(method, request_serializer=None, response_deserializer=None)(iter([b""]), timeout=CALL_S_MAX)
    try:
        next(call)
        call.cancel()
    except StopIteration:
        pass
    except grpc.RpcError as error:
        return error.code().value[0]
    return Code.OK


def test_every_route_that_is_listed_is_answered(emulator: Emulator, coverage: Coverage):
    routes = {route.name: route for service in emulator.services for route in service.routes()}
    listed = [name for name in routes if f"`{name.removeprefix('emulator.')}`" in COVERAGE or name.startswith("compute.")]
    assert sorted(listed) == sorted(routes)
    for name in listed:
        status, text = answer_of(emulator, routes[name].verb, re.sub(r"\{\w+(=\*\*)?\}", "nothing", routes[name].pattern))
        assert status != 501, name
        assert "Method not found" not in text, name


def answer_of(emulator: Emulator, verb: str, path: str) -> tuple[int, str]:
    """What an address answers to an empty request."""
    request = urllib.request.Request(f"http://{emulator.endpoints.http}{path}", method=verb, data=b"{}" if verb != "GET" else None)
    try:
        with urllib.request.urlopen(request, timeout=CALL_S_MAX) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def test_a_method_of_cloud_storage_fails_only_where_nothing_speaks_it(emulator: Emulator, coverage: Coverage):
    done = [row for row in coverage.storage if not row.problem]
    failed = [row for row in coverage.storage if row.problem]

    assert len(done) > len(failed)
    assert all(row.calls and set(row.calls) <= emulator.route_names() for row in done)
    assert all(row.problem == "NotFound" and row.calls[-1] not in emulator.route_names() for row in failed)


def test_coverage_is_for_machines_too():
    printed = subprocess.run(
        [sys.executable, "-m", "harness", "emulate", "--coverage", "--json"], capture_output=True, text=True, check=True
    ).stdout

    assert msgspec.json.decode(printed, type=Coverage).methods
