"""Storage that fails or is slow while the job runs."""

from collections.abc import Sequence

from harness.capabilities import StorageInterposable, StorageRule
from harness.faults.active import Scene
from harness.history import Event
from harness.scenario.faults import FailWrites, SlowWrites
from harness.undo import NothingToUndo, Undo


class ActiveStorageRule:
    """A rule in force for the writing operations of a task; seen when it has hit one of them.

    A rule for a number of operations ends by itself; any other when its time is over.
    """

    def __init__(self, scene: Scene, fault: FailWrites | SlowWrites) -> None:
        assert isinstance(scene.target, StorageInterposable)
        self._scene, self._target = scene, scene.target
        if isinstance(fault, FailWrites):
            self._rule = StorageRule(error=fault.error, operations=fault.operations)
            self._effect, self._act = f"failed with {fault.error}", f"fail with {fault.error}"
        else:
            self._rule = StorageRule(delay_s=fault.delay_s)
            self._effect, self._act = f"were held for {fault.delay_s:g} s", f"are held for {fault.delay_s:g} s"
        self.heal_after_s: float | None = None if self._rule.operations else fault.duration_s

    def undo(self) -> Undo:
        """See ``ActiveFault``."""
        return NothingToUndo(why="the rule lives in the supervisor of the attempt and ends with it")

    def inject(self) -> str:
        """See ``ActiveFault``."""
        try:
            self._target.set_storage_rule(self._scene.victim.task, self._rule)
        except LookupError as error:
            raise self._scene.failed(error) from error
        return f"{self._rule.operations or 'all'} writing operations {self._act} from now on"

    def observe(self, _events: Sequence[Event]) -> str:
        """See ``ActiveFault``."""
        hits = self._hits
        return f"writing operations that {self._effect}: {hits}" if hits else ""

    def heal(self) -> str:
        """See ``ActiveFault``."""
        try:
            self._target.clear_storage_rule(self._scene.victim.task)
        except LookupError as error:
            raise self._scene.unhealed(error) from error
        return f"the rule was taken back; writing operations that {self._effect}: {self._hits}"

    @property
    def _hits(self) -> int:
        return self._target.storage_rule_hits(self._scene.victim.task)
