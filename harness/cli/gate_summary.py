"""Where the summary of a gate is written, whatever comes of the gate: what somebody reads there is never of another one."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from harness.errors import StoreError, UsageError
from harness.gate.markdown import HEADING, write_without_result
from harness.store import write_whole, writing_problem

GITHUB_SUMMARY = "GITHUB_STEP_SUMMARY"
"""Names the file that a step of GitHub Actions appends its summary to.

Source: https://docs.github.com/en/actions/reference/workflows-and-actions/workflow-commands#adding-a-job-summary.
"""

BEGUN = "it was begun, and has not said how it ended"


class SummaryPlaceError(UsageError):
    """The summary would be written over something else, or cannot be: nothing is written there."""


class Summary:
    """The summary of one gate.

    Args:
        path: Where it is written; None: only where GitHub asks for it.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._has_result = False

    def require_place(self) -> None:
        """Refuse what cannot be written, and what is there and is no summary.

        Raises:
            SummaryPlaceError: When it is.
        """
        self._require_place_of_github()
        path = self._path
        if path is None:
            return
        if not path.parent.is_dir() or (path.exists() and not path.is_file()):
            raise SummaryPlaceError(f"the summary {path} cannot be written: name a file in a directory that is there")
        if problem := writing_problem(path):
            raise SummaryPlaceError(f"the summary {path} cannot be written: {problem}; name another file with --summary")
        try:
            with path.open("rb") as file:
                there = file.read(len(HEADING.encode()))
        except FileNotFoundError:
            return
        except OSError as error:
            raise SummaryPlaceError(f"the summary {path} cannot be written: {error.strerror or error}; name another file") from error
        if there and there != HEADING.encode():
            raise SummaryPlaceError(f"the summary {path} would overwrite a file that is no summary of a gate: name another file")

    def _require_place_of_github(self) -> None:
        named = os.environ.get(GITHUB_SUMMARY, "")
        if not named:
            return
        path = Path(named)
        problem = "" if os.access(path, os.W_OK) and path.is_file() else writing_problem(path)
        if problem:
            raise SummaryPlaceError(f"the summary {path} cannot be written: {problem}; unset {GITHUB_SUMMARY}, or name a file that can be")

    def require_apart(self, others: Sequence[Path]) -> None:
        """Refuse the place of another file of the gate, also where that is not written yet.

        Raises:
            SummaryPlaceError: When it is one.
        """
        if self._path is not None and self._path.resolve() in [other.resolve() for other in others]:
            raise SummaryPlaceError(f"the summary {self._path} is another file of the gate: name another one")

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Have it say why there is no result, where the gate ends by an error before it has one.

        Raises:
            SummaryPlaceError: When it cannot be written there.
        """
        self.require_place()
        try:
            yield
        except SummaryPlaceError:
            raise
        except BaseException as error:
            why = str(error) or ("interrupted" if isinstance(error, KeyboardInterrupt) else type(error).__name__)
            if not self._has_result:
                with contextlib.suppress(StoreError):  # what has broken is told
                    self.write(write_without_result(why))
            raise

    def begin(self) -> None:
        """Have it say that there is no result yet: whoever is killed says nothing more.

        Raises:
            StoreError: When it cannot be written.
        """
        self._write_file(write_without_result(BEGUN))

    def write(self, markdown: str) -> None:
        """Write it, and append it where GitHub asks for it.

        Raises:
            StoreError: When it cannot be written.
        """
        self._write_file(markdown)
        self._has_result = True
        named = os.environ.get(GITHUB_SUMMARY, "")
        if named:
            try:
                with Path(named).open("a", encoding="utf-8") as file:
                    file.write(markdown)
            except OSError as error:
                advice = f"unset {GITHUB_SUMMARY}, or name a file that can be written"
                raise StoreError(
                    path=Path(named), attempted="append the summary to", reason=error.strerror or str(error), advice=advice
                ) from error

    def _write_file(self, markdown: str) -> None:
        if self._path is not None:
            write_whole(self._path, markdown.encode(), advice="name another file with --summary")
