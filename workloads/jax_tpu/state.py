"""The state of the regression and its checkpoint: arrays in one file, their fingerprints beside them in another."""

import io
import json
import zipfile
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from workloads import protocol

ARRAYS_FILE = "arrays.npz"
LEDGER_FILE = "ledger.json"  # not manifest.json: that is the name of what describes a whole directory
Arrays = dict[str, np.ndarray]


class DamagedError(Exception):
    """A checkpoint cannot be read, or does not hold what was saved."""


@dataclass(frozen=True)
class Cursor:
    """Where the job stands in its data: ``offset`` samples into the shuffled order of ``epoch``."""

    seed: int
    epoch: int = 0
    offset: int = 0

    def order(self, samples: int) -> np.ndarray:
        return np.random.default_rng([self.seed, self.epoch]).permutation(samples)

    def advance(self, batch: int, samples: int) -> "Cursor":
        """Move on by ``batch`` samples, which divide ``samples``."""
        offset = self.offset + batch
        return Cursor(self.seed, self.epoch, offset) if offset < samples else Cursor(self.seed, self.epoch + 1)


@dataclass(frozen=True)
class TrainState:
    """Everything that the next step depends on, after ``step`` completed steps; the same on every rank."""

    step: int
    cursor: Cursor
    params: Arrays
    momentum: Arrays
    rng: np.ndarray

    @classmethod
    def initial(cls, *, seed: int, features: int) -> "TrainState":
        zeros = {"bias": np.zeros((), np.float32), "weights": np.zeros(features, np.float32)}
        return cls(step=0, cursor=Cursor(seed), params=zeros, momentum=zeros, rng=np.array([0, seed], np.uint32))

    def digests(self) -> dict[str, str]:
        return {
            "params": _digest(self.params),
            "optimizer": _digest(self.momentum),
            "rng": _digest({"key": self.rng}),
            "data": protocol.digest(json.dumps(asdict(self.cursor))),
            "step": protocol.digest(str(self.step)),
        }


def _digest(arrays: Arrays) -> str:
    ordered = [(name, np.asarray(arrays[name])) for name in sorted(arrays)]
    return protocol.digest(
        *(
            part
            for name, array in ordered
            for part in (name, array.dtype.name, str(array.shape), array.astype(array.dtype.newbyteorder("<")).tobytes())
        )
    )


def encode(state: TrainState) -> dict[str, bytes]:
    """The state as the files of a checkpoint."""
    arrays = {"rng": state.rng}
    arrays |= {f"params.{name}": array for name, array in state.params.items()}
    arrays |= {f"momentum.{name}": array for name, array in state.momentum.items()}
    packed = io.BytesIO()
    np.savez(packed, **arrays)
    ledger = {"step": state.step, "cursor": asdict(state.cursor), "digests": state.digests()}
    return {ARRAYS_FILE: packed.getvalue(), LEDGER_FILE: json.dumps(ledger).encode()}


def decode(files: dict[str, bytes]) -> TrainState:
    """The state that ``encode`` made, each part compared with the fingerprint taken before the save.

    Raises:
        DamagedError: a file is missing or unreadable, or a part differs.
    """
    try:
        ledger = json.loads(files[LEDGER_FILE])
        with np.load(io.BytesIO(files[ARRAYS_FILE]), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        state = TrainState(
            step=ledger["step"],
            cursor=Cursor(**ledger["cursor"]),
            params=_part(arrays, "params."),
            momentum=_part(arrays, "momentum."),
            rng=arrays["rng"],
        )
        expected = ledger["digests"]
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise DamagedError(f"unreadable: {type(error).__name__}: {error}") from error
    differing = [part for part, digest in state.digests().items() if expected.get(part) != digest]
    if differing:
        raise DamagedError(f"not what was saved: {', '.join(differing)} differ")
    return state


def write_checkpoint(state: TrainState, directory: Path) -> None:
    for name, data in encode(state).items():
        (directory / name).write_bytes(data)


def read_checkpoint(directory: Path) -> TrainState:
    """Read what ``write_checkpoint`` wrote; raises as ``decode``."""
    try:
        files = {name: (directory / name).read_bytes() for name in (ARRAYS_FILE, LEDGER_FILE)}
    except OSError as error:
        raise DamagedError(f"unreadable: {type(error).__name__}: {error}") from error
    return decode(files)


def _part(arrays: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
