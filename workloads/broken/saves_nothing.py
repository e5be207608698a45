"""Wrong: keeps no checkpoint.

Symptom: whatever ends an attempt ends all of its work, and no retry is of any use.
No case: own finding: the GKE guide's RayJob for Kueue, DWS and JaxTrainer only reports metrics
Caught by: resumes-from-newest-durable
"""

from workloads.linear.train import Trainer, main


class SavesNothing(Trainer):
    """Trains, and forgets."""

    def save(self) -> None:
        """Keep what was learned in memory."""


if __name__ == "__main__":
    raise SystemExit(main(SavesNothing))
