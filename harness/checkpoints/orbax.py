"""Orbax checkpoints on a path that looks local: ``<step>/<item>/…``, written as ``<step>.orbax-checkpoint-tmp/`` and renamed.

The rename commits. That ``commit_success.txt``, ``_CHECKPOINT_METADATA``, ``_sharding`` or ``array_metadatas`` is absent means nothing
here, and the bytes of the arrays are not judged: Orbax restores a flipped one without an error. Complete means that a restore finds what
it opens: every item that the checkpoint lists, and in each the files that it cannot do without.

Source: orbax-checkpoint 0.12.8, each file of a checkpoint deleted, emptied and cut in half, then restored.
"""

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.checkpoints.content import read_small
from harness.checkpoints.layout import NO_STEP, Found, list_directory, may_be_directory, path_of_step, step_of
from harness.checkpoints.tree import Tree
from harness.scenario.faults import PathClass

TEMPORARY = ".orbax-checkpoint-tmp"
COMMIT_MARKER = "commit_success.txt"
CHECKPOINT_METADATA = "_CHECKPOINT_METADATA"
TREE_METADATA = "_METADATA"
MANIFEST = "manifest.ocdbt"

JSON_BYTES_MAX = 16 << 20
"""The description of some ten thousand arrays; a larger one is taken for sound without being read."""

OCDBT_MAGIC = bytes.fromhex("0cdb3a2a")
"""Begins a manifest; its own length, eight bytes little-endian, comes next.

Source: https://google.github.io/tensorstore/kvstore/ocdbt/index.html#storage-format
"""

_METADATA_NAMES = frozenset({CHECKPOINT_METADATA, TREE_METADATA, "_sharding", MANIFEST, ".zarray", ".zgroup", ".zattrs", "zarr.json"})
_FINAL = re.compile(r"[0-9]+")
_TEMPORARY_STEP = re.compile(rf"([0-9]+){re.escape(TEMPORARY)}")
_ARRAY_SIGN = re.compile(r"_METADATA|_sharding|array_metadatas|d|manifest\.ocdbt|ocdbt\.process_[0-9]+")


@dataclass(frozen=True)
class Orbax:
    """The steps below ``root``."""

    root: Path

    def find(self) -> list[Found]:
        """Directories named by a number, and temporary ones."""
        found: list[Found] = []
        for entry in filter(may_be_directory, list_directory(self.root)):
            path = self.root / entry.name
            if _FINAL.fullmatch(entry.name):
                found.append(Found(path=path, step=step_of(entry.name)))
            elif TEMPORARY in entry.name:
                match = _TEMPORARY_STEP.match(entry.name)
                found.append(Found(path=path, step=step_of(match[1]) if match else NO_STEP, is_temporary=True))
        return found

    def is_complete(self, found: Found, tree: Tree) -> bool:
        """At least one item, all that are listed, and in each what a restore opens."""
        return _Step(found.path, tree).is_complete()

    def choose(self, found: Sequence[Found], _is_committed: Callable[[Found], bool]) -> Found | None:
        """The highest number, even of an empty directory: that is what ``latest_step`` does."""
        return found[0] if found else None

    def classes_of(self, path: str) -> frozenset[PathClass]:
        """By the names that Orbax gives; what a JSON item holds is data of the job."""
        if PurePosixPath(path).name == COMMIT_MARKER:
            return frozenset[PathClass](("commit-marker",))
        return frozenset[PathClass](("metadata",) if is_metadata(path) else ("data",))

    def paths_beside(self, _path_class: PathClass) -> list[Path]:
        """None: the highest number is the newest."""
        return []

    def final_path(self, step: int) -> Path:
        """The directory of a step."""
        return path_of_step(self.find(), step, self.root / str(step))

    def temporary_path(self, step: int) -> Path:
        """The name it is written under."""
        return self.root / f"{self.final_path(step).name}{TEMPORARY}"


def is_metadata(path: str) -> bool:
    """Whether a file describes arrays, and is none."""
    parts = PurePosixPath(path)
    return parts.name in _METADATA_NAMES or parts.parent.name == "array_metadatas"


@dataclass(frozen=True)
class _Step:
    """What one step directory holds."""

    path: Path
    tree: Tree

    def is_complete(self) -> bool:
        """See ``Orbax.is_complete``. Without a manager, the arrays lie in the step directory itself."""
        top = self._names_in("")
        if any(map(_ARRAY_SIGN.fullmatch, top)):
            return self._holds_arrays("")
        items = {name for name in top if name in self.tree.directories}
        return bool(items) and self._listed_items() <= items and all(self._holds_item(f"{item}/") for item in items)

    def _listed_items(self) -> set[str]:
        """The items that were saved; none where the list is not readable, which Orbax does not mind either."""
        try:
            document = self._json_of(CHECKPOINT_METADATA)
        except ValueError:
            return set()
        handlers = document.get("item_handlers") if isinstance(document, dict) else None
        return set(handlers) if isinstance(handlers, dict) else set()

    def _holds_item(self, prefix: str) -> bool:
        names = self._names_in(prefix)
        if TEMPORARY in prefix:
            return False
        if any(map(_ARRAY_SIGN.fullmatch, names)):
            return self._holds_arrays(prefix)
        return self._has_data(prefix) and self._is_json(f"{prefix}metadata")

    def _holds_arrays(self, prefix: str) -> bool:
        """Descriptions parse where they are there, the manifest is whole, and the data that it refers to exist."""
        by_process = [path for path in self.tree.by_path if path.startswith(f"{prefix}array_metadatas/")]
        if not all(map(self._is_json, (f"{prefix}{TREE_METADATA}", *by_process))):
            return False
        document = self._json_of(f"{prefix}{TREE_METADATA}")
        if isinstance(document, dict) and document.get("use_ocdbt") is False:
            return self._has_data(prefix)
        # A process that wrote arrays of JAX described them, and put their bytes in a directory of its own; NumPy's are not described.
        own = [name for name in self._names_in(prefix) if name.startswith("ocdbt.")]
        has_own_data = not by_process or any(self._has_data(f"{prefix}{name}/d/") for name in own)
        return has_own_data and self._has_data(f"{prefix}d/") and self._is_manifest(f"{prefix}{MANIFEST}")

    def _names_in(self, prefix: str) -> set[str]:
        paths = (*self.tree.by_path, *self.tree.directories)
        return {path.removeprefix(prefix).split("/", 1)[0] for path in paths if path.startswith(prefix)}

    def _has_data(self, prefix: str) -> bool:
        """Whether there are data below ``prefix``, and none of them in an empty file: no writer commits one."""
        below = (file for path, file in self.tree.by_path.items() if path.startswith(prefix))
        sizes = [file.size_bytes for file in below if not is_metadata(file.path) and not file.path.endswith(COMMIT_MARKER)]
        return bool(sizes) and all(sizes)

    def _is_manifest(self, path: str) -> bool:
        content = read_small(self.path / path, JSON_BYTES_MAX) if path in self.tree.by_path else None
        return content is not None and content.startswith(OCDBT_MAGIC) and int.from_bytes(content[4:12], "little") == len(content)

    def _is_json(self, path: str) -> bool:
        """Whether a file is JSON, or absent."""
        try:
            self._json_of(path)
        except ValueError:
            return False
        return True

    def _json_of(self, path: str) -> object:
        """The document in a file; None when it is absent, or too large to be read.

        Raises:
            ValueError: When it is no JSON; NaN is allowed, as Orbax writes it.
        """
        content = read_small(self.path / path, JSON_BYTES_MAX) if path in self.tree.by_path else None
        try:
            return None if content is None else json.loads(content)
        except RecursionError as error:
            raise ValueError(f"{path} is nested too deeply") from error
