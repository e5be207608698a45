"""What is cleaned, and what is left to others."""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from harness.cli.cleaning import Told, What, summary_of
from harness.cli.cleaning import clean as clean_runs
from harness.clock import Clock, ManualClock, SystemClock
from harness.errors import BrokenHarnessError, TargetUnavailableError, UndoError
from harness.explore import fixed_place
from harness.explore.kill_points.sessions import sign
from harness.kind.cluster import CLUSTER_NAME
from harness.kind.lock import Turn
from harness.protocol import barrier
from harness.store import RunDirectory, RunStore
from harness.targets import perform
from harness.targets.kubernetes.run_record import RunRecord, record_path, recorded_runs, write_record
from harness.undo import KillProcesses, RestoreCluster, RestoreQuota, Undo, identify


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of others is seen."""
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    temporary = tmp_path_factory.mktemp("tmp")
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    monkeypatch.setattr(barrier, "SHORT_ROOT", temporary)


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
    gone = msgspec.structs.replace(owner.process, started_s=owner.process.started_s - 1000.0)
    directory.write(directory.owner_path, msgspec.json.encode(msgspec.structs.replace(owner, process=gone, **fields)))


def own_of(directory: RunDirectory, **where: str) -> None:
    """It is of another boot, machine or container that has our name."""
    owner = directory.owner()
    assert owner is not None
    there = msgspec.structs.replace(owner.process, **where)
    directory.write(directory.owner_path, msgspec.json.encode(msgspec.structs.replace(owner, process=there)))


def test_what_a_dead_run_owes_is_done(tmp_path, run, process):
    assert clean(tmp_path, SystemClock()) == [f"{run.name}: 1-overlap-attempts@0: SIGKILL to 1 processes"]
    assert process.wait(timeout=60) == -9
    assert not run.undo.owed()


def test_a_run_of_another_machine_is_left_alone_and_named(tmp_path, run, process):
    own(run, host="another-machine")

    assert clean(tmp_path, SystemClock()) == [f"{run.name}: run on another-machine, left alone; `harness clean` there ends what it left"]
    assert process.poll() is None
    assert run.undo.owed()


@pytest.mark.parametrize("where", [{"boot_id": "another", "machine": "another"}, {"pid_namespace": "pid:[1]"}])
def test_a_run_of_a_machine_or_container_of_the_same_name_is_left_alone(tmp_path, run, process, where):
    own_of(run, **where)

    (told,) = clean(tmp_path, SystemClock())

    assert told.startswith(f"{run.name}: run on another machine or container that is called {os.uname().nodename}, left alone")
    assert process.poll() is None
    assert run.undo.owed()


def test_a_run_of_this_machine_before_it_was_started_anew_is_cleaned(tmp_path, run, monkeypatch):
    monkeypatch.setattr("harness.undo.machine", lambda: "ours")
    own_of(run, boot_id="the boot before", machine="ours")

    assert clean(tmp_path, SystemClock()) == [f"{run.name}: 1-overlap-attempts@0: SIGKILL to 1 processes"]
    assert not run.undo.owed()


@pytest.mark.parametrize("where", [{"boot_id": "another", "machine": "another"}, {"pid_namespace": "pid:[1]"}])
def test_the_sockets_of_a_container_of_the_same_name_are_left_alone(tmp_path, where):
    left = barrier.make_socket_directory("0123456789ab")
    own(RunDirectory(left))
    own_of(RunDirectory(left), **where)

    assert clean(tmp_path / "runs", SystemClock()) == []
    assert left.is_dir()


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
    assert [line.text for line in told[1:]] == ["will remove what is left: namespace n, directory d", f"could not be cleaned: {error}"]


def test_who_waits_for_a_run_that_uses_the_cluster_is_told_so_before(tmp_path, run, process, monkeypatch):
    run.undo.owe("2-lower-quota@0", RestoreCluster(cluster="c", actions=()))
    monkeypatch.setattr("harness.cli.cleaning.left_behind", lambda _run_id: [])
    turn = Turn(CLUSTER_NAME)
    turn.take(ManualClock())

    first = next(clean_runs(tmp_path, SystemClock()))

    assert first == Told(What.BEGUN, run.name, "once the run that uses the cluster has ended, will undo 2-lower-quota@0 on the cluster c")
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

    assert told == [Told(What.BEGUN, "run run-0", f"will remove what is left: directory {record.directory}")]
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


def test_the_plans_of_a_session_whose_process_is_gone_are_removed_and_no_others(tmp_path, process):
    dead, alive, elsewhere, unsigned = (tmp_path / ".kill-points" / name for name in ("dead", "alive", "elsewhere", "unsigned"))
    for place in (dead, alive, elsewhere, unsigned):
        place.mkdir(parents=True)
        (place / "job.json").touch()
    sign(alive, os.getpid())
    sign(dead, process.pid)
    sign(elsewhere, process.pid)
    owner = json.loads((elsewhere / "session.owner").read_text())
    (elsewhere / "session.owner").write_text(json.dumps(owner | {"host": "another"}))
    process.kill()
    process.wait()

    assert clean(tmp_path, SystemClock()) == ["session dead: removed the plans of its kill points"]
    assert {path.name for path in (tmp_path / ".kill-points").iterdir()} == {"alive", "elsewhere", "unsigned"}
    assert clean(tmp_path, SystemClock()) == []


def test_what_a_dead_run_has_left_is_found_though_its_directory_is_gone(tmp_path):
    """A session of tests that was killed, whose directory somebody has removed."""
    left = barrier.make_socket_directory("0123456789ab")
    own(RunDirectory(left))

    told = clean(tmp_path / "runs", SystemClock())

    assert f"run 0123456789ab: removed socket directory {left}" in told
    assert not left.exists()


def test_the_sockets_of_a_run_that_lives_are_left_alone(tmp_path):
    mine = barrier.make_socket_directory("ba9876543210")

    clean(tmp_path / "runs", SystemClock())

    assert mine.is_dir()


def test_files_of_locks_that_nobody_has_go_and_others_stay(tmp_path):
    temporary = Path(tempfile.gettempdir())
    free = temporary / f"harness-{os.getuid()}-{'0' * 16}.lock"
    other = temporary / f"harness-{os.getuid()}-of-somebody-else.lock"
    for file in (free, other):
        file.touch()

    with fixed_place.claimed(str(tmp_path / "checkpoints")):
        (held,) = {*temporary.glob("harness-*.lock")} - {free, other}
        assert "explorations: removed files of 1 locks that nobody has" in clean(tmp_path / "runs", SystemClock())
        assert (free.exists(), held.exists(), other.exists()) == (False, True, True)


def orphan(directory: RunDirectory, process: "subprocess.Popen[bytes]") -> None:
    """It is run by that process, for a harness that is gone."""
    owner = directory.owner()
    assert owner is not None
    (lives,) = identify([process.pid])
    gone = msgspec.structs.replace(lives, started_s=lives.started_s - 1000.0)
    directory.write(directory.owner_path, msgspec.json.encode(msgspec.structs.replace(owner, process=lives, overseer=gone)))


class Ending(ManualClock):
    """A process ends by itself while somebody waits for it."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        super().__init__()
        self._process = process

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self._process.terminate()
        self._process.wait()


def test_a_process_whose_harness_was_killed_is_given_the_time_to_end_its_run(tmp_path, process):
    directory, _ = RunStore(tmp_path, SystemClock()).create("a-job-is-hit", 0)
    orphan(directory, process)

    assert clean(tmp_path, Ending(process)) == [f"{directory.name}: process {process.pid} has ended it"]
    assert process.returncode == -signal.SIGTERM


class Hurrying(ManualClock):
    """Ten times as fast as the time of day: a kernel needs a moment to end a process."""

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        SystemClock().sleep(seconds / 10)


def test_one_that_does_not_end_is_killed(tmp_path, process):
    directory, _ = RunStore(tmp_path, SystemClock()).create("a-job-is-hit", 0)
    orphan(directory, process)

    assert clean(tmp_path, Hurrying())[-1] == f"{directory.name}: killed process {process.pid}, which had not ended it"
    assert process.wait() == -signal.SIGKILL


def test_one_that_has_judged_its_run_is_not_waited_for(tmp_path, process):
    directory, _ = RunStore(tmp_path, SystemClock()).create("a-job-is-hit", 0)
    orphan(directory, process)
    directory.write(directory.verdict_path, b"{}")

    assert clean(tmp_path, ManualClock()) == []
    assert process.poll() is None


class EndingLate(Ending):
    """It ends after so long."""

    def __init__(self, process: "subprocess.Popen[bytes]", after_s: float) -> None:
        super().__init__(process)
        self._end_s = self.monotonic_s() + after_s

    def sleep(self, seconds: float) -> None:
        if self.monotonic_s() >= self._end_s:
            super().sleep(seconds)
        else:
            ManualClock.sleep(self, seconds)


def test_one_that_is_at_work_on_what_it_owes_is_given_the_time_that_its_target_takes(tmp_path, process):
    directory, _ = RunStore(tmp_path, SystemClock(), ending_s_max=60.0).create("a-job-is-hit", 0)
    orphan(directory, process)

    assert clean(tmp_path, EndingLate(process, 55.0)) == [f"{directory.name}: process {process.pid} has ended it"]
    assert process.returncode == -signal.SIGTERM


def test_an_owner_of_a_version_that_did_not_say_how_long_it_may_take_has_half_a_minute(tmp_path):
    directory, _ = RunStore(tmp_path, SystemClock(), ending_s_max=60.0).create("a-job-is-hit", 0)
    document = json.loads(directory.owner_path.read_text())
    del document["ending_s_max"]
    directory.owner_path.write_text(json.dumps(document))

    owner = directory.owner()
    assert owner is not None
    assert owner.ending_s_max == 30.0
