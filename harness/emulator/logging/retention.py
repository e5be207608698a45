"""How long and how much is kept; what is dropped is counted and told."""

import msgspec


class Retention(msgspec.Struct, frozen=True, kw_only=True):
    """What a store keeps.

    Attributes:
        days: Entries that are older, by their timestamp, are not found any more. Google's log bucket ``_Default`` keeps 30.
        ahead_hours: Nor are those further in the future.
        bytes_max: All entries together, encoded; the first that came go first. Google has no such limit.

    Source: https://docs.cloud.google.com/logging/quotas, the comment of ``WriteLogEntriesRequest.entries`` in google.logging.v2
    """

    days: float = 30
    ahead_hours: float = 24
    bytes_max: int = 128 << 20


class Holdings(msgspec.Struct, frozen=True, kw_only=True):
    """What a store holds, and what it does not hold any more.

    Attributes:
        entries: That can be found.
        bytes: Of them.
        waiting: Held back still.
        dropped_for_space: The first that came, to make room.
        dropped_for_age: Too old, or too far in the future, when they came or since.
        lost: By a disturbance.
    """

    entries: int
    bytes: int
    waiting: int
    dropped_for_space: int
    dropped_for_age: int
    lost: int
