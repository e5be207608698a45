"""Wrong: rank 0 restores the newest intact checkpoint, the others what ``latest`` names; there are two ranks unless RANKS says more.

Symptom: a kill between the commit and the move of ``latest`` leaves the two apart; the ranks train on in step with different states.
Case 13: https://github.com/KempnerInstitute/KempnerForge/issues/102 (its kind: ``latest`` and the data disagree)
Caught by: ranks-agree
"""

from workloads.linear.train import Trainer, main


class RanksRestoreDifferentSteps(Trainer):
    """Each rank finds its own way back."""

    ranks_default = 2

    def choose(self) -> int:
        """The newest intact step on rank 0, the one in ``latest`` on the others."""
        newest = super().choose()
        latest = self.checkpoints.path / "latest"
        if self.rank == 0 or not latest.exists():
            return newest
        return int(latest.read_text().removeprefix("step_"))


if __name__ == "__main__":
    raise SystemExit(main(RanksRestoreDifferentSteps))
