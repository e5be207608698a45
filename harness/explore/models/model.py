"""What a storage model is: what can be left after each moment, in words of edits on a file system."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from harness.explore.file_system import FileSystem
from harness.explore.models.rows import Row
from harness.explore.replay import Replay
from harness.explore.states import Cause, Model, Scope

PREFIX = Cause()


@dataclass(frozen=True, slots=True)
class Candidate:
    """One way in which a crash can leave storage.

    Attributes:
        at: Index of the last entry that was executed; 0: none.
        cause: What makes it differ from all that was done.
        system: Holds the state, until the next candidate is asked for.
        rows: What of the model it rests on, confirmed or not.
    """

    at: int
    cause: Cause
    system: FileSystem
    rows: frozenset[Row] = frozenset()

    @property
    def assumed(self) -> tuple[str, ...]:
        """Names of the rows that nobody has confirmed."""
        return tuple(sorted(row.name for row in self.rows if not row.is_confirmed))


class Demand(Protocol):
    """Says which candidates are wanted, so that no others are made."""

    turns: Sequence[int] | None
    """Indices of entries, sorted, at which a cause that was asked about just before may be wanted again; None: at any."""

    def wants(self, cause: Cause, at: int) -> bool:
        """Whether the candidate of a cause at the index of an entry is wanted; asked in order, once for each."""
        ...


def nothing(_replay: Replay, _scope: Scope, _missing_max: int, _demand: Demand) -> Iterator[Candidate]:
    """No candidates: this storage does nothing by halves."""
    return iter(())


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageModel:
    """A storage model.

    Attributes:
        name: Its name.
        scopes: How much can die under it.
        whole: One candidate for the beginning and one a step, in order: everything is there that the storage keeps.
        partial: All others that are wanted: something is missing, torn or half done. The third argument is how many operations may be
            missing at once.
        same: Scopes that leave the same states as another scope, whatever the job does.
        rests_on: Of scopes, what nobody has confirmed and all that is said of them rests on.
    """

    name: Model
    scopes: tuple[Scope, ...]
    whole: Callable[[Replay, Scope], Iterator[Candidate]]
    partial: Callable[[Replay, Scope, int, Demand], Iterator[Candidate]] = nothing
    same: Mapping[Scope, Scope] = field(default_factory=dict)
    rests_on: Mapping[Scope, Row] = field(default_factory=dict)
