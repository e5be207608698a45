"""The clocks of the container; the harness's own clock needs a newer Python than a container may have."""

import time


def monotonic_s() -> float:
    """Seconds of CLOCK_MONOTONIC: the clock that the job stamps its events with."""
    return time.monotonic()  # noqa: TID251  see above


def utc_s() -> float:
    """Seconds since 1970, by the container's time of day."""
    return time.time()  # noqa: TID251  see above
