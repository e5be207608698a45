"""Wrong: restores the model and begins the data from the start.

Symptom: after each resume the first samples are seen again, and the last ones never.
Case 19: https://github.com/google/grain/pull/1179
Caught by: exactly-once-data
"""

from workloads.linear.train import State, Trainer, main


class RestartsDataOrder(Trainer):
    """Restores without the cursor."""

    def decode(self, files: dict[str, bytes]) -> State:
        """The saved state with the data at its beginning."""
        state = super().decode(files)
        state.epoch = state.cursor = 0
        return state


if __name__ == "__main__":
    raise SystemExit(main(RestartsDataOrder))
