"""A state as a document that travels: its paths with the digests of its files, and its name."""

import hashlib
import json
import posixpath

from harness.explore.data_file import DataFile
from harness.explore.recipe import Piece
from harness.explore.states import File, Link, Tree
from harness.explore.trees import Order


def pieces_of(tree: Tree, data: DataFile, *, root: str) -> tuple[Piece, ...]:
    """All of a tree, sorted by path, so that parents come first.

    A link to a path below ``root``, where the job was recorded, is made relative: from a copy it must not lead back there. Empty: the copy
    lies at that very path.
    """
    pieces = []
    for path in sorted(tree):
        thing = tree[path]
        if isinstance(thing, File):
            pieces.append(Piece(path=path, kind="file", content=data.digest(thing.content)))
        elif isinstance(thing, Link):
            pieces.append(Piece(path=path, kind="link", content=_relative(thing.target, path, root)))
        else:
            pieces.append(Piece(path=path, kind="directory"))
    return tuple(pieces)


def state_name(pieces: tuple[Piece, ...], order: Order = ()) -> str:
    """The name of a state: SHA-256 of its pieces, and of the order of their times; the same whatever it came from."""
    parts: list[object] = [[piece.path, piece.kind, piece.content] for piece in pieces]
    return hashlib.sha256(json.dumps([parts, order] if order else parts).encode()).hexdigest()


def _relative(target: str, path: str, root: str) -> str:
    if not root or (target != root and not target.startswith(root.rstrip("/") + "/")):
        return target
    return posixpath.relpath(target, posixpath.dirname(posixpath.join(root, path)))
