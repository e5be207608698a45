"""Which runs have made something on a project, written down before it is made: so that it is found again when nobody else remembers."""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from harness.errors import StoreError
from harness.targets.gcp.connection import EMULATOR_VARIABLE
from harness.targets.gcp.place import Place


class Footprint(msgspec.Struct, frozen=True, kw_only=True):
    """Where a run has made things.

    Attributes:
        run_id: Whose they are.
        place: Where.
        emulator: Of a run on an emulator, its addresses; a real project of that name has nothing to do with it.
        is_of_cluster: Whether it has a namespace in the cluster of the place, too.
    """

    run_id: str
    place: Place
    emulator: str = ""
    is_of_cluster: bool = False


def footprints_directory() -> Path:
    """Where they are written, of this user."""
    base = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(base) / "harness" / "gcp"


def write_footprint(run_id: str, place: Place, environment: Mapping[str, str], *, is_of_cluster: bool = False) -> None:
    """Write down that a run is about to make things.

    Raises:
        StoreError: When it cannot be written; nothing must be made then.
    """
    path = _path_of(run_id)
    emulator = environment.get(EMULATOR_VARIABLE, "")
    footprint = Footprint(run_id=run_id, place=place, emulator=emulator, is_of_cluster=is_of_cluster)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        staged = path.with_suffix(".new")
        staged.write_bytes(msgspec.json.encode(footprint))
        staged.replace(path)
    except OSError as error:
        raise StoreError(path=path, attempted="write down where the run makes things in", reason=error.strerror or str(error)) from error


def read_footprint(run_id: str) -> Footprint | None:
    """Where a run has made things; None: nowhere, or it is all removed."""
    try:
        return msgspec.json.decode(_path_of(run_id).read_bytes(), type=Footprint)
    except (OSError, msgspec.MsgspecError):
        return None


def footprints() -> list[Footprint]:
    """All that are written down; a file that says nothing is passed over."""
    found = [read_footprint(path.stem) for path in sorted(footprints_directory().glob("*.json"))]
    return [footprint for footprint in found if footprint is not None]


def remove_footprint(run_id: str) -> None:
    """All of it is removed."""
    with contextlib.suppress(OSError):
        _path_of(run_id).unlink()


def _path_of(run_id: str) -> Path:
    return footprints_directory() / f"{run_id}.json"
