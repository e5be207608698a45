"""What goes between an executor and its workers: one JSON document a line.

By the standard library's ``json``, since a path may hold bytes that are no UTF-8, which ``msgspec`` does not write.
"""

import json
from typing import TypeVar

import msgspec

from harness.explore.recipe import Recipe, Tried

IDLE_S_MAX = 3600.0
"""An executor closes its workers; one that outlived an hour without a word has been forgotten."""

Document = TypeVar("Document", bound=msgspec.Struct)


class Setup(msgspec.Struct, frozen=True, kw_only=True):
    """The first line that a worker gets; tasks follow.

    Attributes:
        recipe: How recovery is tried.
        blobs: Directory of the blobs.
        place: Directory of the worker's own.
        run_id: Of the exploration.
        surroundings: The environment around that of the recipe.
        owns: A directory that the worker removes when it leaves; empty: somebody else does.
        idle_s_max: It leaves when it has had nothing to do for so long.
        has_company: Whether others try recoveries of the job by the same contents (``judging.company``).
    """

    recipe: Recipe
    blobs: str
    place: str
    run_id: str
    surroundings: dict[str, str]
    owns: str = ""
    idle_s_max: float = IDLE_S_MAX
    has_company: bool = False


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker says of a task; ``replaced``: why it went on in another way, a sentence for each time."""

    tried: Tried
    replaced: tuple[str, ...] = ()


def encode(document: msgspec.Struct) -> bytes:
    """A line."""
    return json.dumps(msgspec.to_builtins(document, str_keys=True)).encode() + b"\n"


def decode(line: bytes, kind: type[Document]) -> Document:
    """A document from its line.

    Raises:
        ValueError: When the line is none.
    """
    return msgspec.convert(json.loads(line), kind, str_keys=True)
