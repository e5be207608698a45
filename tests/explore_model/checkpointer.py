"""Checkpointers that are right, each on the storage that its design is for."""

import hashlib
import json

from tests.explore_model.disk import Disk

State = dict[str, int]

Loaded = tuple[int, State]
"""A step, and the state after it."""

KEPT = 2
"""Good checkpoints that garbage collection leaves."""


class Checkpointer:
    """What a job wants of one; as it stands, it neither keeps nor restores."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk

    def wants(self, step: int) -> bool:
        """Whether a step that is due is saved."""
        return True

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        """Make a step durable; it is acknowledged when this returns."""

    def restore(self) -> Loaded | None:
        """The newest that can be trusted; it also removes what cannot."""
        return None

    def resumed(self, state: State) -> State:
        """What training goes on with after a restore."""
        return state

    def collect(self) -> None:
        """Remove what is no longer needed."""

    def finish(self, result: bytes) -> None:
        """Leave the result of the job; it is made again whenever the job ends again."""
        self.write("result", result)

    def write(self, path: str, content: bytes) -> None:
        """A whole file, in two pieces, as a library with a buffer does it."""
        self.disk.open(path)
        self.fill(path, content)
        self.sync(path)
        self.disk.close(path)

    def fill(self, path: str, content: bytes) -> None:
        self.disk.write(path, content[: len(content) // 2])
        self.disk.write(path, content[len(content) // 2 :])

    def sync(self, path: str = ".") -> None:
        self.disk.sync(path)


class Renaming(Checkpointer):
    """For any storage: a temporary directory, synced file by file, then a rename, then fsync of the parent.

    Nothing is trusted because of its name: a manifest with digests says what belongs to a checkpoint.
    """

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        if self.load(str(step)) is not None:
            return
        temporary = f"{step}.tmp"
        self.disk.clear(temporary)
        self.disk.clear(str(step))
        self.disk.mkdir(temporary)
        self.fill_directory(temporary, step, state)
        self.sync(temporary)
        self.disk.rename(temporary, str(step))
        self.sync()

    def restore(self) -> Loaded | None:
        for name in [name for name in self.disk.names() if name.endswith(".tmp")]:
            self.disk.clear(name)
        return next((loaded for step in self.steps() if (loaded := self.load(str(step))) is not None), None)

    def collect(self) -> None:
        good = [step for step in self.steps() if self.load(str(step)) is not None]
        for step in [step for step in self.steps() if step not in good[:KEPT]]:
            self.disk.clear(str(step))

    def fill_directory(self, directory: str, step: int, state: State) -> None:
        """All parts, then what they are."""
        for part, content in self.parts(state).items():
            self.write(f"{directory}/{part}", content)
        self.write(f"{directory}/manifest", self.manifest(step, state))

    def parts(self, state: State) -> dict[str, bytes]:
        """By name of the file."""
        return {
            "weights": f"{state['params']:08} {state['optimizer']:08}".encode(),
            "loader": f"{state['rng']:08} {state['cursor']:08}".encode(),
        }

    def manifest(self, step: int, state: State) -> bytes:
        return json.dumps({"step": step, "digests": {part: digest(content) for part, content in self.parts(state).items()}}).encode()

    def steps(self) -> list[int]:
        """Of directories that have the name of a step, the newest first."""
        return sorted((int(name) for name in self.disk.names() if name.isdecimal()), reverse=True)

    def load(self, directory: str) -> Loaded | None:
        """None: it is not there, or not whole."""
        try:
            manifest = json.loads(self.disk.read(f"{directory}/manifest"))
            contents = {part: self.disk.read(f"{directory}/{part}") for part in manifest["digests"]}
        except (OSError, ValueError):
            return None
        if manifest["digests"] != {part: digest(content) for part, content in contents.items()}:
            return None
        return manifest["step"], self.state_of(contents)

    def state_of(self, contents: dict[str, bytes]) -> State:
        """Parts as numbers.

        Raises:
            ValueError: When they are none.
        """
        params, optimizer = (int(word) for word in contents["weights"].split())
        rng, cursor = (int(word) for word in contents["loader"].split())
        return {"params": params, "optimizer": optimizer, "rng": rng, "cursor": cursor}


class ManifestLast(Renaming):
    """For object stores and mounts of them: every file under its own name, the manifest when all others are closed; no rename, no fsync."""

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        if self.load(str(step)) is not None:
            return
        self.disk.clear(str(step))
        self.disk.mkdir(str(step))
        self.fill_directory(str(step), step, state)

    def sync(self, path: str = ".") -> None:
        pass


class SyncedManifestLast(ManifestLast):
    """The same for any storage: synced, and the directories last."""

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        super().save(step, state, is_emergency=is_emergency)
        self.sync(str(step))
        self.sync()

    def sync(self, path: str = ".") -> None:
        self.disk.sync(path)


class Journal(Checkpointer):
    """For any storage: one file that only grows, a line with its own digest a checkpoint; what is torn is cut off before the next one."""

    NAME = "journal"

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        is_new = not self.disk.exists(self.NAME)
        self.disk.open_at_end(self.NAME)
        self.fill(self.NAME, self.line(step, state))
        self.sync(self.NAME)
        self.disk.close(self.NAME)
        if is_new:
            self.sync()

    def restore(self) -> Loaded | None:
        if not self.disk.exists(self.NAME):
            return None
        content, size, newest = self.disk.read(self.NAME), 0, None
        for line in content.splitlines(keepends=True):
            loaded = self.loaded(line)
            if loaded is None:
                break
            size, newest = size + len(line), loaded
        if size < len(content):
            self.disk.open(self.NAME, keeps=True)
            self.disk.truncate(self.NAME, size)
            self.sync(self.NAME)
            self.disk.close(self.NAME)
        self.sync()
        return newest

    def line(self, step: int, state: State) -> bytes:
        record = json.dumps([step, state]).encode()
        return digest(record).encode() + b" " + record + b"\n"

    def loaded(self, line: bytes) -> Loaded | None:
        """None: it is not whole."""
        told, _, record = line.rstrip(b"\n").partition(b" ")
        if not line.endswith(b"\n") or told != digest(record).encode():
            return None
        step, state = json.loads(record)
        return step, state


class SingleFile(Checkpointer):
    """For any storage: one file with its own digest, written under another name, synced, and put in the place of the one before by a rename."""

    PATH, TEMPORARY = "checkpoint", "checkpoint.tmp"

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        self.write(self.TEMPORARY, self.content(step, state))
        self.disk.rename(self.TEMPORARY, self.PATH)
        self.sync()

    def restore(self) -> Loaded | None:
        self.disk.clear(self.TEMPORARY)
        return self.loaded(self.disk.read(self.PATH)) if self.disk.exists(self.PATH) else None

    def content(self, step: int, state: State) -> bytes:
        record = json.dumps([step, state]).encode()
        return digest(record).encode() + b" " + record

    def loaded(self, content: bytes) -> Loaded | None:
        told, _, record = content.partition(b" ")
        if told != digest(record).encode():
            return None
        step, state = json.loads(record)
        return step, state


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:16]
