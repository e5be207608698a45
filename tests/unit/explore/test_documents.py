"""What an exploration leaves in its run directory."""

import msgspec
import pytest

from harness.explore.documents import write_documents
from harness.explore.result import Exploration, Recorded
from harness.store import RunDirectory
from harness.verdict import Outcome, Verdict


@pytest.mark.parametrize(
    ("outcome", "reasons", "reason"),
    [
        (Outcome.VALID, (), "recovery keeps every promise in all states that were judged"),
        (Outcome.UNKNOWN, ("no save was seen", "time was over"), "no save was seen; time was over"),
    ],
)
def test_the_verdict_says_why_and_stands_beside_the_document_and_its_page(tmp_path, outcome, reasons, reason) -> None:
    directory = RunDirectory(tmp_path)
    recorded = Recorded(seconds=0.1, operations=0, saves=0)
    exploration = Exploration(workload="job", command=("job",), outcome=outcome, reasons=reasons, recorded=recorded, seconds=0.1)

    write_documents(exploration, directory)

    (finding,) = msgspec.json.decode(directory.verdict_path.read_bytes(), type=Verdict).findings
    assert (finding.checker, finding.outcome, finding.reason) == ("kill-points", outcome, reason)
    assert msgspec.json.decode(directory.exploration_path.read_bytes(), type=Exploration) == exploration
    assert "<html" in directory.report_path.read_text()
