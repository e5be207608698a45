"""What is cleaned, and what is left to others."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from harness.cli.cleaning import clean
from harness.clock import Clock, SystemClock
from harness.errors import BrokenHarnessError, TargetUnavailableError, UndoError
from harness.store import RunDirectory, RunStore
from harness.targets import perform
from harness.undo import KillProcesses, ProcessId, RestoreCluster, RestoreQuota, Undo, identify


@pytest.fixture
def process() -> Iterator["subprocess.Popen[bytes]"]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process
        process.kill()


@pytest.fixture
def run(tmp_path: Path, process: "subprocess.Popen[bytes]") -> RunDirectory:
    """A run whose owner is gone and that owes the end of a process."""
    directory, _ = RunStore(tmp_path, SystemClock()).create("a-job-is-hit", 0)
    directory.undo.owe("1-overlap-attempts@0", KillProcesses(processes=identify([process.pid])))
    own(directory)
    return directory


def own(directory: RunDirectory, **fields: str) -> None:
    owner = directory.owner()
    assert owner is not None
    gone = ProcessId(pid=owner.process.pid, started_s=owner.process.started_s - 1000.0, boot_id=owner.process.boot_id)
    directory.write(directory.owner_path, msgspec.json.encode(msgspec.structs.replace(owner, process=gone, **fields)))


def test_what_a_dead_run_owes_is_done(tmp_path, run, process):
    assert clean(tmp_path, SystemClock()) == [f"{run.name}: 1-overlap-attempts@0: SIGKILL to 1 processes"]
    assert process.wait(timeout=60) == -9
    assert not run.undo.owed()


def test_a_run_of_another_machine_is_left_alone_and_named(tmp_path, run, process):
    own(run, host="another-machine")

    assert clean(tmp_path, SystemClock()) == [f"{run.name}: run on another-machine, left alone; `harness clean` there ends what it left"]
    assert process.poll() is None
    assert run.undo.owed()


def test_a_run_of_another_machine_that_owes_nothing_is_not_even_named(tmp_path, run):
    own(run, host="another-machine")
    run.undo.settle("1-overlap-attempts@0")
    run.write(run.verdict_path, b"{}")

    assert clean(tmp_path, SystemClock()) == []


def test_after_a_reboot_a_process_of_the_same_id_is_another_s(tmp_path, run, process):
    (named,) = identify([process.pid])
    run.undo.settle("1-overlap-attempts@0")
    run.undo.owe("2-overlap-attempts@0", KillProcesses(processes=(msgspec.structs.replace(named, boot_id="the boot before"),)))

    assert clean(tmp_path, SystemClock()) == [f"{run.name}: 2-overlap-attempts@0: SIGKILL to 0 processes"]
    assert process.poll() is None
    assert not run.undo.owed()


def test_an_owner_of_a_version_that_did_not_say_its_machine_is_of_this_one(run):
    owner = run.owner()
    assert owner is not None
    assert not msgspec.structs.replace(owner, host="").is_elsewhere
    assert not owner.is_elsewhere


def test_the_last_fault_is_undone_first_and_one_that_cannot_be_keeps_no_other_from_it(tmp_path, run, process, monkeypatch):
    quotas = [RestoreQuota(queue="q", flavor="f", resource="r", quota=quota) for quota in ("16", "8")]
    for place, action in enumerate(quotas):
        run.undo.owe(f"{place}-lower-quota@0", RestoreCluster(cluster="c", actions=(action,)))
    asked: list[object] = []

    def perform_or_refuse(undo: Undo, clock: Clock) -> str:
        asked.append(undo)
        if isinstance(undo, RestoreCluster) and undo.actions[0] == quotas[1]:
            raise UndoError(attempted="restore the cluster", reason="it does not answer")
        return perform(undo, clock)

    monkeypatch.setattr("harness.cli.cleaning.perform", perform_or_refuse)

    done = clean(tmp_path, SystemClock())

    assert [line.split(": ", 1)[1] for line in done] == [
        "1-lower-quota@0: cannot restore the cluster: it does not answer; it stays owed",
        "0-lower-quota@0: the cluster c is gone, and with it what was done to it",
        "1-overlap-attempts@0: SIGKILL to 1 processes",
    ]
    assert [entry.injection for entry in run.undo.owed()] == ["1-lower-quota@0"]


@pytest.mark.parametrize(
    "error",
    [BrokenHarnessError("namespace n is still terminating"), TargetUnavailableError(target="kind", reason="it is busy", advice="wait")],
)
def test_a_run_that_cannot_be_cleaned_is_told_and_keeps_no_other_from_it(tmp_path, run, process, monkeypatch, error):
    other, _ = RunStore(tmp_path, SystemClock()).create("a-job-is-hit", 1)
    own(other)
    stuck = run.owner()
    assert stuck is not None
    removed: list[str] = []

    def remove(run_id: str, _clock: Clock) -> list[str]:
        if run_id == stuck.run_id:
            error.add_note("and while taking the run away: another")
            raise error
        removed.append(run_id)
        return ["removed it"]

    monkeypatch.setattr("harness.cli.cleaning.left_behind", lambda _run_id: ["something"])
    monkeypatch.setattr("harness.cli.cleaning.remove_left_behind", remove)

    done = clean(tmp_path, SystemClock())

    assert f"{run.name}: 1-overlap-attempts@0: SIGKILL to 1 processes" in done
    assert f"{run.name}: could not be cleaned: {error}; and while taking the run away: another" in done
    assert f"{other.name}: removed it" in done
    assert len(removed) == 1
