"""The checkpoints of a run between the bucket and the directory that is judged: when which of the two is made like the other."""

from collections.abc import Callable, Sequence

from harness.history import AttemptExited, Event, ObservationLost, SaveEnded
from harness.targets.gcp.grounds import Grounds
from harness.targets.gcp.mirror import Mirror


class RunStorage:
    """Keeps ``launch.checkpoint_dir`` what the bucket holds, at the moments when somebody looks at it or changes it."""

    def __init__(self, grounds: Grounds, *, beat: Callable[[], None] = lambda: None) -> None:
        self._grounds = grounds
        self._mirror = Mirror(grounds.checkpoints, grounds.launch.checkpoint_dir, beat=beat)
        self._may_be_changed = False
        self._told: set[str] = set()

    def show(self) -> None:
        """Somebody is about to change files of the directory: what they find is what the bucket holds now.

        Raises:
            CallError: When the bucket does not answer.
            StoreError: When the directory cannot be written.
        """
        if not self._may_be_changed:
            self._mirror.pull()
        self._may_be_changed = True

    def push(self) -> list[Event]:
        """Carry changes that a fault has made to the bucket; what the job has written since stays, and is told.

        Raises:
            CallError: When the bucket does not take them.
        """
        if not self._may_be_changed:
            return []
        self._may_be_changed = False
        pushed = self._mirror.push()
        if not pushed.lost:
            return []
        return [self._lost(len(pushed.lost), f"damage did not reach the bucket: {'; '.join(pushed.lost[:5])}")]

    def follow(self, events: Sequence[Event]) -> list[Event]:
        """After what makes somebody look: bring the directory up to date."""
        if not any(isinstance(event, SaveEnded | AttemptExited) for event in events):
            return []
        return self.pull()

    def pull(self) -> list[Event]:
        """Make the directory what the bucket holds now; what cannot be a file here is told, once.

        Raises:
            CallError: When the bucket does not answer.
            StoreError: When the directory cannot be written.
        """
        events = self.push()
        self._mirror.pull()
        lost = {name: why for name, why in self._mirror.lost.items() if name not in self._told}
        self._told.update(lost)
        if lost:
            shown = "; ".join(f"{name}: {why}" for name, why in list(lost.items())[:5])
            events.append(self._lost(len(lost), f"objects that are no files here: {shown}"))
        return events

    def _lost(self, count: int, detail: str) -> ObservationLost:
        return ObservationLost(t_s=self._grounds.t_s(), what="checkpoints", count=count, detail=detail)
