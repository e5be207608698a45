"""The table of docs/fidelity.md about where the targets of Cloud Run jobs differ in which scenarios they run, and why that is right."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import cast, get_args

import harness.capabilities
from harness.capabilities import MemoryLimiter, Target
from harness.clock import ManualClock
from harness.emulator.address import Endpoints
from harness.environment import changed_environment
from harness.faults import missing_capability, missing_for_trigger
from harness.scenario import Fault, kind_of
from harness.scenario.triggers import AtOperation
from harness.targets import create
from tests.docs.google_tables import Row, choices

NAMES = ("local", "docker", "gcp")

WHY: Mapping[str, str] = {
    "Overlappable": "Cloud Run starts no attempt beside one that runs, and a task has one container: nobody can have two attempts of it at once.",
    "RayHost": "Which process is a raylet or the head of the job's own Ray cluster is read from this machine's processes, and a node is drained by "
    "Ray's command beside them. Ray's workers can be killed everywhere.",
    "StorageInterposable": "A job's writes fail where it is started under a supervisor of its system calls, which only a process of this machine is; "
    "a bucket that Cloud Run mounts cannot be made to fail from outside.",
    "OperationStops": "A job is held at an operation by the same supervisor. The nearest moment is a marker, `at-marker`, which every target has.",
    "MemoryLimiter": "A container has a limit; a process of this machine has none of its own, on the emulator neither.",
}
"""What not every target can do, each with the reason."""

SHOWN = ("yes", "no")


def difference_rows() -> Iterator[Row]:
    """One row a capability that some of the targets have and some not: what needs it, who has it, why not all."""
    yield ("what a scenario says", "local", "docker", "gcp", "gcp, emulated", "why")
    for capability, asked in needs().items():
        offered = [_has(name, capability) for name in NAMES]
        emulated = _has("gcp", capability, is_emulated=True)
        if len({*offered, emulated}) > 1:
            yield (", ".join(asked), *(SHOWN[not has] for has in (*offered, emulated)), WHY[capability])


def needs() -> Mapping[str, list[str]]:
    """What of a scenario needs which capability, by its name."""
    bare = cast("Target", object())  # it can do nothing to a job
    found = defaultdict[str, list[str]](list)
    for kind in get_args(Fault):
        usual = _named(missing_capability(kind(), bare))
        found[usual].append(f"`{kind_of(kind())}`")
        for name, value in choices(kind):
            other = _named(missing_capability(kind(**{name: value}), bare))
            if other != usual:
                found[other].append(f"`{kind_of(kind())}`, `{name}` = `{value}`")
    found[_named(missing_for_trigger(AtOperation(operation="write", path="x"), bare))].append("`at-operation`")
    found[MemoryLimiter.__name__].append("`platform.memory_mib`")
    return found


def _has(name: str, capability: str, *, is_emulated: bool = False) -> bool:
    """Whether a target has it, whatever this machine lacks for it."""
    target = create(name, ManualClock())
    if not isinstance(target, getattr(harness.capabilities, capability)):
        return False
    if name != "gcp" or not isinstance(target, MemoryLimiter) or capability != MemoryLimiter.__name__:
        return True
    addresses = Endpoints(grpc="127.0.0.1:1", http="127.0.0.1:1").environment() if is_emulated else {}
    with changed_environment(addresses, hiding="HARNESS_GCP_"):
        return not target.memory_problem()


def _named(missing: str) -> str:
    """The capability in the words of a refusal."""
    return missing.rpartition("(")[2].rstrip(")")
