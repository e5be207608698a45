"""Trees of crash states that share what they have in common: a state that differs in one file costs the directories above it, no more."""

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Union

from harness.explore.data_file import DataFile
from harness.explore.states import Directory, File, Link, Thing

DIRECTORY = Directory()

HASHED_BYTES_MAX = 8 << 20
"""A larger content is known by where its bytes lie, not by what they are: each write that may be missing makes another one, and to hash all
of those would take minutes. Two such contents with the same bytes from different writes then count as different."""

ORDERED_MAX = 200
"""Of a tree with more paths one order of times counts as any other: to sort them all for each of thousands of states takes too long."""

Order = tuple[tuple[str, ...], ...]
"""Paths that are compared by their times, the oldest first: those in one directory, and those of one name in several; directories with
directories, and files with files.

What stands in the order of the paths themselves is left out; what stands in it here are names of one file.
"""

Child = Union[File, Link, "Branch"]


@dataclass(eq=False, slots=True)
class Branch:
    """A directory with all that is below it; never changed once it is made.

    Attributes:
        children: By name.
        changed: By name, a number that is larger the later a child was changed last; not part of what the directory is.
        nodes: By name, which file it is, where several names may be of one; likewise.
        digest: Of names and contents of everything below, once somebody asked; in raw bytes.
        order: Of the times of everything below, likewise; not part of what the directory is.
    """

    children: Mapping[str, Child]
    changed: Mapping[str, float] = field(default_factory=dict)
    nodes: Mapping[str, int] = field(default_factory=dict)
    digest: bytes = field(default=b"", repr=False)
    order: Order | None = field(default=None, repr=False)


class BranchTree(Mapping[str, Thing]):
    """A ``states.Tree`` over the directory at its top."""

    __slots__ = ("top",)

    def __init__(self, top: Branch) -> None:
        self.top = top

    def __getitem__(self, path: str) -> Thing:
        found: Child = self.top
        for name in path.split("/"):
            if not isinstance(found, Branch):
                raise KeyError(path)
            found = found.children[name]
        return DIRECTORY if isinstance(found, Branch) else found

    def __iter__(self) -> Iterator[str]:
        """All paths, sorted by name within each directory, parents first."""
        pending = [("", self.top)]
        while pending:
            prefix, branch = pending.pop()
            for name in sorted(branch.children):
                yield prefix + name
            pending += [
                (f"{prefix}{name}/", child)
                for name, child in sorted(branch.children.items(), reverse=True)
                if isinstance(child, Branch)
            ]  # fmt: skip

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def by_change(self) -> list[str]:
        """All paths, what was changed last at the end."""
        changed: dict[str, float] = {}
        pending = [("", self.top)]
        while pending:
            prefix, branch = pending.pop()
            changed.update({prefix + name: branch.changed.get(name, 0) for name in branch.children})
            pending += [(f"{prefix}{name}/", child) for name, child in branch.children.items() if isinstance(child, Branch)]
        return sorted(changed, key=lambda path: changed[path])

    def links(self) -> list[tuple[str, ...]]:
        """Paths that are names of one file, those of each."""
        names: defaultdict[int, list[str]] = defaultdict(list)
        pending = [("", self.top)]
        while pending:
            prefix, branch = pending.pop()
            for name, node in branch.nodes.items():
                child = branch.children.get(name)
                if isinstance(child, File):
                    names[node].append(prefix + name)
                elif isinstance(child, Branch):
                    pending.append((f"{prefix}{name}/", child))
        return sorted(tuple(sorted(paths)) for paths in names.values() if len(paths) > 1)


def order_of(top: Branch) -> Order:
    """In what order of times a recovery finds the files of a tree, as far as it may go by it, and which names are of one file."""
    if top.order is None:
        tree = BranchTree(top)
        paths = tree.by_change()
        families: defaultdict[tuple[str, str, bool], list[str]] = defaultdict(list)
        for path in paths if len(paths) <= ORDERED_MAX else ():
            directory, _, name = path.rpartition("/")
            is_directory = tree[path] is DIRECTORY
            families[directory, "", is_directory].append(path)
            families["", name, is_directory].append(path)
        found = {tuple(family) for family in families.values() if family != sorted(family)}
        top.order = tuple(sorted(found.union(tree.links())))
    return top.order


def digest_of(top: Branch, data: DataFile) -> bytes:
    """A fingerprint that is the same for the same names and bytes, wherever they came from; only what is new is looked at.

    Bytes of large files must come from the same writes (``HASHED_BYTES_MAX``).
    """
    if top.digest:
        return top.digest
    found = [top]
    for branch in found:
        found += [child for child in branch.children.values() if isinstance(child, Branch) and not child.digest]
    for branch in reversed(found):
        hasher = hashlib.sha256()
        for name in sorted(branch.children):
            hasher.update(name.encode(errors="surrogatepass") + b"\0" + _word(branch.children[name], data) + b"\0")
        branch.digest = hasher.digest()
    return top.digest


def _word(child: Child, data: DataFile) -> bytes:
    if isinstance(child, Branch):
        return b"directory" + child.digest
    if isinstance(child, File):
        content = child.content
        return f"file{data.digest(content) if content.size <= HASHED_BYTES_MAX else content.spans}".encode()
    return b"link" + hashlib.sha256(child.target.encode(errors="surrogatepass")).digest()
