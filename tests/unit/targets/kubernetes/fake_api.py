"""A cluster in memory for unit tests: keeps objects as the API server does, and tells changes; it runs nothing."""

import copy
import itertools
import json
import threading
from collections.abc import Iterable
from typing import Any

from harness.targets.kubernetes.api import PODS, Api, ApiError, Listing, Object, Resource
from harness.targets.kubernetes.watching import Change, Watched, Watches

Key = tuple[str, str, str]
"""Plural, namespace, name."""


class FakeApi(Api):
    """The methods of ``Api`` on objects in memory.

    A pod with a grace stays, marked, until ``finish``; everything else goes when it is deleted.
    """

    def __init__(self, objects: Iterable[tuple[Resource, Object]] = ()) -> None:
        self.objects: dict[Key, Object] = {}
        self.changes: list[Change] = []
        self.calls: list[tuple[str, str, str]] = []  # verb, plural, name
        self.failures: dict[tuple[str, str], ApiError] = {}  # verb and plural that fail, until taken out
        self.logs: dict[str, bytes] = {}
        self._numbers = itertools.count(1)
        for resource, item in objects:
            self.put(resource, item)

    # ---- what tests do -----------------------------------------------------------------------------------------------

    def put(self, resource: Resource, item: Object) -> Object:
        """Let an object be exactly so, status included, as a controller or a kubelet would."""
        key = _key(resource, item)
        before = self.objects.get(key)
        item = copy.deepcopy(item)
        item["metadata"].setdefault("uid", before["metadata"]["uid"] if before else f"uid-{next(self._numbers)}")
        item["metadata"]["resourceVersion"] = str(next(self._numbers))
        self.objects[key] = item
        self._tell("modified" if before else "added", resource, item)
        return copy.deepcopy(item)

    def remove(self, resource: Resource, name: str, namespace: str = "") -> None:
        """The object is gone."""
        item = self.objects.pop((resource.plural, namespace, name))
        item["metadata"]["resourceVersion"] = str(next(self._numbers))
        self._tell("deleted", resource, item)

    def finish(self, name: str, namespace: str) -> None:
        """The grace of a pod is over."""
        self.remove(PODS, name, namespace)

    def set_condition(self, resource: Resource, name: str, namespace: str = "", **condition: str) -> Object:
        """Set a condition: ``type``, ``status``, ``reason``, ``message``."""
        item = copy.deepcopy(self.objects[resource.plural, namespace, name])
        conditions = item.setdefault("status", {}).setdefault("conditions", [])
        conditions[:] = [one for one in conditions if one["type"] != condition["type"]] + [condition]
        return self.put(resource, item)

    def watches(self, watched: Iterable[Watched]) -> "FakeWatches":
        return FakeWatches(self, list(watched))

    # ---- what the code under test does -------------------------------------------------------------------------------

    def get(self, resource: Resource, name: str, namespace: str = "") -> Object | None:
        self._called("get", resource, name)
        found = self.objects.get((resource.plural, namespace, name))
        return copy.deepcopy(found)

    def listing(self, resource: Resource, namespace: str = "", selector: str = "") -> Listing:
        self._called("list", resource, "")
        items = [copy.deepcopy(item) for key, item in self.objects.items() if _matches(key, item, resource, namespace, selector)]
        return Listing(items=items, version=str(next(self._numbers)))

    def create(self, resource: Resource, body: Object, namespace: str = "") -> Object:
        body = copy.deepcopy(body)
        self._called("create", resource, body["metadata"].get("name", ""))
        if "name" not in body["metadata"]:
            body["metadata"]["name"] = f"{body['metadata']['generateName']}{next(self._numbers)}"
        if resource.is_namespaced:
            body["metadata"].setdefault("namespace", namespace)
        if _key(resource, body) in self.objects:
            raise ApiError(attempted="create", what=f"{resource.plural}/{body['metadata']['name']}", status=409, reason="AlreadyExists")
        return self.put(resource, body)

    def apply(self, resource: Resource, body: Object, namespace: str = "") -> Object:
        self._called("apply", resource, body["metadata"]["name"])
        found = self.objects.get((resource.plural, namespace, body["metadata"]["name"]))
        item = _merged(found or {}, body)
        if resource.is_namespaced:
            item["metadata"].setdefault("namespace", namespace)
        return self.put(resource, item)

    def patch(self, resource: Resource, name: str, body: Object, namespace: str = "", subresource: str = "") -> Object:
        self._called("patch", resource, name)
        found = self.objects.get((resource.plural, namespace, name))
        if found is None:
            raise ApiError(attempted="patch", what=f"{resource.plural}/{namespace}/{name}", status=404, reason="NotFound")
        if subresource == "status":
            body = {"status": body["status"]}
        return self.put(resource, _merged(found, body))

    def delete(self, resource: Resource, name: str, namespace: str = "", grace_s: int | None = None, uid: str = "") -> bool:
        self._called("delete", resource, name)
        found = self.objects.get((resource.plural, namespace, name))
        if found is None or (uid and found["metadata"]["uid"] != uid):
            return False
        if resource == PODS and grace_s != 0 and (found.get("spec") or {}).get("nodeName"):
            self.put(resource, _merged(found, {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}))
        else:
            self.remove(resource, name, namespace)
        return True

    def evict(self, name: str, namespace: str, uid: str = "") -> None:
        self._called("evict", PODS, name)
        if not self.delete(PODS, name, namespace, uid=uid):
            raise ApiError(attempted="evict", what=f"pods/{namespace}/{name}", status=404, reason="NotFound")

    def log(self, pod: str, namespace: str, container: str, *, follows: bool = True) -> Any:
        self._called("log", PODS, pod)
        return FakeStream(self.logs.get(pod, b""))

    def watch(self, resource: Resource, namespace: str, selector: str, version: str) -> Any:
        return FakeWatch(self, Watched(resource, namespace, selector), int(version))

    def close(self) -> None:
        pass

    def _called(self, verb: str, resource: Resource, name: str) -> None:
        self.calls.append((verb, resource.plural, name))
        failure = self.failures.get((verb, resource.plural))
        if failure is not None:
            raise failure

    def _tell(self, kind: Any, resource: Resource, item: Object) -> None:
        self.changes.append(Change(kind, resource, copy.deepcopy(item)))


class FakeWatches(Watches):
    """Changes of a ``FakeApi`` from its beginning; unlike real ones always in the order in which they happened."""

    def __init__(self, api: FakeApi, watched: list[Watched]) -> None:
        self._api = api
        self._watched = watched
        self._seen = 0
        self.descriptor = -1
        self.is_closed = False

    @property
    def is_synced(self) -> bool:
        return True

    def drain(self) -> list[Change]:
        new, self._seen = self._api.changes[self._seen :], len(self._api.changes)
        return [change for change in new if any(self._concerns(one, change) for one in self._watched)]

    def close(self) -> None:
        self.is_closed = True

    @staticmethod
    def _concerns(one: Watched, change: Change) -> bool:
        key = _key(change.resource, change.object)
        return _matches(key, change.object, one.resource, one.namespace, one.selector)


class FakeWatch:
    """The stream of a watch: lines as they happen, until it is shut down."""

    def __init__(self, api: FakeApi, watched: Watched, version: int) -> None:
        self._api, self._watched, self._version = api, watched, version
        self._seen = 0
        self._is_ended = threading.Event()

    def read1(self, size: int) -> bytes:
        while not self._is_ended.is_set():
            new, self._seen = self._api.changes[self._seen :], len(self._api.changes)
            lines = [self._line(change) for change in new if self._is_mine(change)]
            if lines:
                return b"".join(lines)
            self._is_ended.wait(0.002)
        return b""

    def _is_mine(self, change: Change) -> bool:
        one = self._watched
        is_new = int(change.object["metadata"]["resourceVersion"]) > self._version
        return is_new and _matches(_key(change.resource, change.object), change.object, one.resource, one.namespace, one.selector)

    def _line(self, change: Change) -> bytes:
        return json.dumps({"type": change.kind.upper(), "object": change.object}).encode() + b"\n"

    def shutdown(self) -> None:
        self._is_ended.set()

    def close(self) -> None:
        self._is_ended.set()


class FakeStream:
    """What ``Api.log`` and ``Api.watch`` return, already at its end."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def read1(self, size: int) -> bytes:
        data, self._data = self._data[:size], self._data[size:]
        return data

    def shutdown(self) -> None:
        pass

    def close(self) -> None:
        pass


def _key(resource: Resource, item: Object) -> Key:
    return resource.plural, item["metadata"].get("namespace", "") if resource.is_namespaced else "", item["metadata"]["name"]


def _matches(key: Key, item: Object, resource: Resource, namespace: str, selector: str) -> bool:
    labels = item["metadata"].get("labels") or {}
    wanted = [part.split("=", 1) for part in selector.split(",") if part]
    return (
        key[0] == resource.plural
        and (not namespace or key[1] == namespace)
        and all(labels.get(part[0]) == part[1] if len(part) == 2 else part[0] in labels for part in wanted)
    )


def _merged(found: Object, body: Object) -> Object:
    """A merge patch, as RFC 7396 has it."""
    merged: Object = json.loads(json.dumps(found))
    for name, value in body.items():
        if value is None:
            merged.pop(name, None)
        elif isinstance(value, dict):
            before = merged.get(name)
            merged[name] = _merged(before if isinstance(before, dict) else {}, value)
        else:
            merged[name] = copy.deepcopy(value)
    return merged
