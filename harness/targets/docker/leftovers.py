"""What a run leaves behind on the engine when the harness itself is killed, and its end: for ``harness clean``."""

from harness.errors import TargetUnavailableError
from harness.targets.docker.footprint import footprint_path, read_footprint, remove_footprint
from harness.targets.docker.presence import may_hold_containers, open_engine


def left_behind(run_id: str) -> list[str]:
    """The run's containers, one line each; one line as well when the engine on which it made some cannot be asked."""
    names, problem = _containers(run_id, is_removing=False)
    if problem:
        advice = f"start that engine and run `harness clean`, or remove {footprint_path(run_id)} if it is gone for good"
        return [f"containers, if any: {problem}; {advice}"]
    return [f"container {name}" for name in names]


def remove_left_behind(run_id: str) -> list[str]:
    """Remove them, running or not; one line each. Doing it twice is harmless.

    An engine that cannot be asked stays to be asked the next time; ``left_behind`` tells so, after this as before.
    """
    names, problem = _containers(run_id, is_removing=True)
    if problem:
        return []
    remove_footprint(run_id)
    return [f"removed container {name}" for name in names]


def _containers(run_id: str, *, is_removing: bool) -> tuple[list[str], str]:
    """Names, and why they are not known where the run was on an engine that cannot be asked now."""
    host = read_footprint(run_id)
    if not host and not may_hold_containers():
        return [], ""
    try:
        with open_engine() as engine:
            if host and engine.host != host:
                return [], f"they were made on the engine at {host}, and the one that answers is at {engine.host}"
            found = engine.containers_of(run_id)
            for container, _ in found if is_removing else ():
                engine.remove(container)
            return [name for _, name in found], ""
    except TargetUnavailableError as error:  # a run that made none on any engine has left nothing
        return [], f"the engine at {host} cannot be asked: {error.reason}" if host else ""
