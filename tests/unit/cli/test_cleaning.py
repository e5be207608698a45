"""What is cleaned, and what is left to others."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from harness.cli.cleaning import Told, What, summary_of
from harness.cli.cleaning import clean as clean_runs
from harness.clock import Clock, ManualClock, SystemClock
from harness.errors import BrokenHarnessError, TargetUnavailableError, UndoError
from harness.kind.cluster import CLUSTER_NAME
from harness.kind.lock import Turn
from harness.store import RunDirectory, RunStore
from harness.targets import perform
from harness.targets.kubernetes.run_record import RunRecord, record_path, recorded_runs, write_record
from harness.undo import KillProcesses, ProcessId, RestoreCluster, RestoreQuota, Undo, identify


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


def clean(runs_dir: Path, clock: Clock) -> list[str]:
    """What is told of things done, left alone and failed."""
    return [f"{line.run}: {line.text}" for line in clean_runs(runs_dir, clock) if line.what is not What.BEGUN]


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

    monkeypatch.setattr("harness.cli.cleaning.left_behind", lambda run_id: [] if run_id in removed else ["something"])
    monkeypatch.setattr("harness.cli.cleaning.remove_left_behind", remove)

    done = clean(tmp_path, SystemClock())

    assert f"{run.name}: 1-overlap-attempts@0: SIGKILL to 1 processes" in done
    assert f"{run.name}: could not be cleaned: {error}; and while taking the run away: another" in done
    assert f"{other.name}: removed it" in done
    assert len(removed) == 1


def test_what_is_told_is_counted_for_what_it_is() -> None:
    told = [Told(what, "r", "t") for what in (What.BEGUN, What.DONE, What.ALONE, What.FAILED, What.FAILED, What.DONE)]

    assert summary_of(told) == "2 done, 1 left alone, 2 could not be done; run it again when that is mended"
    assert summary_of(told[1:2]) == "1 done"
    assert summary_of([]) == "nothing was left behind"


@pytest.mark.parametrize("error", [BrokenHarnessError("full"), OSError(28, "No space left on device")])
def test_what_failed_is_told_as_that_and_what_takes_long_before_it_begins(tmp_path, run, process, monkeypatch, error):
    def refuse(_run_id: str, _clock: Clock) -> list[str]:
        raise error

    monkeypatch.setattr("harness.cli.cleaning.left_behind", lambda _run_id: ["namespace n", "directory d"])
    monkeypatch.setattr("harness.cli.cleaning.remove_left_behind", refuse)

    told = list(clean_runs(tmp_path, SystemClock()))

    assert [line.what for line in told] == [What.DONE, What.BEGUN, What.FAILED]
    assert [line.text for line in told[1:]] == ["takes away what is left: namespace n, directory d", f"could not be cleaned: {error}"]


def test_who_waits_for_a_run_that_uses_the_cluster_is_told_so_before(tmp_path, run, process, monkeypatch):
    run.undo.owe("2-lower-quota@0", RestoreCluster(cluster="c", actions=()))
    monkeypatch.setattr("harness.cli.cleaning.left_behind", lambda _run_id: [])
    turn = Turn(CLUSTER_NAME)
    turn.take(ManualClock())

    first = next(clean_runs(tmp_path, SystemClock()))

    assert first == Told(What.BEGUN, run.name, "once the run that uses the cluster has ended, undoes 2-lower-quota@0 on the cluster c")
    turn.free()


def test_what_is_there_still_after_it_was_to_be_removed_has_failed(tmp_path, run, process, monkeypatch):
    monkeypatch.setattr("harness.cli.cleaning.left_behind", lambda _run_id: ["process 7 (hangs)"])
    monkeypatch.setattr("harness.cli.cleaning.remove_left_behind", lambda *_: [])

    last = list(clean_runs(tmp_path, SystemClock()))[-1]

    assert (last.what, last.text) == (What.FAILED, "still there after that: process 7 (hangs)")


# ---- runs that the cluster knows of --------------------------------------------------------------------------------------


def recorded(tmp_path: Path, run_id: str, journal: Path | None) -> RunRecord:
    """A run that has written down what it has on a cluster that is gone."""
    record = RunRecord(
        run_id=run_id, namespace=f"harness-{run_id}", directory=str(tmp_path / "shared" / run_id), journal=str(journal or "")
    )
    write_record(CLUSTER_NAME, record)
    Path(record.directory).mkdir(parents=True)
    return record


@pytest.mark.parametrize("journal", [None, Path("/nowhere/undo.jsonl")])
def test_a_run_whose_directory_is_gone_is_known_by_its_record(tmp_path, journal):
    record = recorded(tmp_path, "run-0", journal)

    told = list(clean_runs(tmp_path / "runs", SystemClock()))

    assert told == [Told(What.BEGUN, "run run-0", f"takes away what is left: directory {record.directory}")]
    assert recorded_runs(CLUSTER_NAME) == []
    assert not Path(record.directory).exists()


def test_a_dead_run_of_another_runs_directory_is_cleaned_as_one_of_ours(tmp_path, run, process):
    owner = run.owner()
    assert owner is not None
    recorded(tmp_path, owner.run_id, run.undo_path)

    assert clean(tmp_path / "others", SystemClock()) == [f"{run.path}: 1-overlap-attempts@0: SIGKILL to 1 processes"]
    assert recorded_runs(CLUSTER_NAME) == []


def test_a_living_run_of_another_runs_directory_is_not_asked_about(tmp_path):
    living, run_id = RunStore(tmp_path, SystemClock()).create("a-job-is-hit", 0)
    recorded(tmp_path, run_id, living.undo_path)

    assert clean(tmp_path / "others", SystemClock()) == []
    assert recorded_runs(CLUSTER_NAME) == [run_id]


def test_a_run_of_which_nobody_can_say_whether_it_lives_is_left_alone_while_the_cluster_is_in_use(tmp_path):
    recorded(tmp_path, "run-0", None)
    turn = Turn(CLUSTER_NAME)
    turn.take(ManualClock())

    assert clean(tmp_path / "runs", SystemClock()) == ["run run-0: left alone while a run uses the target kind"]
    turn.free()
    assert clean(tmp_path / "runs", SystemClock()) == []
    assert recorded_runs(CLUSTER_NAME) == []


def test_a_record_that_cannot_be_read_is_told_as_failed(tmp_path):
    recorded(tmp_path, "run-0", None)
    record_path(CLUSTER_NAME, "run-0").write_bytes(b"{")

    (line,) = [line for line in clean_runs(tmp_path / "runs", SystemClock()) if line.what is not What.BEGUN]
    assert line.what is What.FAILED
    assert "remove it once you know that nothing of the run is left" in line.text
