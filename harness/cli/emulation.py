"""``--emulator``: runs of the target ``gcp`` on an emulator that lives as long as the command."""

import contextlib
from collections.abc import Iterator

from harness.errors import UsageError


@contextlib.contextmanager
def emulated_where_asked(target: str, *, is_asked: bool) -> Iterator[None]:
    """Have an emulator meanwhile, where one is asked for.

    Raises:
        UsageError: When it is asked for and the target is another.
    """
    if not is_asked:
        yield
        return
    if target != "gcp":
        raise UsageError(f"--emulator is for --target gcp, and the target is {target!r}; leave one of them out")
    from harness.emulator.session import emulated_session

    with emulated_session():
        yield
