"""Wrong: something in the process swallows SIGTERM, and the training never hears of it.

Symptom: the job trains through the grace period and is killed: nothing is saved in it, the work since the last save on the cadence is lost.
Case 33: own finding: JAX's signal notifier takes SIGTERM, and without distributed initialisation the preemption save never fires
Caught by: grace-conduct
"""

from workloads.linear.train import Trainer, main


class IgnoresSigterm(Trainer):
    """Trains on."""

    def handle_sigterm(self, *_: object) -> None:
        """Swallow the signal."""


if __name__ == "__main__":
    raise SystemExit(main(IgnoresSigterm))
