"""The uninterrupted run that others are compared with: made twice, compared with itself, kept by content of the workload.

Two equal runs are no proof of determinism, but two different ones prove its absence: then bit-exactness is unknown, never a tolerance.
"""

import hashlib
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import msgspec

from harness.checkers import judge
from harness.history import SCHEMA_VERSION, Event, GoldenKnown, History, Inspected, ResultSeen, RunClosed, StepDone, read_history
from harness.runner.binding import inherited
from harness.runner.code import digest_of, source_files
from harness.runner.progress import Progress
from harness.scenario import Expectation, Platform, Scenario, encode
from harness.scenario.expectations import BitExactResume, Completes, ExactlyOnceData, SameResult, WithinRetries
from harness.store import RunDirectory, RunStore
from harness.targets import remove_left_behind
from harness.verdict import Verdict

NEEDS_GOLDEN = (BitExactResume, ExactlyOnceData, SameResult)
UNKEYED_VARIABLES = frozenset(
    {
        *("PWD", "OLDPWD", "SHLVL", "_"),  # of the caller's shell: a job has a directory of its own
        *("TERM", "COLUMNS", "LINES", "WINDOWID"),  # of the caller's window: a job has none
        *("SSH_CLIENT", "SSH_CONNECTION", "SSH_TTY", "XDG_SESSION_ID"),  # another login is no other machine
        *("MAKELEVEL", "MAKEFLAGS", "MFLAGS", "MAKE_TERMOUT", "MAKE_TERMERR"),  # `make chaos` and `harness run` make the same run
        "TMPDIR",  # each attempt gets its own
    }
)
UNKEYED_PREFIX = "PYTEST_"
"""Says which test runs and which worker runs it; ``UNKEYED_VARIABLES`` likewise say nothing that a trajectory hangs on."""

PLACES: dict[str, tuple[str, ...]] = {
    "docker": ("HARNESS_DOCKER_IMAGE",),
    "gcp": (
        "HARNESS_EMULATED_SESSION",
        *(f"HARNESS_GCP_{name}" for name in ("PROJECT", "REGION", "JOB", "IMAGE", "GPUS", "GPU_TYPE", "CLUSTER", "ZONE")),
    ),
}
"""By target, the variables of the harness that say where a job runs and what it is made of: another image is another job, and what an
emulator has run says nothing of a project."""

PlayGolden = Callable[[Scenario, RunDirectory, str], None]


def is_needed(expects: Sequence[Expectation]) -> bool:
    """Whether an expectation compares with the uninterrupted run."""
    return any(isinstance(expectation, NEEDS_GOLDEN) for expectation in expects)


class Established(NamedTuple):
    """The uninterrupted runs of a workload.

    Attributes:
        known: What they tell.
        history: Of the first.
        unplayable: Why no other run of the workload need be made, for this one had to be ended; empty when it came to an end by itself.
    """

    known: GoldenKnown
    history: bytes
    unplayable: str = ""


def establish(
    scenario: Scenario, *, store: RunStore, root: Path, seed: int, target: str, play: PlayGolden, progress: Progress | None = None
) -> Established:
    """Find or make the two uninterrupted runs of a scenario's workload; a first one that is not right is not repeated.

    Whoever comes second, in this process or another, waits for the first and finds them made; ``progress`` is told for whom.
    """

    def waits(why: str) -> None:
        if progress is not None:
            progress.waits(scenario, why)

    uninterrupted = golden_scenario(scenario)
    key = golden_key(uninterrupted, root=root, seed=seed, target=target)
    with store.golden_lock(key, waits=waits):
        first = _have(uninterrupted, key, "first", store=store, play=play)
        runs = [first, *([_have(uninterrupted, key, "second", store=store, play=play)] if first.verdict.is_valid else [])]
        return Established(_compare(key, runs), first.directory.history_path.read_bytes(), _unplayable(first))


def golden_scenario(scenario: Scenario) -> Scenario:
    """The scenario's workload, left alone, with all the time that an attempt usually has."""
    granted = scenario.platform
    timeout_s = max(granted.timeout_s, Platform().timeout_s)
    return msgspec.structs.replace(
        scenario,
        name=f"uninterrupted-run-of-{scenario.workload.name}",
        why="the run that interrupted ones are compared with",
        platform=Platform(tasks=granted.tasks, parallelism=granted.parallelism, timeout_s=timeout_s),
        injections=(),
        expects=(Completes(), WithinRetries(attempts_max=1)),  # one that failed and was tried again was interrupted
        within_budget=True,
        tags=(),
    )


def golden_key(scenario: Scenario, *, root: Path, seed: int, target: str) -> str:
    """What the uninterrupted run depends on: workload, platform, place, code, manifests, seed, variables, packages, form of events."""
    sha = hashlib.sha256()
    sha.update(encode(msgspec.structs.replace(scenario, deadline_s=1.0)))
    sha.update(f"{SCHEMA_VERSION} {seed} {target} {sys.version} {sys.executable}".encode())
    for part in (*_place(target), *_environment(), *_packages()):
        sha.update(os.fsencode(part) + b"\0")
    manifests = {root / name for name in (scenario.cluster.manifest, scenario.cluster.queues) if name}
    for path in sorted({*source_files(scenario.workload, root), *filter(Path.is_file, manifests)}):
        sha.update(str(path.relative_to(root) if path.is_relative_to(root) else path).encode())
        sha.update(digest_of(path))
    return f"{scenario.workload.name}-{sha.hexdigest()[:16]}"


@dataclass(frozen=True, slots=True)
class _Uninterrupted:
    """A run of the workload alone, read and judged."""

    directory: RunDirectory
    history: History
    verdict: Verdict


def _have(scenario: Scenario, key: str, name: str, *, store: RunStore, play: PlayGolden) -> _Uninterrupted:
    found = store.golden(key, name)
    if found.is_over():
        kept = _judged(scenario, found)
        if kept.verdict.is_valid:
            return kept  # one that is not valid, as after a deadline on a busy machine, would spoil every later run
    owner = found.owner()
    if owner is not None:
        remove_left_behind(owner.run_id)  # of a harness that was killed; once its directory is gone, nobody would know what is its own
    directory, run_id = store.create_golden(key, name)
    play(scenario, directory, run_id)
    made = _judged(scenario, directory)
    directory.write(directory.verdict_path, msgspec.json.encode(made.verdict))
    directory.remove_checkpoints()
    return made


def _judged(scenario: Scenario, directory: RunDirectory) -> _Uninterrupted:
    history = read_history(directory.history_path)
    return _Uninterrupted(directory, history, judge(scenario, history, None))


def _compare(key: str, runs: Sequence[_Uninterrupted]) -> GoldenKnown:
    for run in runs:
        if not run.verdict.is_valid:
            return GoldenKnown(t_s=0.0, key=key, equal=False, detail=_told(run))
    first, second = (list(_trajectory(run.history.events)) for run in runs)
    for left, right in zip(first, second, strict=False):
        if left != right:
            return GoldenKnown(t_s=0.0, key=key, equal=False, detail=f"two uninterrupted runs differ: {left} and {right}")
    if len(first) != len(second):
        return GoldenKnown(t_s=0.0, key=key, equal=False, detail=f"two uninterrupted runs differ in length: {len(first)} and {len(second)}")
    return GoldenKnown(t_s=0.0, key=key, equal=True, detail=f"two uninterrupted runs are equal in {len(first)} observations")


def _unplayable(run: _Uninterrupted) -> str:
    """A job that does not end when it is left alone does not end when it is interrupted: what had to be ended is not tried again."""
    closed = next((event for event in run.history.events if isinstance(event, RunClosed)), None)
    if run.verdict.is_valid or closed is None or closed.reason != "deadline":
        return ""
    return f"{_told(run)}; so the scenario itself was not run; see .golden/{run.directory.name}"


def _told(run: _Uninterrupted) -> str:
    return f"the uninterrupted run {run.directory.path.name} itself is {run.verdict.outcome}: {run.verdict.worst()[0].reason}"


def _trajectory(events: Sequence[Event]) -> Iterator[tuple[object, ...]]:
    """What must be equal between uninterrupted runs, in an order that does not depend on how ranks interleave."""
    steps = [event for event in events if isinstance(event, StepDone) and (event.digests or event.batch_ids)]
    for event in sorted(steps, key=lambda step: (step.task, step.rank, step.step)):
        yield ("task", event.task, "rank", event.rank, "step", event.step, event.batch_ids, tuple(sorted(event.digests.items())))
    inspected = (event for event in events if isinstance(event, Inspected) and event.step >= 0)
    yield from (("task", event.task, "inspected", event.step, tuple(sorted(event.digests.items()))) for event in inspected)
    yield from (("result", event.path, event.sha256) for event in events if isinstance(event, ResultSeen))


def _place(target: str) -> list[str]:
    return [f"{name}={os.environ[name]}" for name in PLACES.get(target, ()) if os.environ.get(name)]


def _environment() -> list[str]:
    """The caller's variables that a job inherits and that may change what it computes: ``XLA_FLAGS`` and many more, so all but a few."""
    variables = inherited(os.environ).items()
    return sorted(f"{name}={value}" for name, value in variables if name not in UNKEYED_VARIABLES and not name.startswith(UNKEYED_PREFIX))


def _packages() -> list[str]:
    """What is installed, by the names of its metadata: ``jax-0.10.2.dist-info``.

    Reading the metadata of a hundred packages takes a tenth of a second, three hundred times as long.
    """
    found: list[str] = []
    for folder in sys.path:
        try:
            names = sorted(os.listdir(folder or "."))
        except OSError:
            continue  # an archive, or not there
        found += [name for name in names if name.endswith((".dist-info", ".egg-info"))]
    return found
