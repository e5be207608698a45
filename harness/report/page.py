"""One run as one page."""

import os.path
import shlex
from pathlib import Path
from urllib.parse import quote

import msgspec

from harness.report.accounts import accounts_of, advising_of, budgets_of, recoveries_of
from harness.report.excerpts import excerpts_of
from harness.report.holdings import files_of, holdings_of
from harness.report.injections import fault_rows
from harness.report.notices import notices_of
from harness.report.realism import fidelity_of, profiles_of
from harness.report.record import Record, read_record
from harness.report.references import references_of
from harness.report.statement import EVIDENCE_MAX, state
from harness.report.summary import summary_of
from harness.report.templating import render
from harness.report.text import Whole
from harness.report.timeline import timeline_of
from harness.scenario import encode
from harness.store import RunDirectory


def write_run(directory: RunDirectory) -> Path:
    """Write the page of a run, and the summary that the index shows, and return the path of the page.

    Raises:
        StoreError: When they cannot be written; older ones are intact.
    """
    record = read_record(directory)
    directory.write(directory.report_path, page_of(record))
    directory.write(directory.summary_path, msgspec.json.encode(summary_of(record)) + b"\n")
    return directory.report_path


def page_of(record: Record) -> bytes:
    """The page of a run that was read."""
    directory = record.directory
    notices = notices_of(record)
    return render(
        "run.html.j2",
        {
            "accounts": accounts_of(record),
            "advising": advising_of(record),
            "argv": shlex.join(record.opened.argv) if record.opened is not None else "",
            "cluster": record.cluster,
            "budgets": budgets_of(notices),
            "evidence_max": EVIDENCE_MAX,
            "excerpts": excerpts_of(record),
            "faults": fault_rows(record),
            "fidelity": fidelity_of(record),
            "files": files_of(record),
            "holdings": holdings_of(record),
            "index_href": quote(os.path.relpath(directory.index_path, directory.path)),
            "profiles": profiles_of(record),
            "record": record,
            "recoveries": recoveries_of(record),
            "references": references_of(record.scenario.why) if record.scenario is not None else (),
            "replay": (f"sh {shlex.quote(str(directory.replay_path))}", f"harness replay {shlex.quote(str(directory.path))}"),
            "scenario_json": Whole(encode(record.scenario).decode()) if record.scenario is not None else "",
            "statement": state(record),
            "summary": summary_of(record),
            "timeline": timeline_of(record),
        },
    )
