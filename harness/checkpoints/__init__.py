"""Reads checkpoint directories from outside, one module a layout, without the libraries that wrote them."""

from harness.checkpoints.beside import runs_beside
from harness.checkpoints.content import HASH_BYTES_MAX
from harness.checkpoints.ledger import ManifestEntry, manifest, read_manifest, write_manifest
from harness.checkpoints.survey import Survey, newest_committed, paths_of, step_path, survey, temporary_path

__all__ = [
    "HASH_BYTES_MAX",
    "ManifestEntry",
    "Survey",
    "manifest",
    "newest_committed",
    "paths_of",
    "read_manifest",
    "runs_beside",
    "step_path",
    "survey",
    "temporary_path",
    "write_manifest",
]
