"""Wrong: a save that fails is acknowledged like one that worked.

Symptom: with no space left the job says that it saved, ends with exit code 0, and the checkpoint is missing.
Case 5: https://github.com/google/orbax/issues/605
Caught by: completes
"""

from workloads.linear.train import Trainer, main


class SwallowsSaveError(Trainer):
    """Does not look at the result of a save."""

    def save(self) -> None:
        """Save, and say so whatever happened."""
        try:
            super().save()
        except OSError:
            self.emit("save.end", step=self.state.step, digests=self.digests())


if __name__ == "__main__":
    raise SystemExit(main(SwallowsSaveError))
