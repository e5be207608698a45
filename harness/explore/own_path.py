"""Whether what a job saves names its checkpoint directory by its absolute path: from a copy that leads elsewhere.

Such a job is tried at the very path at which it was recorded, where that can be. Where nobody saw the path in what was written, since it is
compressed, a recovery that fails and speaks of it proves nothing.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

import msgspec

from harness.explore.data_file import DataFile
from harness.explore.operation_log import OperationLog
from harness.explore.operations import AnyEntry, Blind, Elsewhere, Item, MovedIn, Symlinked
from harness.explore.recipe import Tried

NOTE = "what it saves names the checkpoint directory by its absolute path: recovery is tried there, one at a time"

NOT_THERE = (
    "what is saved names the checkpoint directory by its absolute path, at which this executor cannot put the copies; explore with"
    " --executor local"
)

FOR_PEOPLE = b"Checkpoint commit was successful to "
"""Before a path that nobody reads: Orbax says so in ``commit_success.txt``, of which it only asks whether it is there.

Source: orbax-checkpoint 0.12.8, orbax/checkpoint/_src/path/atomicity.py (``COMMIT_SUCCESS_FILE``).
"""

UNSEEN = "what recovery saves names the checkpoint directory by its absolute path, and what the job itself saves does not"


def names_itself(log: OperationLog, data: DataFile) -> bool:
    """Whether the directory's own path is in what was written: in bytes of files, in names, or where links lead.

    One to three other signs may stand for a slash, as in JSON, which may put a backslash before it, or in the name of a file.
    """
    pattern = _pattern_of(log.header.root)
    return any(_texts_with(pattern, log)) or data.has(pattern)


def names_itself_in_links_only(log: OperationLog, data: DataFile) -> bool:
    """Whether nothing but links below the directory names it: in a copy they are made to lead within the copy."""
    root = log.header.root
    pattern = _pattern_of(root)
    return all(text == root or text.startswith(f"{root}/") for text in _texts_with(pattern, log)) and not data.has(pattern)


def believed(tried: Tried, root: str) -> Tried:
    """What was tried on a copy; nothing is known where a recovery failed and spoke of the path of the recording.

    Args:
        tried: What came of it.
        root: That path; empty: the copies lay there.
    """
    recoveries = (each for each in (tried.first, tried.second) if each is not None)
    if root and any(each.exit_code != 0 and root in each.detail for each in recoveries):
        why = f"recovery failed and named {root}, where the job was recorded: what it saves seems to name its directory by its path"
        return Tried(state=tried.state, lost=f"{why}; explore with --checkpoint-dir")
    return tried


def as_copied(log: OperationLog, *, checkpoints: str) -> OperationLog:
    """A log for copies that lie at ``checkpoints``: at one place nothing must lead from a copy to where the job was recorded.

    Args:
        log: The recording.
        checkpoints: Of the recipe; empty: copies lie anywhere.
    """
    return replace(log, header=msgspec.structs.replace(log.header, root="")) if checkpoints else log


def _pattern_of(root: str) -> re.Pattern[bytes]:
    names = [re.escape(name.encode(errors="surrogatepass")) for name in root.strip("/").split("/")]
    return re.compile(rb"(?<!" + re.escape(FOR_PEOPLE) + rb"/)" + rb"[^A-Za-z0-9]{1,3}?(?:2[Ff])?".join(names))


def _texts_with(pattern: re.Pattern[bytes], log: OperationLog) -> Iterator[str]:
    for each in (*log.header.initial, *log.entries):
        yield from (text for text in _texts_of(each) if pattern.search(text.encode(errors="surrogatepass")))


def _texts_of(entry: AnyEntry | Item) -> tuple[str, ...]:
    """Names, and where links lead."""
    if isinstance(entry, Symlinked | Item):
        return (entry.path, entry.target)
    if isinstance(entry, MovedIn):
        return tuple(text for item in entry.items for text in _texts_of(item))
    if isinstance(entry, Blind | Elsewhere):
        return ()
    return tuple(text for name in ("path", "to") if isinstance(text := getattr(entry, name, ""), str) and text)
