"""What the cluster refuses, told to whom it concerns: as a capability's contract wants it, or as the mistake of whoever wrote it."""

from collections.abc import Iterator
from contextlib import contextmanager

from harness.errors import InvalidDocumentError, UndoError
from harness.kind import CommandFailedError
from harness.targets.kubernetes.api import ApiError, Object, name_of


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


@contextmanager
def told_as_written_wrong(thing: Object, document: str) -> Iterator[None]:
    """What the API server refuses for how it is written is the mistake of its document; empty: it is ours, and stays an ``ApiError``."""
    try:
        yield
    except ApiError as error:
        if not document or not error.is_of_writing:
            raise
        what = f"{thing['kind']} {name_of(thing)}"
        told = error.message or f"{error.reason}, of apiVersion {thing.get('apiVersion')}"
        raise InvalidDocumentError(document=document, field=what, problem=f"the API server does not take it: {told}") from error
