"""What each fault of ``harness.scenario.faults`` does, one module a family as there; they know capabilities, never a target by name."""

from harness.faults.activation import activate, missing_capability
from harness.faults.active import ActiveFault

__all__ = ["ActiveFault", "activate", "missing_capability"]
