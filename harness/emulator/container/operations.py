"""Operations of Kubernetes Engine: one at a time works on a cluster."""

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from google.cloud import container_v1
from google.rpc import status_pb2

from harness.emulator.container.clusters import LINK
from harness.emulator.container.names import Name
from harness.emulator.container.pools import conditions_of
from harness.emulator.container.refusals import busy
from harness.emulator.failures import ApiError
from harness.emulator.operations import Operation
from harness.emulator.world import World

FAMILY = "container"
_Type = container_v1.Operation.Type
_Status = container_v1.Operation.Status


@dataclass(slots=True, kw_only=True)
class Course:
    """What an operation shows besides what all have.

    Attributes:
        target: What it works on.
        problems: What kept nodes from being made.
        is_ending: Whether it was cancelled.
    """

    target: Name
    problems: list[ApiError] = field(default_factory=list)
    is_ending: bool = False


class Works:
    """Begins operations, and shows them."""

    def __init__(self, world: World) -> None:
        self._world = world

    def require_idle(self, cluster: Name) -> None:
        """See that nothing works on a cluster.

        Raises:
            ApiError: FAILED_PRECONDITION, ``CLUSTER_ALREADY_HAS_OPERATION``.
        """
        working = self._world.operations.working_on(cluster.cluster_path)
        if working is not None:
            raise busy(working.name.rpartition("/")[2])

    def begin(
        self,
        kind: str,
        target: Name,
        lasts_s: float,
        work: Callable[[], Sequence[ApiError]],
        *,
        on_cancel: Callable[[], None] | None = None,
    ) -> Operation:
        """Begin one, named as in ``Operation.Type``; ``work`` is done at its end and returns what kept nodes from being made."""
        course = Course(target=target)

        def finish() -> None:
            course.problems += work()
            if course.problems:
                raise course.problems[0]

        milliseconds = int(self._world.clock.utc().timestamp() * 1000)
        return self._world.operations.begin(
            target.parent,
            family=FAMILY,
            target=target.cluster_path,
            kind=kind,
            metadata=course,
            lasts_s=lasts_s,
            work=finish,
            on_cancel=on_cancel,
            identifier=f"operation-{milliseconds}-{secrets.token_hex(4)}-{secrets.token_hex(2)}",
        )

    def shown(self, operation: Operation) -> container_v1.Operation:
        """The operation as a caller sees it."""
        course = operation.metadata
        if not isinstance(course, Course):
            raise TypeError(f"{operation.name} is no operation of Kubernetes Engine")
        name = operation.name.rpartition("/")[2]
        target = course.target
        shown = container_v1.Operation(
            name=name,
            zone=target.location,
            location=target.location,
            operation_type=getattr(_Type, operation.kind),
            status=_Status.DONE if operation.is_done else _Status.ABORTING if course.is_ending else _Status.RUNNING,
            self_link=f"{LINK}{target.place}/operations/{name}",
            target_link=LINK + target.path,
            start_time=to_text(operation.created),
        )
        if operation.ended is not None:
            shown.end_time = to_text(operation.ended)
        if operation.error is not None:
            shown.error = status_pb2.Status(code=operation.error.number, message=operation.error.message)
            shown.status_message = shown.detail = operation.error.message
            if target.pool:
                shown.nodepool_conditions = conditions_of(course.problems)
            else:
                shown.cluster_conditions = conditions_of(course.problems)
        return shown


def to_text(moment: datetime) -> str:
    """RFC 3339 with fractions of a second, as Kubernetes Engine writes it."""
    return moment.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"
