"""What a target may let us do that runs jobs in containers."""

from pathlib import Path
from typing import Protocol, runtime_checkable


@runtime_checkable
class ImageHost(Protocol):
    """Jobs run in containers of an image: interpreter, files and variables are the image's, not this machine's."""

    def interpreter(self) -> str:
        """What ``{python}`` in a command stands for."""
        ...

    def mounted_at(self, checkpoint_dir: Path) -> str:
        """Where the job sees the checkpoint directory: what ``{checkpoint_dir}`` stands for."""
        ...


@runtime_checkable
class MemoryLimiter(Protocol):
    """The memory of an attempt can be limited (``Launch.memory_mib``): what goes over it is killed by the kernel."""

    def memory_problem(self) -> str:
        """Empty, or why memory cannot be limited on this machine."""
        ...
