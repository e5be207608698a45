"""Wrong: looks at the signal flag between steps only.

Symptom: a SIGTERM early in a step that is longer than the grace period is seen too late: the kill comes first, nothing is saved.
Case 31: https://github.com/goodfire-ai/spd/issues/677
Caught by: grace-conduct
"""

import time

from workloads.linear.train import Trainer, main


class ReadsFlagBetweenLongSteps(Trainer):
    """Cannot be interrupted inside a step."""

    def wait(self, seconds: float) -> None:
        """Take as long as a step does, signal or not: ``time.sleep`` goes on after a signal handler (PEP 475)."""
        time.sleep(seconds)


if __name__ == "__main__":
    raise SystemExit(main(ReadsFlagBetweenLongSteps))
