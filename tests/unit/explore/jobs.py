"""Recordings of jobs that save in typical ways, and of jobs that do anything."""

import posixpath
from pathlib import Path

from hypothesis import strategies as st

from tests.unit.explore.recordings import Recording

PICK = st.integers(0, 999)
NAME = st.sampled_from("abc")
BYTES = st.binary(min_size=1, max_size=4)

ACTIONS = st.lists(
    st.one_of(
        st.tuples(st.just("create"), PICK, NAME, BYTES),
        st.tuples(st.just("create"), PICK, NAME, BYTES),
        st.tuples(st.just("write"), PICK, BYTES, st.integers(0, 6)),
        st.tuples(st.just("write"), PICK, BYTES, st.integers(0, 6)),
        st.tuples(st.just("truncate"), PICK, st.integers(0, 6)),
        st.tuples(st.just("modify"), PICK, BYTES, st.booleans()),
        st.tuples(st.just("close"), PICK),
        st.tuples(st.just("sync"), PICK),
        st.tuples(st.just("mkdir"), PICK, NAME),
        st.tuples(st.just("mkdir"), PICK, NAME),
        st.tuples(st.just("rename"), PICK, PICK, NAME),
        st.tuples(st.just("rename"), PICK, PICK, NAME),
        st.tuples(st.just("exchange"), PICK, PICK),
        st.tuples(st.just("link"), PICK, PICK, NAME),
        st.tuples(st.just("symlink"), PICK, NAME, NAME),
        st.tuples(st.just("move_in"), PICK, NAME, BYTES),
        st.tuples(st.just("move_out"), PICK),
        st.tuples(st.just("unlink"), PICK),
        st.tuples(st.just("acknowledge"), PICK),
    ),
    min_size=8,
    max_size=25,
)


def perform(recording: Recording, actions: list[tuple], *, syncs: bool = False) -> Recording:
    """Do what is possible of the actions; with ``syncs``, everything is durable after each operation."""
    recording.syncs_always = syncs
    job = _Job(recording)
    for name, *arguments in actions:
        getattr(job, name)(*arguments)
    recording.end()
    return recording


class _Job:
    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.directories, self.links = {0}, set[int]()  # by node

    def create(self, directory, name, content):
        path = self._new(directory, name)
        if path is not None:
            self.recording.create(path)
            self.recording.write(path, content)

    def write(self, number, content, offset):
        if path := self._pick(number, self.recording.handles):
            self.recording.write(path, content, offset)

    def truncate(self, number, size):
        if path := self._pick(number, self.recording.handles):
            self.recording.truncate(path, size)

    def modify(self, number, content, truncates):
        path = self._pick(number, self._files() - self._of(self.links) - self.recording.handles.keys())
        if path:
            self.recording.open(path, truncates=truncates)
            self.recording.write(path, content)

    def close(self, number):
        if path := self._pick(number, self.recording.handles):
            self.recording.close(path)

    def sync(self, number):
        self.recording.sync(self._pick(number, self.recording.nodes))

    def mkdir(self, directory, name):
        path = self._new(directory, name)
        if path is not None:
            self.recording.mkdir(path)
            self.directories.add(self.recording.last_node)

    def rename(self, number, directory, name):
        path = self._there(number)
        to = self._new(directory, name, replaces=True)
        nodes = self.recording.nodes
        if path is None or to is None or f"{to}/".startswith(f"{path}/") or (to in nodes and nodes[path] in self.directories):
            return
        self.recording.rename(path, to, does_nothing=nodes[path] == nodes.get(to))

    def exchange(self, number, other):
        path, to = self._there(number), self._there(other)
        if path is None or to is None or f"{to}/".startswith(f"{path}/") or f"{path}/".startswith(f"{to}/"):
            return
        self.recording.rename(path, to, exchanges=True, does_nothing=self.recording.nodes[path] == self.recording.nodes[to])

    def link(self, number, directory, name):
        path, to = self._pick(number, self._files()), self._new(directory, name)
        if path is not None and to is not None:
            self.recording.link(path, to)

    def symlink(self, directory, name, target):
        path = self._new(directory, name)
        if path is not None:
            self.recording.symlink(path, target)
            self.links.add(self.recording.last_node)

    def move_in(self, directory, name, content):
        to = self._new(directory, name)
        if to is not None:
            self.recording.move_in(to, {"a": content}, unsynced=len(content) > 1)
            self.directories.add(self.recording.nodes[to])

    def move_out(self, number):
        path = self._there(number)
        if path is not None and not any(f"{each}/".startswith(f"{path}/") for each in self.recording.handles):
            self.recording.move_out(path)

    def unlink(self, number):
        path = self._pick(number, self.recording.nodes.keys() - {"."} - self.recording.handles.keys())
        if path is None or any(each.startswith(f"{path}/") for each in self.recording.nodes):
            return
        if self.recording.nodes[path] in self.directories:
            self.recording.rmdir(path)
        else:
            self.recording.unlink(path)

    def acknowledge(self, step):
        self.recording.say("save.end", step=step)

    def _of(self, nodes):
        return {path for path, node in self.recording.nodes.items() if node in nodes}

    def _files(self):
        return self.recording.nodes.keys() - self._of(self.directories)

    def _there(self, number):
        return self._pick(number, self.recording.nodes.keys() - {"."})

    def _pick(self, number, paths):
        known = sorted(paths)
        return known[number % len(known)] if known else None

    def _new(self, directory, name, *, replaces=False):
        path = posixpath.normpath(f"{self._pick(directory, self._of(self.directories))}/{name}")
        is_free = path not in self.recording.nodes or (replaces and path in self._files())
        return path if is_free and path not in self.recording.handles else None


def orbax_like(directory: Path, *, files: int = 14, steps: int = 1) -> Recording:
    """A save of many files in a temporary directory that gets its name by a rename; nothing is synced."""
    recording = Recording(directory)
    for step in range(1, steps + 1):
        recording.say("save.begin", step=step)
        recording.mkdir(f"{step}.tmp")
        for number in range(files):
            recording.save_file(f"{step}.tmp/part-{number:02}", f"{step}-{number}".encode())
        recording.rename(f"{step}.tmp", str(step))
        recording.say("save.end", step=step, digests={"params": f"{step:02x}"})
    recording.end()
    return recording
