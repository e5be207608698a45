"""The storage models: what each can leave when a process, the mount beside it or a node is lost."""

from harness.explore.models.gcsfuse import GCSFUSE_FLAT, GCSFUSE_HNS
from harness.explore.models.model import Candidate, StorageModel
from harness.explore.models.object_store import OBJECT_STORE
from harness.explore.models.posix import POSIX
from harness.explore.models.posix_weak import POSIX_WEAK
from harness.explore.states import Model

MODELS: dict[Model, StorageModel] = {model.name: model for model in (POSIX, POSIX_WEAK, GCSFUSE_FLAT, GCSFUSE_HNS, OBJECT_STORE)}
"""All of them by name, the most faithful storage first."""

__all__ = ["MODELS", "Candidate", "StorageModel"]
