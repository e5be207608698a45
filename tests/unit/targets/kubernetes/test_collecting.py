"""What is kept of a run that did not end well does not keep it from being ended."""

from pathlib import Path
from typing import Any

import urllib3

from harness.clock import ManualClock
from harness.targets.kubernetes.api import PODS
from harness.targets.kubernetes.collecting import COLLECTED_S, collect

from .fake_api import FakeApi


class SlowApi(FakeApi):
    """Logs of the pods named are on nodes that are cut off: each question for one ends after a while without an answer."""

    def __init__(self, clock: ManualClock, *pods: str, cut_off: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.clock, self.cut_off = clock, cut_off
        for name in pods:
            self.put(PODS, {"metadata": {"name": name, "namespace": "n"}, "spec": {"containers": [{"name": "host"}]}})
            self.logs[name] = f"said by {name}".encode()

    def log(self, pod: str, namespace: str, container: str, *, follows: bool = True) -> Any:
        assert not follows
        if pod in self.cut_off:
            self.clock.advance(5.0)
            raise urllib3.exceptions.ReadTimeoutError(None, "", "read timed out")  # type: ignore[arg-type]
        return super().log(pod, namespace, container, follows=follows)


def test_objects_and_logs_are_kept(tmp_path: Path) -> None:
    collect(SlowApi(ManualClock(), "a", "b"), "n", tmp_path, ManualClock())

    assert (tmp_path / "a-host.log").read_bytes() == b"said by a"
    assert '"name": "b"' in (tmp_path / "pods.json").read_text()


def test_nodes_that_are_cut_off_hold_nobody_up_for_long(tmp_path: Path) -> None:
    clock = ManualClock()
    pods = [f"pod-{number:02}" for number in range(50)]

    collect(SlowApi(clock, "a", *pods, cut_off=tuple(pods)), "n", tmp_path, clock)

    assert clock.monotonic_s() == COLLECTED_S
    assert (tmp_path / "a-host.log").read_bytes() == b"said by a"
