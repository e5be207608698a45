"""Watches see what happens, and go on after whatever breaks them."""

import json
import select
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from harness.targets.kubernetes.api import EVENTS, NODES, PODS, RAY_JOBS, WORKLOADS, Api, ApiError
from harness.targets.kubernetes.gaps import is_lost
from harness.targets.kubernetes.watching import Change, Watched, Watches


class ScriptedServer:
    """Answers lists and watches of pods, one after the other, as they were scripted."""

    def __init__(self) -> None:
        self.lists: list[list[dict]] = []
        self.watches: list[list[dict]] = []
        self.asked: list[str] = []
        self.is_ending = threading.Event()
        owner = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                owner.asked.append(self.path)
                if "watch=1" in self.path:
                    owner.answer_watch(self)
                else:
                    owner.answer_list(self)

            def do_DELETE(self) -> None:
                self.send_response(409)
                self.end_headers()
                self.wfile.write(b'{"reason": "Conflict", "message": "another uid"}')

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()

    def answer_list(self, request: BaseHTTPRequestHandler) -> None:
        if not self.lists:
            request.send_response(500)
            request.end_headers()
            return
        request.send_response(200)
        request.end_headers()
        request.wfile.write(json.dumps({"metadata": {"resourceVersion": "100"}, "items": self.lists.pop(0)}).encode())

    def answer_watch(self, request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.end_headers()
        if not self.watches:
            self.is_ending.wait(10)  # a watch that says nothing
            return
        for line in self.watches.pop(0):
            request.wfile.write(json.dumps(line).encode() + b"\n")

    def close(self) -> None:
        self.is_ending.set()
        self.server.shutdown()
        self.server.server_close()

    def api(self, path: Path) -> Api:
        kubeconfig = path / "kubeconfig"
        server = f"http://127.0.0.1:{self.server.server_address[1]}"
        kubeconfig.write_text(
            json.dumps(
                {
                    "apiVersion": "v1",
                    "kind": "Config",
                    "clusters": [{"name": "c", "cluster": {"server": server}}],
                    "users": [{"name": "u", "user": {}}],
                    "contexts": [{"name": "kind-test", "context": {"cluster": "c", "user": "u"}}],
                    "current-context": "kind-test",
                }
            )
        )
        return Api(kubeconfig, "kind-test")


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    server = ScriptedServer()
    yield server
    server.close()


def pod(name: str, version: int) -> dict:
    return {"metadata": {"name": name, "namespace": "n", "uid": f"uid-{name}", "resourceVersion": str(version)}}


def seen(watches: Watches, count: int) -> list[Change]:
    changes: list[Change] = []
    while len(changes) < count:
        assert select.select([watches.descriptor], [], [], 10)[0], f"only {changes}"
        changes += watches.drain()
    return changes


def told(changes: list[Change]) -> list[tuple[str, str]]:
    return [(change.kind, change.object["metadata"]["name"]) for change in changes]


def test_what_is_there_comes_first_and_what_changes_follows(server, tmp_path):
    server.lists = [[pod("a", 1)]]
    server.watches = [[{"type": "ADDED", "object": pod("b", 101)}, {"type": "DELETED", "object": pod("a", 102)}]]

    watches = Watches(server.api(tmp_path), [Watched(PODS, "n", "app=x")])
    changes = seen(watches, 3)
    watches.close()

    assert told(changes) == [("added", "a"), ("added", "b"), ("deleted", "a")]
    assert server.asked[0] == "/api/v1/namespaces/n/pods?labelSelector=app%3Dx"
    assert "resourceVersion=100" in server.asked[1]


def test_a_watch_that_ends_goes_on_where_it_was(server, tmp_path):
    server.lists = [[]]
    server.watches = [[{"type": "ADDED", "object": pod("a", 105)}], [{"type": "MODIFIED", "object": pod("a", 106)}]]

    watches = Watches(server.api(tmp_path), [Watched(PODS)])
    changes = seen(watches, 2)
    watches.close()

    assert told(changes) == [("added", "a"), ("modified", "a")]
    assert "resourceVersion=105" in server.asked[2]


def test_a_version_that_is_too_old_lets_it_list_again_and_tell_what_went_meanwhile(server, tmp_path):
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
    server.lists = [[pod("a", 1), pod("b", 2), pod("c", 3)], [pod("b", 2), pod("c", 9), pod("d", 10)]]
    server.watches = [[gone]]

    watches = Watches(server.api(tmp_path), [Watched(PODS)])
    changes = seen(watches, 6)
    watches.close()

    assert told(changes)[3:] == [("deleted", "a"), ("modified", "c"), ("added", "d")]
    assert watches.gaps == 1  # the end of a


@pytest.mark.parametrize(
    ("resource", "after", "is_one"),
    [
        (PODS, {"version": 1}, False),
        (PODS, {"version": 2}, False),
        (PODS, {"version": 2, "status": "False", "since": "10:00:05"}, False),
        (PODS, {"version": 2, "since": "10:00:05"}, True),
        (WORKLOADS, {"version": 2, "since": "10:00:05"}, True),
        (RAY_JOBS, {"version": 2}, True),
        (RAY_JOBS, {"version": 1}, False),
        (PODS, None, True),
        (NODES, None, False),
        (EVENTS, None, False),
    ],
)
def test_something_is_lost_only_of_an_object_that_cannot_tell_it_itself(resource, after, is_one):
    def look(version: int, status: str = "True", since: str = "10:00:00") -> dict:
        conditions = [{"type": "Ready", "status": status, "lastTransitionTime": since, "lastHeartbeatTime": str(version)}]
        return {"metadata": {"name": "a", "resourceVersion": str(version)}, "status": {"phase": "Running", "conditions": conditions}}

    assert is_lost(resource, look(1), None if after is None else look(**after)) is is_one


@pytest.mark.parametrize("status", [{"phase": "Failed"}, {"conditions": [{"type": "Finished", "status": "True"}]}])
def test_nothing_is_lost_of_what_had_ended_before_it_went(status):
    assert not is_lost(PODS, {"metadata": {"resourceVersion": "1"}, "status": status}, None)


def test_a_restarted_server_loses_nothing_of_what_did_not_change(server, tmp_path):
    gone = {"type": "ERROR", "object": {"kind": "Status", "code": 410, "reason": "Expired"}}
    server.lists = [[pod("a", 1)], [pod("a", 1), pod("b", 2)]]
    server.watches = [[gone]]

    watches = Watches(server.api(tmp_path), [Watched(PODS)])
    changes = seen(watches, 2)
    watches.close()

    assert told(changes) == [("added", "a"), ("added", "b")]
    assert watches.gaps == 0


def test_a_watch_that_an_object_breaks_is_told(server, tmp_path):
    server.lists = [[pod("a", 1)]]
    server.watches = [[{"type": "ADDED", "object": {"metadata": {}}}]]

    watches = Watches(server.api(tmp_path), [Watched(PODS)])
    seen(watches, 1)
    while not watches.broken:
        select.select([], [], [], 0.01)

    assert watches.broken == "watch pods: KeyError: 'resourceVersion'"
    watches.close()


def test_a_server_that_answers_with_errors_is_asked_again(server, tmp_path):
    watches = Watches(server.api(tmp_path), [Watched(PODS)])
    while len(server.asked) < 2:
        select.select([watches.descriptor], [], [], 0.05)
    was_synced = watches.is_synced
    server.lists = [[pod("a", 1)]]
    changes = seen(watches, 1)
    watches.close()

    assert not was_synced
    assert told(changes) == [("added", "a")]


def test_closing_does_not_wait_for_a_silent_watch(server, tmp_path):
    server.lists = [[pod("a", 1)]]
    watches = Watches(server.api(tmp_path), [Watched(PODS)])
    seen(watches, 1)

    watches.close()

    assert not any(thread.name == "watch pods" and thread.is_alive() for thread in threading.enumerate())


def test_a_refusal_says_what_was_asked_and_what_the_server_said(server, tmp_path):
    api = server.api(tmp_path)

    with pytest.raises(ApiError, match=r"cannot list namespaces/n/pods: the API server said 500") as caught:
        api.list(PODS, "n")

    assert (caught.value.attempted, caught.value.status) == ("list", 500)
    assert api.delete(PODS, "a", "n", uid="another") is False
    with pytest.raises(ApiError, match="another uid"):
        api.delete(PODS, "a", "n")


def test_no_answer_is_an_error_without_a_status(server, tmp_path):
    api = server.api(tmp_path)
    server.close()

    with pytest.raises(ApiError, match="no answer") as caught:
        api.get(PODS, "a", "n")

    assert caught.value.status == 0
