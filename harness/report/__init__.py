"""What a run looks like: a summary for a row, one self-contained page for a run, an index for all of them."""

from harness.report.index import write_index
from harness.report.page import write_run
from harness.report.summary import Summary, summarize

__all__ = ["Summary", "summarize", "write_index", "write_run"]
