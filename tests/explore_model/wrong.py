"""Checkpointers that are wrong in one known way each; most are right but for a method."""

import json

from tests.explore_model.checkpointer import Journal, Loaded, ManifestLast, Renaming, SingleFile, State


class SavesInPlace(SingleFile):
    """The only copy is overwritten."""

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        self.write(self.PATH, self.content(step, state))
        self.sync()


class NeverSyncs(Renaming):
    """Page cache is taken for storage."""

    def sync(self, path: str = ".") -> None:
        pass


class SyncsNoDirectory(Renaming):
    """The files are durable, their names are not."""

    def sync(self, path: str = ".") -> None:
        if self.disk.is_file(path):
            self.disk.sync(path)


class SyncsNothingInAnEmergency(Renaming):
    """There is no time for it, they say."""

    is_hasty = False

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        self.is_hasty = is_emergency
        super().save(step, state, is_emergency=is_emergency)

    def sync(self, path: str = ".") -> None:
        if not self.is_hasty:
            self.disk.sync(path)


class SyncsAfterRename(SingleFile):
    """The new name may be durable before its bytes are, and the old bytes have no name by then."""

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        self.disk.open(self.TEMPORARY)
        self.fill(self.TEMPORARY, self.content(step, state))
        self.disk.close(self.TEMPORARY)
        self.disk.rename(self.TEMPORARY, self.PATH)
        self.sync(self.PATH)
        self.sync()


class SyncsTheFileOnly(SingleFile):
    """After the rename the file is synced, under its new name, and not the directory that the name is in."""

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        self.write(self.TEMPORARY, self.content(step, state))
        self.disk.rename(self.TEMPORARY, self.PATH)
        self.sync(self.PATH)


class PointsBeforeData(Renaming):
    """``latest`` is replaced, by the book, before there is anything that it points at."""

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        self.point(step)
        super().save(step, state, is_emergency=is_emergency)

    def point(self, step: int) -> None:
        self.write("latest.new", str(step).encode())
        self.disk.rename("latest.new", "latest")
        self.sync()

    def restore(self) -> Loaded | None:
        super().restore()
        if not self.disk.exists("latest"):
            return None
        loaded = self.load(self.disk.read("latest").decode())
        if loaded is None:
            raise ValueError("latest points at nothing that can be restored")
        return loaded


class PointsInPlace(PointsBeforeData):
    """The data is right and comes first; ``latest`` is overwritten in place."""

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        Renaming.save(self, step, state, is_emergency=is_emergency)
        self.point(step)

    def point(self, step: int) -> None:
        self.write("latest", str(step).encode())
        self.sync()


class DeletesOldBeforeNew(Renaming):
    """To save room."""

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        for old in [old for old in self.steps() if old != step]:
            self.disk.clear(str(old))
        super().save(step, state, is_emergency=is_emergency)


class PicksNewestName(Renaming):
    """Files go where they belong one after the other, and whatever has the highest number is restored."""

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        if not self.disk.exists(str(step)):
            self.disk.mkdir(str(step))
        self.fill_directory(str(step), step, state)
        self.sync(str(step))
        self.sync()

    def load(self, directory: str) -> Loaded | None:
        """Any trouble is somebody else's."""
        return int(directory), self.state_of({part: self.disk.read(f"{directory}/{part}") for part in ("weights", "loader")})

    def restore(self) -> Loaded | None:
        return self.load(str(self.steps()[0])) if self.steps() else None

    def collect(self) -> None:
        for step in self.steps()[2:]:
            self.disk.clear(str(step))


class TrustsTheRename(PicksNewestName):
    """A directory that has its final name is whole, since it got it by a rename; as Orbax does it on what looks like a local directory."""

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        temporary = f"{step}.tmp"
        self.disk.clear(temporary)
        if self.disk.exists(str(step)):
            return
        self.disk.mkdir(temporary)
        self.fill_directory(temporary, step, state)
        self.sync(temporary)
        self.disk.rename(temporary, str(step))
        self.sync()


class LoadsDamagedBytes(SingleFile):
    """What is missing of the file reads as zeros, and nobody synced it."""

    def sync(self, path: str = ".") -> None:
        pass

    def content(self, step: int, state: State) -> bytes:
        return b"".join(value.to_bytes(8, "big") for value in (step, *state.values()))

    def loaded(self, content: bytes) -> Loaded | None:
        numbers = [int.from_bytes(content.ljust(40, b"\0")[start : start + 8], "big") for start in range(0, 40, 8)]
        return numbers[0], dict(zip(("params", "optimizer", "rng", "cursor"), numbers[1:], strict=True))


class ChecksSizeOnly(SingleFile):
    """A file that has its size is whole; it is written at once, under another name, and not synced: its bytes may all be zeros."""

    SIZE = 32

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        if self.size_of(f"{step}.checkpoint") == self.SIZE:
            return
        self.disk.open(self.TEMPORARY)
        self.disk.write(self.TEMPORARY, b"".join(value.to_bytes(8, "big") for value in state.values()))
        self.disk.close(self.TEMPORARY)
        self.disk.rename(self.TEMPORARY, f"{step}.checkpoint")
        self.sync()

    def restore(self) -> Loaded | None:
        found = [name for name in self.disk.names() if name.endswith(".checkpoint") and self.size_of(name) == self.SIZE]
        if not found:
            return None
        content = self.disk.read(found[-1])
        numbers = [int.from_bytes(content[start : start + 8], "big") for start in range(0, self.SIZE, 8)]
        return int(found[-1].removesuffix(".checkpoint")), dict(zip(("params", "optimizer", "rng", "cursor"), numbers, strict=True))

    def size_of(self, name: str) -> int:
        return len(self.disk.read(name)) if self.disk.exists(name) else 0


class ForgetsOptimizer(Renaming):
    """A part of the state is neither saved nor missed."""

    def parts(self, state: State) -> dict[str, bytes]:
        return super().parts({**state, "optimizer": 0})


class SkipsSavesAfterResume(Renaming):
    """It believes that the next steps are saved already."""

    is_resumed = False

    def restore(self) -> Loaded | None:
        found = super().restore()
        self.is_resumed = found is not None
        return found

    def wants(self, step: int) -> bool:
        return not self.is_resumed


class RestoresOffByOne(Renaming):
    """The state of a step is taken for that of the step before."""

    def restore(self) -> Loaded | None:
        found = super().restore()
        return found if found is None else (found[0] - 1, found[1])


class RestartsDataOrder(Renaming):
    """The cursor is restored, and then set back."""

    def resumed(self, state: State) -> State:
        return {**state, "cursor": 0}


class MarksBeforeData(PicksNewestName):
    """What has the marker is whole; the marker comes first."""

    def fill_directory(self, directory: str, step: int, state: State) -> None:
        self.write(f"{directory}/committed", b"1")
        super().fill_directory(directory, step, state)

    def restore(self) -> Loaded | None:
        committed = [step for step in self.steps() if self.disk.exists(f"{step}/committed")]
        return self.load(str(committed[0])) if committed else None


class DeletesTheOnlyCopy(SingleFile):
    """The old one goes before the new one has its name, and recovery takes the new one for rubbish."""

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        self.write(self.TEMPORARY, self.content(step, state))
        self.disk.clear(self.PATH)
        self.disk.rename(self.TEMPORARY, self.PATH)
        self.sync()


class AppendsWithoutDigest(Journal):
    """A journal of records of one size: what is whole, and where the next one begins, is a matter of arithmetic."""

    SIZE = 40

    def restore(self) -> Loaded | None:
        content = self.disk.read(self.NAME) if self.disk.exists(self.NAME) else b""
        count = len(content) // self.SIZE
        return self.loaded(content[(count - 1) * self.SIZE : count * self.SIZE]) if count else None

    def line(self, step: int, state: State) -> bytes:
        return b"".join(value.to_bytes(8, "big") for value in (step, *state.values()))

    def loaded(self, line: bytes) -> Loaded | None:
        numbers = [int.from_bytes(line[start : start + 8], "big") for start in range(0, self.SIZE, 8)]
        return numbers[0], dict(zip(("params", "optimizer", "rng", "cursor"), numbers[1:], strict=True))


class CrashesOnStaleTemporary(Renaming):
    """A temporary directory that a crash has left is in the way for ever."""

    def restore(self) -> Loaded | None:
        return next((loaded for step in self.steps() if (loaded := self.load(str(step))) is not None), None)

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        self.disk.mkdir(f"{step}.tmp")
        self.fill_directory(f"{step}.tmp", step, state)
        self.sync(f"{step}.tmp")
        self.disk.clear(str(step))
        self.disk.rename(f"{step}.tmp", str(step))
        self.sync()


class ReusesTemporary(SingleFile):
    """The temporary file is opened without being cut: what a crash left in it, if that was longer, stays behind the new content."""

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        extra = "the rank that was told to go" if is_emergency else ""
        self.disk.open(self.TEMPORARY, keeps=True)
        self.fill(self.TEMPORARY, self.content(step, {**state, extra: 1} if extra else state))
        self.sync(self.TEMPORARY)
        self.disk.close(self.TEMPORARY)
        self.disk.rename(self.TEMPORARY, self.PATH)
        self.sync()

    def restore(self) -> Loaded | None:
        loaded = self.loaded(self.disk.read(self.PATH)) if self.disk.exists(self.PATH) else None
        return loaded and (loaded[0], {part: loaded[1][part] for part in ("params", "optimizer", "rng", "cursor")})


class CollectsByName(Renaming):
    """It keeps the newest name, torn or not, and deletes the good one before it."""

    def collect(self) -> None:
        for step in self.steps()[1:]:
            self.disk.clear(str(step))


class AcknowledgesBeforeClose(SingleFile):
    """fsync has returned, so the save is acknowledged; a mount of a bucket makes an object of it at close, which is at the next save."""

    opened = ""

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        self.release()
        if self.is_good(f"{step}.checkpoint"):
            return
        self.opened = f"{step}.checkpoint"
        self.disk.open(self.opened)
        self.fill(self.opened, self.content(step, state))
        self.sync(self.opened)
        self.sync()

    def restore(self) -> Loaded | None:
        found = [loaded for name in self.names() if (loaded := self.loaded(self.disk.read(name))) is not None]
        return max(found, key=lambda loaded: loaded[0], default=None)

    def finish(self, result: bytes) -> None:
        self.release()
        super().finish(result)

    def release(self) -> None:
        if self.opened:
            self.disk.close(self.opened)
            self.opened = ""

    def names(self) -> list[str]:
        return [name for name in self.disk.names() if name.endswith(".checkpoint")]

    def is_good(self, name: str) -> bool:
        return self.disk.exists(name) and self.loaded(self.disk.read(name)) is not None


class AcknowledgesBeforeData(Renaming):
    """The save goes on in the background, and nobody waits for it."""

    pending: Loaded | None = None

    def save(self, step: int, state: State, *, is_emergency: bool = False) -> None:
        self.pending = (step, state)

    def collect(self) -> None:
        if self.pending is not None:
            super().save(*self.pending)
            self.pending = None
        super().collect()


class AppendsItsResult(Renaming):
    """Each end of the job adds to its result."""

    def finish(self, result: bytes) -> None:
        self.disk.open_at_end("result")
        self.fill("result", result)
        self.disk.close("result")


class WritesManifestFirst(ManifestLast):
    """What belongs to a checkpoint is said before it is there, and digests are not compared: names that are there are enough."""

    def fill_directory(self, directory: str, step: int, state: State) -> None:
        self.write(f"{directory}/manifest", self.manifest(step, state))
        for part, content in self.parts(state).items():
            self.write(f"{directory}/{part}", content)

    def load(self, directory: str) -> Loaded | None:
        try:
            step = json.loads(self.disk.read(f"{directory}/manifest"))["step"]
        except (OSError, ValueError):
            return None
        return step, self.state_of({part: self.disk.read(f"{directory}/{part}") for part in ("weights", "loader")})
