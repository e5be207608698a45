"""Parts of the control plane that are killed, and an image that is not there."""

from collections.abc import Sequence

from harness.capabilities import ControlPlaneHost, NodeHost
from harness.faults.active import Pace, Scene
from harness.history import Event
from harness.scenario.cluster_faults import ForgetImage, RestartComponent
from harness.undo import AwaitControlPlane, RestoreCluster, Undo


class ActiveRestart:
    """Seen when another instance runs in place of the one that was killed, and over when the whole control plane serves again."""

    def __init__(self, scene: Scene, fault: RestartComponent) -> None:
        assert isinstance(scene.target, ControlPlaneHost)
        self._scene, self._target, self._component = scene, scene.target, fault.component
        self._pace = Pace(scene.now_s)
        self._killed = ""
        self._killed_s = 0.0
        self.heal_after_s: float | None = None  # until another instance is seen

    def undo(self) -> Undo:
        """See ``ActiveFault``. The kubelet starts again what was killed: it is only waited for."""
        return RestoreCluster(cluster=self._target.cluster_name, uid=self._target.cluster_uid(), actions=(AwaitControlPlane(),))

    def inject(self) -> str:
        """See ``ActiveFault``."""
        with self._scene.injecting():
            self._killed = self._target.kill_component(self._component)
        self._killed_s = self._scene.now_s()
        return f"SIGKILL to {self._component} ({self._killed})"

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        instance = self._target.component_instance(self._component) if self._killed and self._pace.is_due() else ""
        if instance in ("", self._killed):
            return ""
        self.heal_after_s = self._scene.now_s() - self._killed_s
        return f"{self._component} runs again: {instance} in place of {self._killed}"

    def heal(self) -> str:
        """See ``ActiveFault``."""
        return "the API server answers, and Kueue behind it" if self._pace.is_due() and self._target.is_serving() else ""


class ActiveForgetting:
    """Seen, as is its end, in what the nodes say of their images. Nodes that come to the pool while it lasts know the image."""

    def __init__(self, scene: Scene, fault: ForgetImage) -> None:
        assert isinstance(scene.target, ControlPlaneHost)
        assert isinstance(scene.target, NodeHost)
        self._scene, self._target, self._node_host, self._pool = scene, scene.target, scene.target, fault.pool
        self._nodes: tuple[str, ...] = ()
        self._evidence = self._healed = ""
        self.heal_after_s: float | None = fault.duration_s

    def undo(self) -> Undo:
        """See ``ActiveFault``."""
        with self._scene.injecting():
            self._nodes = self._node_host.nodes_in(self._pool)
            uid = self._target.cluster_uid()
            return RestoreCluster(cluster=self._target.cluster_name, uid=uid, actions=self._target.image_undo(self._nodes))

    def inject(self) -> str:
        """See ``ActiveFault``."""
        with self._scene.injecting():
            self._evidence = self._target.forget_image(self._nodes)
        return f"the image of the job was taken from {', '.join(self._nodes)}"

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        return self._evidence

    def heal(self) -> str:
        """See ``ActiveFault``."""
        with self._scene.healing():
            self._healed = self._healed or self._target.restore_image(self._nodes)
        return self._healed
