"""What a run leaves behind on the engine when the harness itself is killed, and its end: for ``harness clean``."""

from harness.errors import TargetUnavailableError
from harness.targets.docker.presence import may_hold_containers, open_engine


def left_behind(run_id: str) -> list[str]:
    """The run's containers, one line each."""
    return [f"container {name}" for name in _containers(run_id, is_removing=False)]


def remove_left_behind(run_id: str) -> list[str]:
    """Remove them, running or not; one line each. Doing it twice is harmless."""
    return [f"removed container {name}" for name in _containers(run_id, is_removing=True)]


def _containers(run_id: str, *, is_removing: bool) -> list[str]:
    if not may_hold_containers():
        return []
    try:
        with open_engine() as engine:
            found = engine.containers_of(run_id)
            for container, _ in found if is_removing else ():
                engine.remove(container)
            return [name for _, name in found]
    except TargetUnavailableError:  # what it held, if anything, does not run either
        return []
