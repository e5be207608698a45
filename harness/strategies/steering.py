"""A draw of a place in a list that never changes, in which some places come more often: what Hypothesis keeps is the place.

An example that failed is kept as what was drawn. Were the list that of what is left to hit, it would be another one after the failure has
hit its cell, what was kept would mean another schedule, and Hypothesis would hold the failure for mended and forget it.
"""

from collections.abc import Collection

from hypothesis.internal.conjecture.data import ConjectureData
from hypothesis.strategies import SearchStrategy

PREFERRED_SHARE = 0.9
"""Of the draws: the rest is spread over all places, for a place that is preferred may turn out to be hit by nothing that is drawn there."""


class SteeredPlaces(SearchStrategy[int]):
    """Places from 0, of so many; those that are preferred come more often. No public strategy of Hypothesis has weights.

    Source: ``hypothesis.internal.conjecture.data.ConjectureData.draw_integer``: ``weights`` count where a value is made, not where one that
        was kept is used again (``choice.choice_permitted``).
    """

    def __init__(self, size: int, preferred: Collection[int]) -> None:
        super().__init__()
        self._size = size
        self._weights = {place: PREFERRED_SHARE / len(preferred) for place in sorted(preferred)} if preferred else None

    def do_draw(self, data: ConjectureData) -> int:
        """See ``SearchStrategy``."""
        return data.draw_integer(0, self._size - 1, weights=self._weights)
