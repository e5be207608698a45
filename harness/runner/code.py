"""The code that a workload's trajectory depends on, as files: an uninterrupted run, and a verdict, hold for these and no others."""

import contextlib
import hashlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

import harness
from harness.config import CONFIG_NAME
from harness.errors import InvalidDocumentError
from harness.scenario import Workload

CODE_SUFFIXES = frozenset({".py", ".toml", ".json", ".yaml", ".yml", ".cfg", ".ini", ".txt", ".sh"})
"""Files that count as a workload's code where it does not say its sources."""
SOURCE_FILES_MAX = 5000
"""More files than that are no workload: someone named a home directory."""
ENTRIES_MAX = 50_000
"""Looked at in one tree before it is given up, code or not: half a second."""
FOREIGN_FOLDERS = frozenset({"__pycache__", "runs", "node_modules"})
"""What is made or installed beside a workload's own files."""


def source_files(workload: Workload, root: Path) -> list[Path]:
    """The files that a workload's trajectory depends on: what it names, what its commands name, else the code in its directory.

    Raises:
        InvalidDocumentError: When one that it names is not there, or nobody could read that many.
    """
    directory = (root / workload.directory).resolve()
    named = (*workload.command, *workload.outside.inspect)
    files = {directory / part for part in named if os.path.isfile(directory / part)}  # noqa: PTH113  no error for a long one
    for source in workload.sources:
        tree = directory / source
        if not tree.exists():
            raise _refused(workload, f"{source!r} is not in {directory}", ELSEWHERE)
        files.update([tree] if tree.is_file() else _files_below(tree, workload))
    if not workload.sources:
        files.update(path for path in _files_below(directory, workload) if path.suffix in CODE_SUFFIXES and path.name != CONFIG_NAME)
        files.update(_imported_files(workload, directory))
    if len(files) > SOURCE_FILES_MAX:
        raise _refused(workload, f"more than {SOURCE_FILES_MAX} files of code are in {directory}", NAME_SOURCES)
    return sorted(files)


def _imported_files(workload: Workload, directory: Path) -> Iterator[Path]:
    """Code that the job may import from elsewhere: by ``PYTHONPATH``, or from a package that is installed where it is worked on.

    What has no end is left out, as an installation would be: its job names its sources.
    """
    path = workload.environment.get("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    named = [directory / part for part in path.split(os.pathsep) if part]
    for tree in sorted({tree.resolve() for tree in (*named, *_worked_on())}):
        if tree.is_relative_to(directory) or directory.is_relative_to(tree) or not tree.is_dir():
            continue
        with contextlib.suppress(InvalidDocumentError):
            found = [path for path in _files_below(tree, workload) if path.suffix == ".py"]
            yield from found if len(found) <= SOURCE_FILES_MAX else ()


def _worked_on() -> Iterator[Path]:
    """Where the packages lie that are installed as editable, but for this one.

    Source: https://packaging.python.org/en/latest/specifications/direct-url/
    """
    for folder in sys.path:
        for note in sorted(Path(folder or ".").glob("*.dist-info/direct_url.json")):
            with contextlib.suppress(OSError, msgspec.MsgspecError):
                origin = msgspec.json.decode(note.read_bytes(), type=_Origin)
                place = Path(unquote(urlsplit(origin.url).path))
                if origin.dir_info.editable and place.resolve() != Path(harness.__file__).parents[1]:
                    yield place


class _Directory(msgspec.Struct):
    editable: bool = False


class _Origin(msgspec.Struct):
    """Where a package was installed from."""

    url: str = ""
    dir_info: _Directory = msgspec.field(default_factory=_Directory)


ELSEWHERE = "correct it, or name with --root what workloads are relative to: an uninterrupted run is kept by its content"
NAME_SOURCES = "name in `sources` those that the job depends on"


def _files_below(tree: Path, workload: Workload) -> Iterator[Path]:
    """Files of a tree, but for hidden ones, runs and what is made or installed there.

    What we cannot list the job cannot read either: it runs as the same user.

    Raises:
        InvalidDocumentError: When there is no end of them.
    """
    looked_at = 0
    for folder, folders, names in os.walk(tree):
        looked_at += len(folders) + len(names)
        if looked_at > ENTRIES_MAX:
            raise _refused(workload, f"more than {ENTRIES_MAX} files and folders are in {tree}", NAME_SOURCES)
        folders[:] = sorted(name for name in folders if not name.startswith(".") and name not in FOREIGN_FOLDERS)
        for path in (Path(folder, name) for name in sorted(names) if not name.startswith(".")):
            if os.path.isfile(path):  # noqa: PTH113  no error for one that we may not even look at
                yield path


def _refused(workload: Workload, problem: str, advice: str) -> InvalidDocumentError:
    return InvalidDocumentError(document=f"workload {workload.name!r}", field="sources", problem=problem, advice=advice)


def digest_of(path: Path) -> bytes:
    """SHA-256 of a file.

    Raises:
        InvalidDocumentError: When it cannot be read.
    """
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError as error:
        raise InvalidDocumentError(
            document=str(path), field="", problem=error.strerror or str(error), advice="make it readable, or name other `sources`"
        ) from error
