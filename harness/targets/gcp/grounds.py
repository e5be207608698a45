"""What a run on Google Cloud works with."""

from dataclasses import dataclass, field

from harness.capabilities import Launch
from harness.clock import Clock
from harness.targets.gcp.bucket import BucketPrefix
from harness.targets.gcp.calling import Caller
from harness.targets.gcp.connection import Clients
from harness.targets.gcp.guard import run_prefix
from harness.targets.gcp.pace import Pace
from harness.targets.gcp.place import Place
from harness.targets.gcp.run_names import agent_prefix, checkpoints_prefix


@dataclass(frozen=True, slots=True, kw_only=True)
class Grounds:
    """Of one run.

    Attributes:
        launch: What runs.
        clock: Ours.
        clients: Google's.
        caller: Does the calls.
        place: Where.
        pace: How often is looked.
        run_objects: All that the run has in the bucket.
        checkpoints: Of its job.
        agent: The agent, its orders and its reports.
    """

    launch: Launch
    clock: Clock
    clients: Clients
    caller: Caller
    place: Place
    pace: Pace
    run_objects: BucketPrefix = field(init=False)
    checkpoints: BucketPrefix = field(init=False)
    agent: BucketPrefix = field(init=False)

    def __post_init__(self) -> None:
        for name, prefix in (
            ("run_objects", run_prefix(self.launch.run_id)),
            ("checkpoints", checkpoints_prefix(self.launch.run_id)),
            ("agent", agent_prefix(self.launch.run_id)),
        ):
            found = BucketPrefix(self.clients.storage, self.caller, bucket=self.place.bucket, prefix=prefix)
            object.__setattr__(self, name, found)

    def t_s(self) -> float:
        """Now, as the history counts."""
        return self.clock.monotonic_s() - self.launch.epoch_s
