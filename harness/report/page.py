"""One run as one page."""

from pathlib import Path

from harness.report.record import read_record
from harness.report.summary import summary_of
from harness.report.templating import render
from harness.store import RunDirectory


def write_run(directory: RunDirectory) -> Path:
    """Write the page of a run and return its path.

    Raises:
        StoreError: When it cannot be written; an older page is intact.
    """
    record = read_record(directory)
    page = render("run.html.j2", {"summary": summary_of(record), "record": record})
    directory.write(directory.report_path, page)
    return directory.report_path
