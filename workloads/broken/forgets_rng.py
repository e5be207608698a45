"""Wrong: restores everything but the random number generator, which starts from the seed again.

Symptom: the noise of the first steps is used a second time after each resume: no error, another trajectory.
Case 23: https://github.com/AI-Hypercomputer/maxdiffusion/pull/484 (its kind: a part of the state is not restored)
Caught by: bit-exact-resume
"""

import random

from workloads.linear.train import State, Trainer, main


class ForgetsRng(Trainer):
    """Restores without the generator."""

    def decode(self, files: dict[str, bytes]) -> State:
        """The saved state with a fresh generator."""
        state = super().decode(files)
        state.noise = random.Random(self.seed)
        return state


if __name__ == "__main__":
    raise SystemExit(main(ForgetsRng))
