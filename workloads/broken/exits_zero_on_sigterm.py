"""Wrong: saves on SIGTERM as it should, then exits 0.

Symptom: the platform records a success and does not retry; the job ends for good short of its final step.
Case 16: https://github.com/pytorch/torchtitan/pull/4270 (its kind: exit code 0, work missing)
Caught by: exit-codes
"""

from workloads.linear.train import Trainer, main


class ExitsZeroOnSigterm(Trainer):
    """Takes a clean end for a success."""

    def leave(self) -> int:
        """Save, and claim to be done."""
        super().leave()
        return 0


if __name__ == "__main__":
    raise SystemExit(main(ExitsZeroOnSigterm))
