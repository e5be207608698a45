"""What a target is, and the optional things it may let us do: to a job, to a cluster."""

from harness.capabilities.cluster import Breakage, Component, ControlPlaneHost, NodeHost, PodHost, PodName, QueueHost
from harness.capabilities.container import ImageHost, MemoryLimiter
from harness.capabilities.job import (
    Cancellable,
    CheckpointStorage,
    Fidelity,
    Launch,
    LaunchChecking,
    Overlappable,
    Processes,
    RayHost,
    Signalable,
    StorageInterposable,
    StorageRule,
    Target,
    Terminable,
    Timeoutable,
    TurnTaking,
)

__all__ = [
    "Breakage",
    "Cancellable",
    "CheckpointStorage",
    "Component",
    "ControlPlaneHost",
    "Fidelity",
    "ImageHost",
    "Launch",
    "LaunchChecking",
    "MemoryLimiter",
    "NodeHost",
    "Overlappable",
    "PodHost",
    "PodName",
    "Processes",
    "QueueHost",
    "RayHost",
    "Signalable",
    "StorageInterposable",
    "StorageRule",
    "Target",
    "Terminable",
    "Timeoutable",
    "TurnTaking",
]
