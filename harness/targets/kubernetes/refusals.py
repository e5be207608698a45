"""What a capability cannot do, as its contract wants to be told."""

from collections.abc import Iterator
from contextlib import contextmanager

from harness.errors import UndoError
from harness.kind import CommandFailedError
from harness.targets.kubernetes.api import ApiError


@contextmanager
def told_as_lookup_errors() -> Iterator[None]:
    """What the API server refuses, or a node does not do, is a ``LookupError``; a server that does not answer stays a broken harness."""
    try:
        yield
    except (CommandFailedError, UndoError) as error:
        raise LookupError(str(error)) from error
    except ApiError as error:
        if not error.status:
            raise
        raise LookupError(str(error)) from error
