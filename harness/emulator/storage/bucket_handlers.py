"""Buckets: list, get, insert, delete, change, and which permissions the caller has.

Source: https://docs.cloud.google.com/storage/docs/json_api/v1/buckets
"""

from collections.abc import Sequence

from harness.emulator.pages import page_of
from harness.emulator.service import HttpRequest, HttpResponse, Route
from harness.emulator.storage.buckets import BucketSettings
from harness.emulator.storage.handling import Premises
from harness.emulator.storage.listing import RESULTS_MAX
from harness.emulator.storage.preconditions import read_number
from harness.emulator.storage.reading import conditions_of, document_of, host_of, merge, shape_of
from harness.emulator.storage.refusals import required
from harness.emulator.storage.resources import bucket_document, json_response

BUCKETS = "/storage/v1/b"
BUCKET = f"{BUCKETS}/{{bucket}}"


class BucketHandlers:
    """Of one emulator."""

    def __init__(self, premises: Premises) -> None:
        self._premises = premises

    def routes(self) -> Sequence[Route]:
        """What is served."""
        return (
            Route(verb="GET", pattern=BUCKETS, name="storage.buckets.list", handle=self.list),
            Route(verb="POST", pattern=BUCKETS, name="storage.buckets.insert", handle=self.insert, is_write=True),
            Route(verb="GET", pattern=BUCKET, name="storage.buckets.get", handle=self.get),
            Route(verb="PATCH", pattern=BUCKET, name="storage.buckets.patch", handle=self.patch, is_write=True),
            Route(verb="DELETE", pattern=BUCKET, name="storage.buckets.delete", handle=self.delete, is_write=True),
            Route(
                verb="GET",
                pattern=f"{BUCKET}/iam/testPermissions",
                name="storage.buckets.testIamPermissions",
                handle=self.test_permissions,
            ),
        )

    def list(self, request: HttpRequest) -> HttpResponse:
        """The buckets of a project."""
        project = request.query_value("project")
        state = self._premises.world.projects.require("storage.buckets.list", f"projects/{project}", project=project)
        prefix = request.query_value("prefix")
        page, token = page_of(
            [bucket for bucket in self._premises.buckets.of_project(state.name) if bucket.name.startswith(prefix)],
            key=lambda bucket: bucket.name,
            size=read_number("maxResults", request.query_value("maxResults")) or 0,
            token=request.query_value("pageToken"),
            size_max=RESULTS_MAX,
        )
        document: dict[str, object] = {"kind": "storage#buckets"}
        if page:
            document["items"] = [bucket_document(bucket, host_of(request)) for bucket in page]
        if token:
            document["nextPageToken"] = token
        return json_response(document)

    def insert(self, request: HttpRequest) -> HttpResponse:
        """Make a bucket."""
        project = request.query_value("project")
        if not project:
            raise required("project")
        state = self._premises.world.projects.require("storage.buckets.create", f"projects/{project}", project=project)
        document = document_of(request.body)
        name = document.get("name")
        if not isinstance(name, str) or not name:
            raise required("name")
        settings = shape_of(document, BucketSettings)
        bucket = self._premises.buckets.create(name, project=state.name, project_number=state.number, settings=settings)
        return json_response(bucket_document(bucket, host_of(request)))

    def get(self, request: HttpRequest) -> HttpResponse:
        """One bucket."""
        bucket = self._premises.bucket(request.parameters["bucket"], "storage.buckets.get")
        conditions_of(request).check(bucket, is_read=True)
        return json_response(bucket_document(bucket, host_of(request)))

    def patch(self, request: HttpRequest) -> HttpResponse:
        """Change what is named in the body."""
        bucket = self._premises.bucket(request.parameters["bucket"], "storage.buckets.update")
        settings = merge(bucket.settings, document_of(request.body))
        changed = self._premises.buckets.change(bucket.name, settings, conditions_of(request))
        return json_response(bucket_document(changed, host_of(request)))

    def delete(self, request: HttpRequest) -> HttpResponse:
        """Remove an empty bucket."""
        bucket = self._premises.bucket(request.parameters["bucket"], "storage.buckets.delete")
        self._premises.buckets.delete(bucket.name, conditions_of(request))
        return HttpResponse(status=204)

    def test_permissions(self, request: HttpRequest) -> HttpResponse:
        """Those of the named permissions that the caller has."""
        bucket = self._premises.buckets.get(request.parameters["bucket"])
        asked = request.query.get("permissions", ())
        if not asked:
            raise required("permissions")
        state = self._premises.world.projects.find(bucket.project)
        held = [permission for permission in asked if state is not None and state.has(permission)]
        document: dict[str, object] = {"kind": "storage#testIamPermissionsResponse"}
        return json_response(document | ({"permissions": held} if held else {}))
