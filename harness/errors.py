"""What can go wrong, as a tree.

::

    HarnessError
    ├── UsageError                   the caller must change something; nothing was started (exit 64)
    │   ├── InvalidDocumentError     a scenario, schedule or TOML file that does not validate
    │   ├── UnknownNameError         a scenario, target, checker or path that is not there
    │   ├── WorkloadMissingError     the command of a workload cannot be found
    │   └── CapabilityMissingError   the scenario asks for what the target cannot do
    ├── TargetUnavailableError       the target is not here (a skipped test, not a failed one)
    └── BrokenHarnessError           ours to answer for (exit 70)
        ├── StoreError               the run directory cannot be written or read
        ├── HistoryCorruptError      a line of a history is not an event
        ├── InjectionError           a fault could not be caused
        ├── HealError                a fault could not be undone
        └── UndoError                an undo that is owed could not be done, or its effect was not seen

A broken promise of the job under test is not in this tree: it is a verdict.
Every error builds its message from its fields: what was attempted, what was seen, what to do next.
"""

from collections.abc import Sequence
from pathlib import Path

KNOWN_SHOWN_MAX = 5
"""Names shown where none is close to what was asked for: enough to see their form, few enough for one message."""


class HarnessError(Exception):
    """Anything of the harness that cannot go on."""


class UsageError(HarnessError):
    """The caller must change something; nothing was started."""


class InvalidDocumentError(UsageError, ValueError):
    """A document has a field that does not validate."""

    def __init__(self, *, document: str, field: str, problem: str, advice: str = "") -> None:
        self.document, self.field, self.problem, self.advice = document, field, problem, advice
        where = f"{document}: {field}" if field else document
        super().__init__(f"{where}: {problem}" + (f"; {advice}" if advice else ""))


class UnknownNameError(UsageError, KeyError):
    """A name was asked for that is not in a closed set; ``advice`` says what else may have been meant."""

    def __init__(self, *, kind: str, name: str, known: Sequence[str], advice: str = "") -> None:
        import difflib

        self.kind, self.name, self.known = kind, name, tuple(known)
        close = [found for found in known if name and name in found][:3] or difflib.get_close_matches(name, known, n=3)
        shown = [*sorted(known)[:KNOWN_SHOWN_MAX], *([f"{len(known) - KNOWN_SHOWN_MAX} more"] if len(known) > KNOWN_SHOWN_MAX else [])]
        others = f"did you mean {' or '.join(close)}?" if close else f"known: {', '.join(shown) or 'none'}"
        super().__init__(f"no {kind} is named {name!r}; {others}" + (f"; {advice}" if advice else ""))

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show the repr


class WorkloadMissingError(UsageError):
    """The program of a workload is not on this machine."""

    def __init__(self, *, workload: str, program: str, directory: Path) -> None:
        self.workload, self.program, self.directory = workload, program, directory
        super().__init__(f"workload {workload!r}: cannot find {program!r} from {directory}; correct `command` or install it")


class CapabilityMissingError(UsageError):
    """The scenario asks for something the target cannot do; refused before anything starts."""

    def __init__(self, *, scenario: str, target: str, needs: str, reason: str = "") -> None:
        self.scenario, self.target, self.needs, self.reason = scenario, target, needs, reason
        because = f" ({reason})" if reason else ""
        super().__init__(
            f"scenario {scenario!r} needs {needs}, which target {target!r} does not offer{because}; choose another target or leave it out"
        )


class TargetUnavailableError(HarnessError):
    """The target is not on this machine."""

    def __init__(self, *, target: str, reason: str, advice: str) -> None:
        self.target, self.reason, self.advice = target, reason, advice
        super().__init__(f"target {target!r} is not available: {reason}; {advice}")


class BrokenHarnessError(HarnessError):
    """The harness, not the job, is at fault."""


class StoreError(BrokenHarnessError):
    """A run directory, or what belongs to it elsewhere, could not be written or read."""

    def __init__(
        self, *, path: Path, attempted: str, reason: str, advice: str = "check the disk and the permissions, or choose another --runs-dir"
    ) -> None:
        self.path, self.attempted, self.reason = path, attempted, reason
        super().__init__(f"cannot {attempted} {path}: {reason}; {advice}")


class HistoryCorruptError(BrokenHarnessError):
    """A line of a history is not an event."""

    def __init__(self, *, path: Path, line: int, reason: str) -> None:
        self.path, self.line, self.reason = path, line, reason
        super().__init__(f"{path}:{line}: not an event: {reason}; the history was edited or written by another version")


class InjectionError(BrokenHarnessError):
    """A fault could not be caused. The run then proves nothing: its verdict is unknown."""

    def __init__(self, *, injection: str, fault: str, reason: str) -> None:
        self.injection, self.fault, self.reason = injection, fault, reason
        super().__init__(f"injection {injection!r} ({fault}) could not act: {reason}")


class HealError(BrokenHarnessError):
    """A fault could not be undone; `harness clean` tries again from the journal."""

    def __init__(self, *, injection: str, reason: str) -> None:
        self.injection, self.reason = injection, reason
        super().__init__(f"injection {injection!r} could not be healed: {reason}; run `harness clean`")


class UndoError(BrokenHarnessError):
    """An undo that is owed could not be done, or its effect was not seen; it stays owed."""

    def __init__(self, *, attempted: str, reason: str) -> None:
        self.attempted, self.reason = attempted, reason
        super().__init__(f"cannot {attempted}: {reason}; it stays owed")
