"""Wrong: exports the average of the weights over the run, and keeps that average in no checkpoint.

Symptom: every step of the training is right to the last bit, and what is exported is the average since the last resume.
Case 23: https://github.com/AI-Hypercomputer/maxdiffusion/pull/484 (its kind: a part of the state is not restored)
Caught by: same-result
"""

from workloads.linear.model import FEATURES
from workloads.linear.train import Trainer, main
from workloads.protocol import digest


class ForgetsAverage(Trainer):
    """Averages what this process has seen."""

    steps_seen = 0
    total = (0.0,) * FEATURES

    def train_step(self) -> list[int] | None:
        """Do one step and add its weights to the average."""
        batch_ids = super().train_step()
        if batch_ids is not None:
            self.steps_seen += 1
            self.total = tuple(total + weight for total, weight in zip(self.total, self.state.weights, strict=True))
        return batch_ids

    def result(self) -> dict[str, object]:
        """The average in place of the last weights."""
        average = [total / max(1, self.steps_seen) for total in self.total]
        return super().result() | {"params": digest(*map(float.hex, average))}


if __name__ == "__main__":
    raise SystemExit(main(ForgetsAverage))
