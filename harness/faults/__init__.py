"""What each fault of ``harness.scenario.faults`` does, one module a family as there; they know capabilities, never a target by name."""

from harness.faults.activation import activate
from harness.faults.active import ActiveFault, StagedFault
from harness.faults.needs import missing_capability, missing_for_trigger

__all__ = ["ActiveFault", "StagedFault", "activate", "missing_capability", "missing_for_trigger"]
