"""The linear job that keeps something of every step and lets go of nothing, as a list of losses with their graphs does."""

from workloads.linear.train import Trainer, main

KEPT_BYTES = 16 << 20


class GrowsWithoutBound(Trainer):
    """Wants more memory at every step."""

    def train_step(self) -> list[int] | None:
        """Do one step, and keep too much of it."""
        kept = self.__dict__.setdefault("kept", [])
        kept.append(bytearray(KEPT_BYTES))
        return super().train_step()


if __name__ == "__main__":
    raise SystemExit(main(GrowsWithoutBound))
