"""Tables of docs/google-cloud.md: what each fault is on a project, and which permissions are needed, as the code has it."""

from collections.abc import Iterator
from typing import Literal, get_args, get_origin, get_type_hints

from harness.capabilities import Target
from harness.clock import ManualClock
from harness.faults import missing_capability
from harness.protocol.lines import LOG_LINE_BYTES_MAX
from harness.scenario import Fault, kind_of
from harness.targets.gcp import bucket, log_reader, log_reading, mirror, pace
from harness.targets.gcp.permissions import (
    BUCKET_PERMISSIONS,
    JOB_PERMISSIONS,
    PROJECT_PERMISSIONS,
    UNASKED_CLUSTER_PERMISSIONS,
    UNASKED_PERMISSIONS,
)
from harness.targets.gcp.target import GcpTarget
from harness.targets.gke.target import ProjectClusterTarget

Row = tuple[str, ...]

CAUSED = "yes"


def fault_rows() -> Iterator[Row]:
    """One row a fault: whether it can be caused on Cloud Run and on GKE, or why not; one more for each value of a field that changes it."""
    targets = (GcpTarget(ManualClock()), ProjectClusterTarget(ManualClock()))
    yield ("fault", "on Cloud Run", "on GKE")
    for kind in get_args(Fault):
        usual = tuple(_caused_on(target, kind()) for target in targets)
        yield (f"`{kind_of(kind())}`", *usual)
        for name, value in choices(kind):
            said = tuple(_caused_on(target, kind(**{name: value})) for target in targets)
            if said != usual:
                yield (f"`{kind_of(kind())}`, `{name}` = `{value}`", *said)


def choices(kind: type) -> Iterator[tuple[str, str]]:
    """The fields of a fault that take one of a few words, with each word."""
    for name, annotation in get_type_hints(kind).items():
        if get_origin(annotation) is Literal:
            yield from ((name, value) for value in get_args(annotation) if isinstance(value, str))


def _caused_on(target: Target, fault: Fault) -> str:
    missing = missing_capability(fault, target)
    if not missing:
        return CAUSED
    problem = missing.removeprefix(f"{kind_of(fault)}, which it cannot cause: ")
    return f"no: {problem}" if problem != missing else f"no, for want of {missing}"


def permission_rows() -> Iterator[Row]:
    """One row a permission: what it is on, and whether a plan can tell that it is held."""
    yield ("permission", "on", "told by a plan")
    for names, on, is_told in (
        (JOB_PERMISSIONS, "the job", True),
        (BUCKET_PERMISSIONS, "the bucket", True),
        (PROJECT_PERMISSIONS, "the project", True),
        (UNASKED_PERMISSIONS, "the project", False),
        (UNASKED_CLUSTER_PERMISSIONS, "the project, for a cluster", False),
    ):
        yield from ((f"`{name}`", on, "held or missing" if is_told else "unknown") for name in names)


def bound_rows() -> Iterator[Row]:
    """One row a bound of what is read of a project, and what becomes of the rest."""
    project = pace.PROJECT
    told = "told as lost: what rests on the log is *unknown*"
    yield ("what is read", "bound", "what is beyond it")
    yield ("log entries of an execution", f"{log_reader.ENTRIES_MAX:,}, or {_mib(log_reader.BYTES_MAX)} MiB", told)
    yield ("of those, the platform's own", f"{log_reader.QUIET_ENTRIES_MAX:,} more, however much the job prints", told)
    yield ("one line", f"{LOG_LINE_BYTES_MAX >> 10} KiB", "cut, and told as lost")
    yield (
        "the log, after the execution has ended",
        f"waited for for {project.log_s_max:g} s, until nothing new has come for {project.log_quiet_s:g} s",
        told,
    )
    yield ("the log once more from its beginning, for what came late", f"{project.last_look_s_max:g} s", told)
    yield (
        "the log of an execution, for `harness reproduce`",
        f"{log_reading.LIVE_ENTRIES_MAX:,} entries",
        "refused: give an export",
    )
    yield (
        "checkpoints",
        f"{mirror.MIRROR_BYTES_MAX >> 30} GiB, {_mib(bucket.CHUNK_BYTES)} MiB of them in memory",
        "told as lost: what rests on them is *unknown*",
    )


def _mib(size: int) -> int:
    return size >> 20
