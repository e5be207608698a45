"""A prefix of a bucket in memory: generations, preconditions, and whatever happens between a listing and a read."""

from collections.abc import Callable, Iterator
from pathlib import Path

from harness.targets.gcp.bucket import ObjectSeen
from harness.targets.gcp.failures import Failure, PreconditionError


class FakePrefix:
    """What ``BucketPrefix`` is to its users."""

    def __init__(self, objects: dict[str, tuple[int, bytes]] | None = None, prefix: str = "") -> None:
        self.objects = {} if objects is None else objects
        self.prefix = prefix
        self.generations = 0
        self.before_read: Callable[[str], None] = lambda name: None
        self.before_write: Callable[[str], None] = lambda name: None

    def below(self, name: str) -> "FakePrefix":
        return FakePrefix(self.objects, f"{self.prefix}{name}/")

    def put(self, name: str, data: bytes) -> int:
        """As somebody else writes."""
        self.generations += 1
        generation = 1000 + self.generations + max((seen for seen, _ in self.objects.values()), default=0)
        self.objects[f"{self.prefix}{name}"] = (generation, data)
        return generation

    def list_objects(self, *, below: str = "", from_name: str = "") -> Iterator[ObjectSeen]:
        for name, (generation, data) in sorted(self.objects.items()):
            short = name.removeprefix(self.prefix)
            if name.startswith(f"{self.prefix}{below}") and short >= from_name:
                yield ObjectSeen(name=short, generation=generation, size_bytes=len(data))

    def list_folders(self, below: str) -> list[str]:
        names = [seen.name for seen in self.list_objects(below=below)]
        return sorted({name.removeprefix(below).split("/")[0] for name in names if "/" in name.removeprefix(below)})

    def read(self, name: str, *, generation: int = 0) -> bytes | None:
        self.before_read(name)
        found = self.objects.get(f"{self.prefix}{name}")
        return None if found is None or (generation and found[0] != generation) else found[1]

    def read_file(self, seen: ObjectSeen, path: Path, *, beat: Callable[[], None] = lambda: None) -> bool:
        data = self.read(seen.name, generation=seen.generation)
        beat()
        if data is not None:
            path.write_bytes(data)
        return data is not None

    def write_file(self, name: str, path: Path, *, generation: int) -> int:
        return self.write(name, path.read_bytes(), generation=generation)

    def write(self, name: str, data: bytes, *, generation: int | None = None) -> int:
        self.before_write(name)
        self._require(name, generation)
        return self.put(name, data)

    def delete(self, name: str, *, generation: int | None = None) -> bool:
        if f"{self.prefix}{name}" not in self.objects:
            return False
        self._require(name, generation)
        del self.objects[f"{self.prefix}{name}"]
        return True

    def _require(self, name: str, generation: int | None) -> None:
        found = self.objects.get(f"{self.prefix}{name}", (0, b""))[0]
        if generation is not None and found != generation:
            failure = Failure(code="FAILED_PRECONDITION", message="conditionNotMet")
            raise PreconditionError(service="storage", method="objects", resource=name, failure=failure)
