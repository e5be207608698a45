"""The variables by which a job learns where to speak and where to wait."""

from collections.abc import Sequence
from dataclasses import dataclass

RUN_ID_VARIABLE = "HARNESS_RUN_ID"
"""Inherited by every child of a job: ``harness clean`` finds processes by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doors:
    """Where an attempt speaks, by the paths as the job sees them.

    Attributes:
        events: The file that it appends events to.
        barrier: The socket that it asks at; empty where nothing is armed.
    """

    events: str
    barrier: str = ""


def protocol_variables(run_id: str, doors: Doors, armed: Sequence[str]) -> dict[str, str]:
    """What the protocol adds to the environment of an attempt."""
    variables = {"HARNESS_EVENTS": doors.events, RUN_ID_VARIABLE: run_id}
    if doors.barrier:
        variables |= {"HARNESS_BARRIER": doors.barrier, "HARNESS_ARMED": " ".join(armed)}
    return variables
