"""The release gate: what scenarios measured, held against thresholds and against the last accepted result.

Nothing is run here: documents in, a judgement and a summary out. Running them is the command line's.
"""

from harness.gate.document import GATE_NAME, GateConfig, read_gate
from harness.gate.judging import Judged, judge
from harness.gate.markdown import write_markdown
from harness.gate.measuring import measure
from harness.gate.result import Accepted, Measured

__all__ = ["GATE_NAME", "Accepted", "GateConfig", "Judged", "Measured", "judge", "measure", "read_gate", "write_markdown"]
