"""The jobs whose kill points are asked for: by name, by a ``harness.toml``, or all of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.config import read_config
from harness.errors import UnknownNameError, UsageError
from harness.explore.subject import Subject, subject_of_workload
from harness.scenario import Scenario, Workload


@dataclass(frozen=True, slots=True)
class Job:
    """A job by the name that its tests have.

    Attributes:
        name: The workload's; of a second one of the same name with ``-2``.
        workload: The job.
        root: What its directory is relative to.
    """

    name: str
    workload: Workload
    root: Path

    def subject(self, seed: int) -> Subject:
        """The same, to be explored.

        Raises:
            UsageError: When its directory or its program is not there.
        """
        return msgspec.structs.replace(subject_of_workload(self.workload, root=self.root, seed=seed), name=self.name)


def jobs_asked_for(asked: Sequence[str], brought: Callable[[], Iterable[Scenario | Workload]], *, root: Path, here: Path) -> list[Job]:
    """Jobs, each once.

    Args:
        asked: Names of jobs, and configuration files, which end in ``.toml``; none: all that were brought.
        brought: Tells the jobs of a test or a catalogue; not asked where configuration files alone are.
        root: What the directories of these are relative to.
        here: What configuration files are relative to.

    Raises:
        HarnessError: When a name is not known or a configuration file is wrong.
    """
    files = [here / name for name in asked if name.endswith(".toml")]
    names = [name for name in asked if not name.endswith(".toml")]
    found = [(workload, path.parent) for path in files for workload in _workloads(_read(path))]
    if names or not asked:
        known = _workloads(brought())
        for name in names:
            if name not in {workload.name for workload in known}:
                raise UnknownNameError(kind="workload", name=name, known=[workload.name for workload in known])
        found += [(workload, root) for workload in known if not names or workload.name in names]
    return list(_each_once(found))


def _each_once(found: Iterable[tuple[Workload, Path]]) -> Iterator[Job]:
    """Workloads of one name may differ in their environment, or in anything else."""
    seen: dict[str, list[tuple[Workload, Path]]] = {}
    for workload, root in found:
        alike = seen.setdefault(workload.name, [])
        if (workload, root) not in alike:
            alike.append((workload, root))
            yield Job(workload.name if len(alike) == 1 else f"{workload.name}-{len(alike)}", workload, root)


def _read(path: Path) -> Iterable[Scenario]:
    if not path.is_file():
        raise UsageError(f"there is no configuration file {path}; name one, or workloads of the catalogue")
    return read_config(path).values()


def _workloads(jobs: Iterable[Scenario | Workload]) -> list[Workload]:
    return [job.workload if isinstance(job, Scenario) else job for job in jobs]
