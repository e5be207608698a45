"""All runs on one page."""

from pathlib import Path

from harness.report.summary import summarize
from harness.report.templating import render
from harness.store import RunDirectory, RunStore


def write_index(store: RunStore) -> Path:
    """Write the page over all runs and return its path.

    Raises:
        StoreError: When it cannot be written; an older page is intact.
    """
    rows = [summarize(directory) for directory in store.runs() if directory.path.parent.parent == store.root]
    directory = RunDirectory(store.root)
    path = store.root / "index.html"
    directory.write(path, render("index.html.j2", {"rows": rows}))
    return path
