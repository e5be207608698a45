"""Where a session of tests keeps its plans, and whose they are: what a killed session leaves is then known to be nobody's."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.history import read_regular
from harness.store import Owner, write_whole
from harness.undo import identify

SESSIONS_NAME, OWNER_NAME = ".kill-points", "session.owner"
"""Below the runs directory; and of a session, who has begun it and ends it. It is not called as that of a run, for it is none."""


def place_of(root: Path, session: str) -> Path:
    """Where a session keeps its plans below the runs directory."""
    return root / SESSIONS_NAME / session


def sign(place: Path, process: int) -> None:
    """Say whose a place is, unless that is said.

    Args:
        place: Of the session; it is there.
        process: The id of the process that has begun the session, and lives.

    Raises:
        StoreError: When it cannot be written.
    """
    path = place / OWNER_NAME
    if path.exists():
        return
    owner = Owner(run_id=place.name, process=identify([process])[0], host=os.uname().nodename)
    write_whole(path, msgspec.json.encode(owner))


def remove_dead(root: Path) -> Iterator[str]:
    """Remove what killed sessions of this machine have left below the runs directory; yields their names.

    One that does not say whose it is begins just now, and is left alone.

    Raises:
        OSError: When one cannot be removed.
    """
    for path in sorted(root.glob(f"{SESSIONS_NAME}/*/{OWNER_NAME}")):
        try:
            owner = msgspec.json.decode(read_regular(path), type=Owner)
        except (OSError, msgspec.MsgspecError):  # it goes away just now
            continue
        if owner.is_dead:
            shutil.rmtree(path.parent)
            yield path.parent.name
