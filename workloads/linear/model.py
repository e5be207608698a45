"""The linear job without its state: the data set, the order in which an epoch goes through it, and the gradient.

Sums are ``math.fsum``: exact, so that every Python gives the same bits (``sum`` of floats changed in 3.12).
"""

import math
import random

Sample = tuple[list[float], float]  # features, target

FEATURES = 8
SAMPLES = 40
BATCH = 4  # 10 steps an epoch: with a save every 5, every other checkpoint lies on an epoch boundary
BATCHES_PER_EPOCH = SAMPLES // BATCH


def make_samples(seed: int) -> list[Sample]:
    """Rows of features, each with the target of a linear function whose weights are 1 to FEATURES."""
    source = random.Random(f"samples {seed}")
    rows = [[source.uniform(-1, 1) for _ in range(FEATURES)] for _ in range(SAMPLES)]
    return [(row, math.fsum((i + 1) * x for i, x in enumerate(row))) for row in rows]


def order_of(seed: int, epoch: int) -> list[int]:
    """The shuffled order of an epoch: the same for whoever asks, and whenever."""
    return random.Random(f"order {seed} {epoch}").sample(range(SAMPLES), SAMPLES)


def gradient_of(weights: list[float], batch: list[Sample]) -> list[float]:
    """The sum over the batch of the gradient of half the squared error."""
    total = [0.0] * FEATURES
    for features, target in batch:
        error = math.fsum(w * x for w, x in zip(weights, features, strict=True)) - target
        total = [t + error * x for t, x in zip(total, features, strict=True)]
    return total
