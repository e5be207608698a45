"""Objects made of objects: copy, rewrite, compose.

A rewrite is complete with its first call, as Google's is between buckets of one location and class.

Source: https://docs.cloud.google.com/storage/docs/json_api/v1/objects/rewrite, …/copy, …/compose
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from harness.emulator.service import HttpRequest, HttpResponse, Route
from harness.emulator.storage.checksums import read_pieces
from harness.emulator.storage.handling import Premises
from harness.emulator.storage.object_handlers import OBJECT, OBJECTS
from harness.emulator.storage.objects import BucketObjects
from harness.emulator.storage.preconditions import Preconditions, read_number
from harness.emulator.storage.reading import conditions_of, document_of, generation_of, host_of, shape_of
from harness.emulator.storage.records import ObjectMetadata, ObjectRecord
from harness.emulator.storage.refusals import invalid, required
from harness.emulator.storage.resources import json_response, object_document

SOURCES_MAX = 32
"""Of one composition."""

_TO = "/b/{destination_bucket}/o/{destination_object}"


class SourceConditions(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What must hold of a source of a composition."""

    if_generation_match: str | int | None = None


class Source(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One source of a composition."""

    name: str
    generation: str | int | None = None
    object_preconditions: SourceConditions = SourceConditions()


class ComposeRequest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The body of a composition."""

    source_objects: Sequence[Source] = ()
    destination: dict[str, object] = {}


class CopyHandlers:
    """Of one emulator."""

    def __init__(self, premises: Premises) -> None:
        self._premises = premises

    def routes(self) -> Sequence[Route]:
        """What is served."""
        return (
            Route(verb="POST", pattern=f"{OBJECT}/copyTo{_TO}", name="storage.objects.copy", handle=self.copy, is_write=True),
            Route(verb="POST", pattern=f"{OBJECT}/rewriteTo{_TO}", name="storage.objects.rewrite", handle=self.rewrite, is_write=True),
            Route(
                verb="POST",
                pattern=f"{OBJECTS}/{{destination_object}}/compose",
                name="storage.objects.compose",
                handle=self.compose,
                is_write=True,
            ),
        )

    def copy(self, request: HttpRequest) -> HttpResponse:
        """Copy an object."""
        record = self._copy(request)
        return json_response(object_document(record, request.parameters["destination_bucket"], host_of(request)))

    def rewrite(self, request: HttpRequest) -> HttpResponse:
        """Copy an object, and say how far that has come: to its end."""
        record = self._copy(request)
        document = object_document(record, request.parameters["destination_bucket"], host_of(request))
        size = str(record.size)
        return json_response(
            {"kind": "storage#rewriteResponse", "totalBytesRewritten": size, "objectSize": size, "done": True, "resource": document}
        )

    def compose(self, request: HttpRequest) -> HttpResponse:
        """Make one object of several of the same bucket, in their order."""
        try:
            asked = msgspec.json.decode(request.body, type=ComposeRequest)
        except msgspec.MsgspecError as error:
            raise invalid(f"Parse Error: {error}") from error
        if not asked.source_objects:
            raise required("sourceObjects")
        if len(asked.source_objects) > SOURCES_MAX:
            raise invalid(f"The number of source components provided ({len(asked.source_objects)}) exceeds the maximum ({SOURCES_MAX})")
        objects = self._premises.objects(request.parameters["bucket"], "storage.objects.get", "storage.objects.create")
        with contextlib.ExitStack() as opened:
            found = [opened.enter_context(_open_source(objects, source)) for source in asked.source_objects]
            pieces = (piece for _, descriptor in found for piece in read_pieces(descriptor))
            record = self._write(
                objects,
                request,
                pieces,
                shape_of(asked.destination, ObjectMetadata),
                component_count=sum(record.component_count or 1 for record, _ in found),
            )
        return json_response(object_document(record, objects.bucket, host_of(request)))

    def _copy(self, request: HttpRequest) -> ObjectRecord:
        source = self._premises.objects(request.parameters["bucket"], "storage.objects.get")
        destination = self._premises.objects(request.parameters["destination_bucket"], "storage.objects.create")
        document = document_of(request.body)
        wanted, conditions = generation_of(request, "sourceGeneration"), conditions_of(request, source=True)
        with source.read(request.parameters["object"], wanted, conditions) as (record, descriptor):
            metadata = shape_of(document, ObjectMetadata) if document else record.metadata
            return self._write(destination, request, read_pieces(descriptor), metadata, component_count=record.component_count)

    def _write(
        self, objects: BucketObjects, request: HttpRequest, pieces: Iterable[bytes], metadata: ObjectMetadata, *, component_count: int
    ) -> ObjectRecord:
        with objects.staging.stage(pieces) as staged:
            return objects.write(
                request.parameters["destination_object"],
                staged,
                metadata,
                conditions=conditions_of(request),
                component_count=component_count,
            )


@contextlib.contextmanager
def _open_source(objects: BucketObjects, source: Source) -> Iterator[tuple[ObjectRecord, int]]:
    match = source.object_preconditions.if_generation_match
    conditions = Preconditions(generation_match=_number(match))
    with objects.read(source.name, _number(source.generation), conditions) as found:
        yield found


def _number(value: str | int | None) -> int | None:
    return read_number("generation", "" if value is None else str(value))
