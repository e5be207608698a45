"""What an exploration leaves in its run directory for people and for the index."""

import msgspec

from harness.explore.page import render_page
from harness.explore.result import Exploration
from harness.store import RunDirectory
from harness.verdict import Finding, Verdict

CHECKER = "kill-points"

RIGHT = "recovery keeps every promise in all states that were judged"


def write_documents(exploration: Exploration, directory: RunDirectory) -> None:
    """Write the document, the page and the verdict, which comes last: its presence means that the exploration is over.

    Raises:
        StoreError: When they cannot be written.
    """
    directory.write(directory.exploration_path, msgspec.json.encode(exploration))
    directory.write(directory.report_path, render_page(exploration))
    finding = Finding(checker=CHECKER, outcome=exploration.outcome, reason="; ".join(exploration.reasons) or RIGHT)
    directory.write(directory.verdict_path, msgspec.json.encode(Verdict(outcome=exploration.outcome, findings=(finding,))))
