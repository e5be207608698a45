"""Two uninterrupted runs are compared by what says something of their state."""

import hashlib
from pathlib import Path
from typing import Literal

import msgspec
import pytest

from harness.clock import ManualClock
from harness.errors import InvalidDocumentError
from harness.history import (
    SCHEMA_VERSION,
    AttemptExited,
    AttemptStarted,
    Done,
    Event,
    ExecutionFinished,
    ExecutionStarted,
    GoldenKnown,
    HistoryWriter,
    Inspected,
    RunClosed,
    RunOpened,
    StepDone,
    TaskFinished,
)
from harness.runner import code, golden
from harness.runner.golden import establish, golden_key
from harness.scenario import Cluster, Outside, Scenario, Workload
from harness.scenario.expectations import BitExactResume
from harness.store import RunDirectory, RunStore

SILENT = Workload(name="job", command=("job",), steps=20, speaks_protocol=False)
SCENARIO = Scenario(name="a-job-repeats-itself", why="a test", workload=SILENT, expects=(BitExactResume(),))


def history(said: list[Event], *, reason: Literal["finished", "deadline"] = "finished") -> list[Event]:
    """A right run with something said in it; by ``reason`` one that had to be ended."""
    return [
        RunOpened(
            t_s=0, schema=SCHEMA_VERSION, run_id="r", scenario="s", target="local", seed=0, opened_at="2026-01-01T00:00:00.000+00:00"
        ),
        ExecutionStarted(t_s=0, execution="job-1", tasks=1, max_retries=3, timeout_s=600, grace_s=10),
        AttemptStarted(t_s=0, pid=1),
        *said,
        StepDone(t_s=1.5, step=20),
        Done(t_s=2, step=20),
        AttemptExited(t_s=3, exit_code=0),
        TaskFinished(t_s=3, task=0, succeeded=True, attempts=1),
        ExecutionFinished(t_s=3, succeeded=1, failed=0, cancelled=0, retried=0),
        RunClosed(t_s=4, reason=reason),
    ]


@pytest.fixture
def compare(tmp_path: Path):
    def compare_runs(*said: list[Event]) -> GoldenKnown:
        told = iter(said)

        def play(_scenario: Scenario, directory: RunDirectory, _run_id: str) -> None:
            writer = HistoryWriter(directory.history_path)
            writer.append(history(next(told)))
            writer.close()

        store = RunStore(tmp_path / "runs", ManualClock())
        return establish(SCENARIO, store=store, root=tmp_path, seed=0, target="local", play=play)[0]

    return compare_runs


def test_steps_without_a_fingerprint_say_nothing_of_the_state(compare):
    known = compare([StepDone(t_s=1, step=4)], [StepDone(t_s=1, step=5)])

    assert known.equal


@pytest.mark.parametrize("one", [StepDone(t_s=1, step=4, digests={"params": "a"}), Inspected(t_s=3, step=20, digests={"params": "a"})])
def test_a_fingerprint_that_differs_proves_that_the_job_does_not_repeat_itself(compare, one):
    other = type(one)(t_s=1, step=one.step, digests={"params": "b"})

    known = compare([one], [other])

    assert not known.equal
    assert "differ" in known.detail


def test_equal_fingerprints_are_counted_and_failed_inspections_are_not(compare):
    same = [Inspected(t_s=3, step=20, digests={"params": "a"}), Inspected(t_s=3, step=-1, detail="exit code 1")]

    known = compare(same, same)

    assert known.equal
    assert "equal in 1 observations" in known.detail


def test_a_run_that_was_not_right_is_made_again_and_one_that_was_is_kept(tmp_path: Path):
    store = RunStore(tmp_path / "runs", ManualClock())
    played: list[str] = []
    reasons: list[Literal["finished", "deadline"]] = ["finished", "deadline", "finished"]

    def play(_scenario: Scenario, directory: RunDirectory, _run_id: str) -> None:
        writer = HistoryWriter(directory.history_path)
        writer.append(history([], reason=reasons[len(played)]))
        writer.close()
        played.append(directory.path.name)

    def known() -> GoldenKnown:
        return establish(SCENARIO, store=store, root=tmp_path, seed=0, target="local", play=play)[0]

    assert not known().equal
    assert known().equal
    assert played == ["first", "second", "second"]


@pytest.mark.parametrize("reason", ["deadline", "finished"])
def test_a_first_run_that_was_not_right_is_not_repeated_and_one_that_had_to_be_ended_makes_all_others_useless(tmp_path: Path, reason):
    store = RunStore(tmp_path / "runs", ManualClock())
    played: list[str] = []

    def play(_scenario: Scenario, directory: RunDirectory, _run_id: str) -> None:
        played.append(directory.path.name)
        writer = HistoryWriter(directory.history_path)
        crashed = [AttemptExited(t_s=1, exit_code=1, retried=True), AttemptStarted(t_s=1, attempt=1, pid=2)]
        writer.append(history(crashed, reason=reason))
        writer.close()

    made = establish(SCENARIO, store=store, root=tmp_path, seed=0, target="local", play=play)

    assert played == ["first"]
    assert not made.known.equal
    assert made.known.detail.startswith("the uninterrupted run first itself is invalid: ")
    assert made.unplayable.startswith(made.known.detail) is (reason == "deadline")
    assert bool(made.unplayable) is (reason == "deadline")


def test_a_run_that_failed_and_was_tried_again_is_no_uninterrupted_one(compare):
    crashed = [AttemptExited(t_s=1, exit_code=1, retried=True), AttemptStarted(t_s=1, attempt=1, pid=2)]

    known = compare(crashed, crashed)

    assert not known.equal
    assert "itself is invalid" in known.detail


@pytest.fixture
def key(tmp_path: Path):
    (tmp_path / "train.py").write_text("train()\n")
    return lambda workload=SILENT: golden_key(msgspec.structs.replace(SCENARIO, workload=workload), root=tmp_path, seed=0, target="local")


@pytest.mark.parametrize("name", ["XLA_FLAGS", "PYTHONHASHSEED", "OMP_NUM_THREADS", "A_FLAG_OF_ITS_OWN"])
def test_a_variable_that_the_job_inherits_makes_another_run(key, monkeypatch, name: str):
    monkeypatch.delenv(name, raising=False)
    without = key()

    monkeypatch.setenv(name, "1")

    assert key() != without


@pytest.mark.parametrize("name", ["PWD", "TERM", "TMPDIR", "PYTEST_CURRENT_TEST", "HARNESS_EVENTS", "MAKELEVEL"])
def test_a_variable_of_the_caller_alone_makes_no_other_run(key, monkeypatch, name: str):
    before = key()

    monkeypatch.setenv(name, "something else")

    assert key() == before


@pytest.mark.parametrize(
    ("target", "name"), [("docker", "HARNESS_DOCKER_IMAGE"), ("gcp", "HARNESS_GCP_IMAGE"), ("gcp", "HARNESS_EMULATED_SESSION")]
)
def test_another_place_or_image_makes_another_run(tmp_path: Path, monkeypatch, target: str, name: str):
    (tmp_path / "train.py").write_text("train()\n")
    keys = set()
    for value in ("1", "2"):
        monkeypatch.setenv(name, value)
        keys.add(golden_key(msgspec.structs.replace(SCENARIO, workload=SILENT), root=tmp_path, seed=0, target=target))

    assert len(keys) == 2


def test_any_package_installed_makes_another_run(key, monkeypatch, tmp_path: Path):
    packages = tmp_path / ".packages"
    packages.mkdir()
    monkeypatch.syspath_prepend(packages)
    before = key()
    (packages / "some_optimizer-1.0.dist-info").mkdir()
    first = key()
    (packages / "some_optimizer-1.0.dist-info").rename(packages / "some_optimizer-1.1.dist-info")

    assert len({before, first, key()}) == 3


def test_another_form_of_history_makes_another_run(key, monkeypatch):
    before = key()

    monkeypatch.setattr(golden, "SCHEMA_VERSION", SCHEMA_VERSION + 1)

    assert key() != before


def test_what_is_said_of_the_job_is_no_code_of_it(key, tmp_path: Path):
    before = key()

    (tmp_path / "harness.toml").write_text("[workload]\n")
    assert key() == before
    (tmp_path / "train.toml").write_text("[model]\n")

    assert key() != before


def test_code_that_the_job_imports_from_elsewhere_makes_another_run(key, monkeypatch, tmp_path_factory: pytest.TempPathFactory):
    library, installed, packages = (tmp_path_factory.mktemp(name) for name in ("library", "installed", "packages"))
    note = packages / "mine-1.0.dist-info" / "direct_url.json"
    note.parent.mkdir()
    note.write_text(f'{{"url": "{installed.as_uri()}", "dir_info": {{"editable": true}}}}')
    monkeypatch.syspath_prepend(packages)
    monkeypatch.setenv("PYTHONPATH", str(library))
    keys = [key()]
    for place in (library, installed):
        (place / "core.py").write_text("keeps = True")
        keys.append(key())
        (place / "core.py").write_text("keeps = False")
        keys.append(key())

    assert len(set(keys)) == 5


def test_a_library_without_end_does_not_count(key, monkeypatch, tmp_path_factory: pytest.TempPathFactory):
    library = tmp_path_factory.mktemp("library")
    for number in range(30):
        (library / f"{number}.py").touch()
    monkeypatch.setattr(code, "ENTRIES_MAX", 20)
    before = key()

    monkeypatch.setenv("PYTHONPATH", str(library))
    with_it = key()
    (library / "0.py").write_text("pass")

    assert key() == with_it != before, "the variable counts"


@pytest.mark.parametrize("sources", [(), ("data",)])
def test_a_tree_without_end_is_given_up_and_sources_are_asked_for(key, monkeypatch, tmp_path: Path, sources: tuple[str, ...]):
    (tmp_path / "data").mkdir()
    for number in range(30):
        (tmp_path / "data" / f"{number}.bin").touch()
    monkeypatch.setattr(code, "ENTRIES_MAX", 20)

    with pytest.raises(InvalidDocumentError, match=r"more than 20 files and folders are in .* name in `sources`"):
        key(msgspec.structs.replace(SILENT, sources=sources))


def test_a_source_that_cannot_be_read_is_said(key, monkeypatch):
    def refuse(_file: object, _digest: str) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(hashlib, "file_digest", refuse)

    with pytest.raises(InvalidDocumentError, match=r"train\.py: Permission denied; make it readable"):
        key()


def test_an_edited_inspection_is_another_uninterrupted_run(key, tmp_path: Path):
    outside = Outside(inspect=("{python}", "inspect_it.py", "{checkpoint_dir}"))
    workload = msgspec.structs.replace(SILENT, sources=("train.py",), outside=outside)
    (tmp_path / "inspect_it.py").write_text("print(1)")
    before = key(workload)
    (tmp_path / "inspect_it.py").write_text("print(2)")

    assert key(workload) != before


def test_an_edited_manifest_is_another_uninterrupted_run(tmp_path: Path):
    (tmp_path / "train.py").write_text("pass")
    (tmp_path / "job.yaml").write_text("kind: Job")
    workload = msgspec.structs.replace(SILENT, sources=("train.py",))
    scenario = msgspec.structs.replace(SCENARIO, workload=workload, cluster=Cluster(manifest="job.yaml", queues="absent.yaml"))

    before = golden_key(scenario, root=tmp_path, seed=0, target="kind")
    (tmp_path / "job.yaml").write_text("kind: RayJob")

    assert golden_key(scenario, root=tmp_path, seed=0, target="kind") != before
