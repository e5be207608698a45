"""What ``harness emulate`` is asked, in words of the emulator."""

import fnmatch
import re
from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from harness.emulator.control_documents import FaultDocument
from harness.emulator.injection import InjectedFault
from harness.errors import UsageError
from harness.history import read_document
from harness.targets.gcp.place import FORMS

_LABEL_KEY, _LABEL_VALUE = re.compile(r"[a-z][a-z0-9_-]{0,62}"), re.compile(r"[a-z0-9_-]{0,63}")
"""Source: https://cloud.google.com/storage/docs/tags-and-labels; letters of other scripts are left to the clients."""


def root_asked_for(text: str) -> Path:
    """A directory; an empty value, as of a variable that is not set, would be the current one.

    Raises:
        UsageError: When it is empty.
    """
    if not text:
        raise UsageError("--root is empty; name a directory, or leave it away: then it goes with the emulator")
    return Path(text)


def require_projects(projects: Sequence[str]) -> None:
    """Refuse what is no ID of a project, and one that is named twice.

    Raises:
        UsageError: When there is one.
    """
    form, meaning = FORMS["project"]
    for project in projects:
        if not re.fullmatch(form, project):
            raise UsageError(f"--project {project!r} is no project; write {meaning}")
    _refuse_twins("--project", projects)


def require_buckets(buckets: Sequence[str], labels: Sequence[str]) -> dict[str, str]:
    """Refuse a bucket that is named twice, and what is no label; returns the labels.

    Args:
        buckets: Their names; the emulator sees whether they can be.
        labels: As ``KEY=VALUE``.

    Raises:
        UsageError: When there is one.
    """
    _refuse_twins("--bucket", buckets)
    if labels and not buckets:
        raise UsageError("--bucket-label labels the buckets of --bucket, and none is named; name one")
    found: dict[str, str] = {}
    for label in labels:
        key, equals, value = label.partition("=")
        if not equals or not _LABEL_KEY.fullmatch(key) or not _LABEL_VALUE.fullmatch(value):
            raise UsageError(
                f"--bucket-label {label!r} is no label; write KEY=VALUE in small letters, digits, _ and -, at most 63 each, a letter first"
            )
        if key in found:
            raise UsageError(f"--bucket-label {key!r} is given twice; give it once")
        found[key] = value
    return found


def _refuse_twins(option: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"{option} {name!r} is named twice; name it once")


def faults_in(path: Path | None, spoken: Collection[str]) -> list[InjectedFault]:
    """The faults of a file: a JSON list of what ``POST /_emulator/v1/injections`` takes.

    Args:
        path: The file; None: no faults.
        spoken: All methods of the emulator, as faults name them.

    Raises:
        UsageError: When it cannot be read, holds something else, or names methods that there are not.
    """
    if path is None:
        return []
    try:
        documents = msgspec.json.decode(read_document(path), type=list[FaultDocument])
    except OSError as error:
        raise UsageError(f"--inject {path} cannot be read: {error.strerror or error}; name a file with a JSON list of faults") from error
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise UsageError(f"--inject {path} is no list of faults: {error}; docs/emulator.md shows one") from error
    found: list[InjectedFault] = []
    for place, document in enumerate(documents):
        try:
            found.append(document.fault())
        except ValueError as error:
            raise UsageError(f"--inject {path}: fault {place + 1}: {error}") from error
        if not fnmatch.filter(spoken, document.method):
            raise UsageError(
                f"--inject {path}: fault {place + 1}: {document.method!r} is no method here; `harness emulate --coverage` lists them all"
            )
    return found
