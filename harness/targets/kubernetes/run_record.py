"""What a run has made on the cluster, written down before it is made: whoever finds the harness dead can take it away again."""

import os
from pathlib import Path

import msgspec

from harness.errors import StoreError
from harness.kind.cache import CACHE_ADVICE, run_records_dir
from harness.undo import RestoreCluster, UndoJournal


class Replaced(msgspec.Struct, frozen=True, kw_only=True):
    """An object beyond the namespace that the run has applied; ``before`` is what it was, as JSON, empty when it was not there."""

    api_version: str
    plural: str
    name: str
    before: str = ""


class RunRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A run on the cluster.

    Attributes:
        run_id: The run.
        namespace: Its own, with all that is in it.
        directory: Its part of the storage that outlives nodes.
        checkpoint_dir: Where its checkpoints belong when it is over; a link to ``directory`` while it lasts. Empty: they lie there already.
        replaced: Cluster-scoped objects.
        cluster_uid: Which cluster it is; empty in records of a version that did not say.
        journal: Where the undos of its faults are written; empty where none are, or in records of a version that did not say.
        is_storage_only: Whether all else is taken away: its checkpoints cannot go back to their place, which keeps no other run waiting.
    """

    run_id: str
    namespace: str
    directory: str
    checkpoint_dir: str = ""
    replaced: tuple[Replaced, ...] = ()
    cluster_uid: str = ""
    journal: str = ""
    is_storage_only: bool = False

    def is_of(self, cluster_uid: str) -> bool:
        """Whether it is of this cluster, and not of one of the same name that is gone."""
        return self.cluster_uid in ("", cluster_uid)

    def has_lost_journal(self) -> bool:
        """Whether its run directory is gone, and nobody can tell what its faults have done to the cluster."""
        return bool(self.journal) and not Path(self.journal).parent.is_dir()

    def owes(self) -> bool:
        """Whether something that its faults did to the cluster is not taken back yet; a journal that cannot be read may say so."""
        try:
            owed = UndoJournal(Path(self.journal)).owed() if self.journal else []
        except OSError:
            return True
        return any(isinstance(entry.undo, RestoreCluster) for entry in owed)


def record_path(cluster_name: str, run_id: str) -> Path:
    """Where the record of a run lies while the run lasts."""
    return run_records_dir(cluster_name) / f"{run_id}.json"


def write_record(cluster_name: str, record: RunRecord) -> None:
    """Make a record durable.

    Raises:
        StoreError: When it cannot be; nothing may then be made.
    """
    path = record_path(cluster_name, record.run_id)
    temporary = path.with_suffix(".tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("wb") as file:
            file.write(msgspec.json.encode(record))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise StoreError(path=path, attempted="write", reason=error.strerror or str(error), advice=CACHE_ADVICE) from error


def read_record(cluster_name: str, run_id: str) -> RunRecord | None:
    """The record of a run; None when it has left nothing.

    Raises:
        StoreError: When what lies there cannot be read, or is no record: what the run has left is then not known.
    """
    path = record_path(cluster_name, run_id)
    try:
        return msgspec.json.decode(path.read_bytes(), type=RunRecord)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StoreError(path=path, attempted="read", reason=error.strerror or str(error), advice=CACHE_ADVICE) from error
    except msgspec.MsgspecError as error:
        advice = "remove it once you know that nothing of the run is left"
        raise StoreError(path=path, attempted="read", reason=f"not the record of a run: {error}", advice=advice) from error


def recorded_runs(cluster_name: str) -> list[str]:
    """The runs that have left a record, readable or not."""
    return sorted(path.stem for path in run_records_dir(cluster_name).glob("*.json"))


def remove_record(cluster_name: str, run_id: str) -> None:
    """The run has left nothing."""
    record_path(cluster_name, run_id).unlink(missing_ok=True)
