"""Which operation is the one that was asked for: counted by kind, class of path and rank, from a marker on."""

from collections import Counter

from harness.supervision.path_classes import path_class


class Stop:
    """An operation at which its caller is held, once.

    The fields are those of the trigger ``at-operation``; ``index`` tells stops apart.
    """

    __slots__ = ("after", "after_nth", "count", "has_begun", "index", "is_spent", "nth", "operation", "path", "rank", "when")

    def __init__(
        self,
        index: int,
        *,
        operation: str,
        path: str,
        nth: int = 1,
        after: str = "",
        after_nth: int = 1,
        when: str = "after",
        rank: int = 0,
    ) -> None:
        self.index, self.operation, self.path, self.nth = index, operation, path, nth
        self.after, self.after_nth, self.when, self.rank = after, after_nth, when, rank
        self.has_begun = not after
        self.count = 0
        self.is_spent = False

    def is_of(self, operation: str, where: str, rank: int) -> bool:
        """Whether it counts such an operation now."""
        return self.has_begun and not self.is_spent and (operation, where, rank) == (self.operation, self.path, self.rank)


class Stops:
    """All stops of an attempt."""

    def __init__(self, stops: list[Stop]) -> None:
        self._stops = stops
        self._said: Counter[tuple[str, int]] = Counter()

    @property
    def are_spent(self) -> bool:
        """Whether nobody is to be held any more."""
        return all(stop.is_spent for stop in self._stops)

    def counts(self, operation: str) -> bool:
        """Whether such an operation is counted now, of whatever path and rank: else nobody need ask for these."""
        return any(stop.has_begun and not stop.is_spent and stop.operation == operation for stop in self._stops)

    def hear(self, event: str, rank: int) -> None:
        """A rank has said a word: what is counted from there begins."""
        self._said[event, rank] += 1
        for stop in self._stops:
            if (event, rank, self._said[event, rank]) == (stop.after, stop.rank, stop.after_nth):
                stop.has_begun = True

    def before(self, operation: str, path: str, rank: int) -> list[Stop]:
        """A rank is about to do an operation: those that hold it there, from now on spent.

        One that then fails is not counted, and holds nobody again.
        """
        where = path_class(path)
        met = [stop for stop in self._stops if stop.is_of(operation, where, rank) and stop.when == "before" and stop.count + 1 == stop.nth]
        for stop in met:
            stop.is_spent = True
        return met

    def after(self, operation: str, path: str, rank: int) -> list[Stop]:
        """A rank has done an operation: those that hold it now, from now on spent."""
        where = path_class(path)
        met = []
        for stop in self._stops:
            if stop.is_of(operation, where, rank):
                stop.count += 1
                if stop.when == "after" and stop.count == stop.nth:
                    stop.is_spent = True
                    met.append(stop)
        return met

    def forget(self) -> None:
        """Hold nobody any more."""
        self._stops = []
