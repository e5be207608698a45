"""Wrong: restores the weights and not the optimizer.

Symptom: the momentum is zero after each resume: no error, another trajectory.
Case 23: https://github.com/AI-Hypercomputer/maxdiffusion/pull/484
Case 26: https://github.com/NVIDIA-NeMo/Automodel/issues/763
Caught by: bit-exact-resume
"""

from workloads.linear.model import FEATURES
from workloads.linear.train import State, Trainer, main


class ForgetsOptimizer(Trainer):
    """Restores without the velocity."""

    def decode(self, files: dict[str, bytes]) -> State:
        """The saved state with a fresh optimizer."""
        state = super().decode(files)
        state.velocity = [0.0] * FEATURES
        return state


if __name__ == "__main__":
    raise SystemExit(main(ForgetsOptimizer))
