"""Who has a project: the lock that we take on it, in our name, and hold for a batch of runs."""

import contextlib
import getpass
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import closing

from harness.clock import Clock
from harness.environment import changed_environment
from harness.errors import HarnessError
from harness.targets.gcp.calling import Caller
from harness.targets.gcp.connection import Clients, connect
from harness.targets.gcp.lock_places import LockPlaces
from harness.targets.gcp.place import Place
from harness.targets.gcp.project_lock import RENEW_EVERY_S, ProjectLock
from harness.targets.gcp.secrets import Secrets

LOCK_VARIABLE = "HARNESS_GCP_LOCK"
"""For processes that make the runs of a harness that has the project: by this they know that its lock is theirs."""


def owner_name() -> str:
    """Who we are, for a person that waits for us."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container without a user
        user = "somebody"
    return f"{user}@{os.uname().nodename}, process {os.getpid()}"


def lock_of(place: Place, clients: Clients, caller: Caller) -> ProjectLock:
    """The lock of a place's project."""
    places = LockPlaces(clients, caller, place)
    return ProjectLock(places.own, project=place.project, owner=owner_name(), clock=caller.clock, elsewhere=places.others)


def _never() -> bool:
    return False


@contextlib.contextmanager
def project_held(place: Place, clock: Clock, *, keeps: Callable[[], bool] = _never) -> Iterator[None]:
    """Have a project for a batch of runs in processes of their own, which learn it from their environment.

    Args:
        place: Where it is.
        clock: For leases.
        keeps: Asked at the end whether something is owed to it: then nobody else shall have it before that is done, or the lease is over.
            When this process has ended, ``harness clean --target gcp`` takes it over.

    Raises:
        LockedError: When another has it.
        HarnessError: When the project cannot be asked.
    """
    secrets = Secrets.of(os.environ)
    with closing(connect(place.project, os.environ, secrets)) as clients:
        lock = lock_of(place, clients, Caller(clock=clock, secrets=secrets, renew=clients.renew, problem=clients.problem))
        lock.take("")
        ended = threading.Event()
        keeper = threading.Thread(target=_keep, args=(lock, ended), name="gcp-lock", daemon=True)
        keeper.start()
        try:
            with changed_environment({LOCK_VARIABLE: lock.nonce}):
                yield
        finally:
            ended.set()
            keeper.join()
            if not keeps():
                lock.free()


def _keep(lock: ProjectLock, ended: threading.Event) -> None:
    """Renew it until the end, or until it is lost: then the runs see that it is not theirs, and end themselves."""
    while not ended.wait(RENEW_EVERY_S / 2):
        try:
            lock.keep()
        except HarnessError:
            return
