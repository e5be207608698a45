"""The runtime wrapper takes one capability out of what the runtime reads, and changes nothing else."""

import json
from pathlib import Path

import pytest

from harness.kind.runtime_wrapper import prepare, value_of, without_capability

PROCESS = {
    "args": ["sh"],
    "capabilities": {"bounding": ["CAP_KILL", "CAP_SYS_RESOURCE"], "effective": ["CAP_SYS_RESOURCE"], "ambient": None},
}
STRIPPED = {"args": ["sh"], "capabilities": {"bounding": ["CAP_KILL"], "effective": [], "ambient": []}}


@pytest.mark.parametrize(
    "arguments",
    [["--root", "/r", "create", "--bundle", "B"], ["--bundle=B", "run"], ["create", "-b", "B", "id"], ["create", "--bundle=B", "id"]],
)
def test_a_new_container_is_edited_in_its_bundle(tmp_path: Path, arguments: list[str]) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"ociVersion": "1.0.2", "process": PROCESS, "root": {"path": "rootfs"}}))

    prepare([argument.replace("B", str(tmp_path)) for argument in arguments])

    assert json.loads(config.read_text()) == {"ociVersion": "1.0.2", "process": STRIPPED, "root": {"path": "rootfs"}}


def test_the_bundle_is_the_current_directory_when_none_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps({"process": PROCESS}))
    monkeypatch.chdir(tmp_path)

    prepare(["create", "id"])

    assert json.loads(config.read_text()) == {"process": STRIPPED}


def test_an_exec_is_edited_in_its_process_file(tmp_path: Path) -> None:
    process = tmp_path / "process.json"
    process.write_text(json.dumps(PROCESS))

    prepare(["exec", "--process", str(process), "id"])

    assert json.loads(process.read_text()) == STRIPPED


@pytest.mark.parametrize("arguments", [["exec", "id", "sh"], ["state", "id"], ["kill", "id", "9"], []])
def test_what_reads_no_specification_is_left_alone(arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    prepare(arguments)

    assert list(tmp_path.iterdir()) == []


def test_a_process_without_capabilities_stays_as_it_is() -> None:
    assert without_capability({"args": ["sh"]}) == {"args": ["sh"]}


def test_an_option_without_its_value_is_no_option() -> None:
    assert value_of(["create", "--bundle"], "--bundle") is None
