"""``harness clean --target gcp``: removes what known runs have left on a project, and tells what else says that it is a run's."""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from harness.cli.cleaning import Told, What
from harness.cli.owed import owed_on
from harness.clock import Clock
from harness.errors import HarnessError, UsageError
from harness.store import RunStore

REQUIRED = ("project", "region", "bucket")
"""To find things by their label; jobs are listed."""


_WHAT = {"removed": What.DONE, "left alone": What.ALONE, "failed": What.FAILED}


def clean_project(
    options: Mapping[str, str], config: Path | None, *, runs_dir: Path, clock: Clock, run_ids: Sequence[str] = ()
) -> Iterator[Told]:
    """Remove on the named project what runs have left that are written down here, or are named; tell each thing as it happens.

    What other runs have left is told, and left alone. Meanwhile the project is ours: somebody else's things are a living run's, perhaps.

    Raises:
        UsageError: When no project is named, or a run by an id that is none.
        TargetUnavailableError: When there are no clients or credentials.
    """
    from harness.config import GcpTable, read_gcp
    from harness.targets.gcp.calling import Caller
    from harness.targets.gcp.connection import EMULATOR_VARIABLE, connect
    from harness.targets.gcp.guard import NotAllowedError
    from harness.targets.gcp.leftover_search import RUN_ID
    from harness.targets.gcp.lock_holders import LockedError
    from harness.targets.gcp.place import resolve_place
    from harness.targets.gcp.secrets import Secrets
    from harness.targets.gcp.sweeping import Sweep, known_runs

    for run_id in run_ids:
        if not RUN_ID.fullmatch(run_id):
            raise UsageError(f"--run {run_id!r} is no run's id: twelve hexadecimal digits, as they follow harness/ in the bucket")
    place = resolve_place(options, os.environ, read_gcp(config) if config is not None else GcpTable(), required=REQUIRED)
    name = f"project {place.project}"
    secrets = Secrets.of(os.environ)
    known = known_runs(place, os.environ.get(EMULATOR_VARIABLE, "")) | frozenset(run_ids)
    with closing(connect(place.project, os.environ, secrets)) as clients:
        caller = Caller(clock=clock, secrets=secrets, renew=clients.renew, problem=clients.problem)
        try:
            found = Sweep(clients, caller, place)
            found.require_allowed()
            owed: list[str] = []

            def keeps() -> bool:
                emulator = os.environ.get(EMULATOR_VARIABLE, "")
                owed.extend(owed_on(place.project, emulator, runs_dir, clock, is_asked=lambda owner: not owner.is_elsewhere))
                return bool(owed)

            with found.held(keeps=keeps) as dead:
                for left, said, became in found.sweep(known=known, living=living_runs(runs_dir, clock)):
                    yield Told(_WHAT[became.value], f"run {left.run_id} on {name}", said)
            if owed:
                yield Told(What.FAILED, name, f"its lock is kept, for something is owed to it still: {'; '.join(owed)}")
            elif dead is not None:
                yield Told(What.DONE, name, f"removed the lock of {dead.owner}, who has died or whose lease is over")
        except (LockedError, NotAllowedError) as error:
            yield Told(What.ALONE, name, f"left alone: {error}")
        except HarnessError as error:
            yield Told(What.FAILED, name, f"cannot be asked what is left on it: {error}")


def living_runs(runs_dir: Path, clock: Clock) -> frozenset[str]:
    """Ids of the runs here that go on, or that go on elsewhere as far as anybody here can tell."""
    found: set[str] = set()
    for run in RunStore(runs_dir, clock).runs():
        owner = run.owner()
        if owner is not None and ((run.is_running() and not owner.is_orphaned) or (owner.is_elsewhere and not run.is_over())):
            found.add(owner.run_id)
    return frozenset(found)
