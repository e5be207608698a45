"""Wrong: counts a save that was begun and never committed as done, and refuses every step up to it.

Symptom: after a kill in a save the resumed attempt passes that step and does not save it, without a word; where it is the last one, the
exit code is 0 and the final step is missing.
Case 1: https://github.com/AI-Hypercomputer/maxtext/pull/5260
Caught by: saves-at-cadence
"""

from workloads.linear.train import Trainer, main


class SkipsSavesAfterResume(Trainer):
    """Believes its cache of saved steps."""

    newest_begun = 0

    def restore(self) -> None:
        """Restore, and remember the highest step that a name mentions, temporary ones too."""
        names = [path.name for path in self.checkpoints.path.glob("step_*")]
        self.newest_begun = max((int(name[5:13]) for name in names), default=0)
        super().restore()

    def save(self) -> None:
        """Save only what is newer than that."""
        if self.state.step > self.newest_begun:
            super().save()


if __name__ == "__main__":
    raise SystemExit(main(SkipsSavesAfterResume))
