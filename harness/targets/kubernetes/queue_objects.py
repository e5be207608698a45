"""Kueue's objects of a run: applied at its start, and at its end the cluster's are as they were before."""

import copy
import json
from collections.abc import Sequence

from harness.clock import Clock
from harness.errors import BrokenHarnessError, InvalidDocumentError
from harness.kind import RUN_ID_LABEL
from harness.targets.kubernetes.api import (
    CLUSTER_QUEUES,
    LOCAL_QUEUES,
    Api,
    ApiError,
    Object,
    Resource,
    conditions_of,
    labels_of,
    name_of,
    resource_of,
    uid_of,
)
from harness.targets.kubernetes.refusals import told_as_written_wrong
from harness.targets.kubernetes.run_record import Replaced

ACTIVE_S = 60.0
"""Kueue sees new objects within a second; after a restart, and on a busy machine, it has its lease again after half a minute."""

SILENT = "Kueue says nothing of it"

GONE_S = 30.0
POLL_S = 0.2

SERVER_FIELDS = ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields", "selfLink")
"""Fields of ``metadata`` that the server sets."""


class QueueObjects:
    """The queue objects of one run. What it makes beside its namespace says whose it is."""

    def __init__(self, api: Api, clock: Clock, manifests: Sequence[Object], *, namespace: str, run_id: str) -> None:
        self._api = api
        self._clock = clock
        self._namespace = namespace
        self._run_id = run_id
        self._made: set[tuple[str, str]] = set()
        self._manifests = [copy.deepcopy(manifest) for manifest in manifests]
        for manifest in self._manifests:
            manifest["metadata"].pop("namespace", None)  # it is the run's own

    def replaced(self) -> tuple[Replaced, ...]:
        """What of the cluster's own they replace, or make: to be written down before ``apply``."""
        found: list[Replaced] = []
        for manifest in self._manifests:
            resource = _resource(manifest)
            if resource.is_namespaced:
                continue
            before = self._api.get(resource, name_of(manifest))
            if before is None:
                self._made.add((resource.plural, name_of(manifest)))
            text = "" if before is None else json.dumps(_without_server_fields(before))
            found.append(Replaced(api_version=resource.api_version, plural=resource.plural, name=name_of(manifest), before=text))
        return tuple(found)

    def apply(self, document: str = "") -> None:
        """Make them, after ``replaced``; ``document`` is where they are written. Harmless twice.

        Raises:
            InvalidDocumentError: When the server takes one for written wrong.
            ApiError: When it refuses one otherwise.
        """
        for manifest in self._manifests:
            resource = _resource(manifest)
            is_made = (resource.plural, name_of(manifest)) in self._made
            body = _with_label(manifest, self._run_id) if is_made else manifest
            with told_as_written_wrong(manifest, document):
                self._api.apply(resource, body, self._namespace if resource.is_namespaced else "")

    def await_active(self, document: str = "") -> None:
        """Wait until Kueue takes jobs in these queues; ``document`` is where they are written.

        Raises:
            InvalidDocumentError: When Kueue says of what is written why it does not.
            BrokenHarnessError: When it does not, and says nothing, or the queues are the guide's.
        """
        deadline_s = self._clock.monotonic_s() + ACTIVE_S
        while waiting := self._inactive():
            if self._clock.monotonic_s() > deadline_s:
                told = "; ".join(waiting)
                if document and SILENT not in told:
                    raise InvalidDocumentError(document=document, field="", problem=f"Kueue takes no jobs in these queues: {told}")
                raise BrokenHarnessError(f"Kueue has not activated the queues of the run in {ACTIVE_S:g} s: {told}")
            self._clock.sleep(POLL_S)

    def _inactive(self) -> list[str]:
        try:
            return self._told_inactive()
        except ApiError as error:
            if not error.is_passing:
                raise
            return [f"{SILENT}: {error}"]

    def _told_inactive(self) -> list[str]:
        waiting: list[str] = []
        for manifest in self._manifests:
            resource = _resource(manifest)
            if resource.plural not in (CLUSTER_QUEUES.plural, LOCAL_QUEUES.plural):
                continue
            found = self._api.get(resource, name_of(manifest), self._namespace if resource.is_namespaced else "")
            active = [one for one in conditions_of(found or {"metadata": {}}) if one["type"] == "Active"]
            if not any(one["status"] == "True" for one in active):
                told = f"{active[0].get('reason', '')}: {active[0].get('message', '')}" if active else SILENT
                waiting.append(f"{resource.plural} {name_of(manifest)} ({told})")
        return waiting


def put_back(api: Api, clock: Clock, replaced: Sequence[Replaced], *, run_id: str) -> list[str]:
    """Let the cluster's queue objects be as they were before a run; says what could not be done. Harmless twice.

    Queues go first: Kueue keeps flavors and checks for as long as a queue uses them. What was not there before is deleted when the run has
    made it: a run that was killed before it made anything may find what somebody else has made since.
    """
    made: list[tuple[Resource, str, str]] = []
    order = sorted(replaced, key=lambda one: one.plural != CLUSTER_QUEUES.plural)
    for one in order:
        resource = Resource(one.api_version, one.plural, is_namespaced=False)
        if one.before:
            api.apply(resource, json.loads(one.before))
            continue
        found = api.get(resource, one.name)
        if found is not None and labels_of(found).get(RUN_ID_LABEL) == run_id:
            api.delete(resource, one.name, uid=uid_of(found))
            made.append((resource, one.name, uid_of(found)))
    deadline_s = clock.monotonic_s() + GONE_S
    while left := [f"{resource.plural} {name}" for resource, name, uid in made if _is_there(api, resource, name, uid)]:
        if clock.monotonic_s() > deadline_s:
            return [f"{what} is still being deleted after {GONE_S:g} s" for what in left]
        clock.sleep(POLL_S)
    return []


def _resource(manifest: Object) -> Resource:
    resource = resource_of(manifest)
    assert resource is not None, "manifests are checked when they are read"
    return resource


def _with_label(manifest: Object, run_id: str) -> Object:
    labels = {**labels_of(manifest), RUN_ID_LABEL: run_id}
    return {**manifest, "metadata": {**manifest["metadata"], "labels": labels}}


def _is_there(api: Api, resource: Resource, name: str, uid: str) -> bool:
    found = api.get(resource, name)
    return found is not None and uid_of(found) == uid


def _without_server_fields(found: Object) -> Object:
    metadata = {name: value for name, value in found["metadata"].items() if name not in SERVER_FIELDS}
    return {**{name: value for name, value in found.items() if name != "status"}, "metadata": metadata}
