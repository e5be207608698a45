"""Conditions of a request on the generation and metageneration that are there.

Source: https://docs.cloud.google.com/storage/docs/request-preconditions
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from harness.emulator.storage.refusals import condition_not_met, invalid, not_modified

NO_LIVE_VERSION = 0
"""As a generation in a condition: there is no live version."""


class Versioned(Protocol):
    """What has both numbers: an object or a bucket."""

    @property
    def generation(self) -> int:
        """Of the content."""
        ...

    @property
    def metageneration(self) -> int:
        """Of the metadata."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Preconditions:
    """What must hold; None: nothing is demanded."""

    generation_match: int | None = None
    generation_not_match: int | None = None
    metageneration_match: int | None = None
    metageneration_not_match: int | None = None

    @property
    def are_empty(self) -> bool:
        """Whether nothing is demanded."""
        return self == Preconditions()

    def check(self, current: Versioned | None, *, is_read: bool = False) -> None:
        """See that all hold.

        Args:
            current: What is there; None: nothing.
            is_read: Whether the request only reads: it is then told that nothing is new, not that a condition failed.

        Raises:
            ApiError: 412, or 304 for a read of what has not changed.
        """
        generation = current.generation if current else NO_LIVE_VERSION
        metageneration = current.metageneration if current else None
        if self.generation_match is not None and self.generation_match != generation:
            raise condition_not_met()
        if self.metageneration_match is not None and self.metageneration_match != metageneration:
            raise condition_not_met()
        is_unchanged = self.generation_not_match is not None and self.generation_not_match == generation
        if is_unchanged or (self.metageneration_not_match is not None and self.metageneration_not_match == metageneration):
            raise not_modified() if is_read else condition_not_met()


NOTHING_DEMANDED = Preconditions()


def read_preconditions(value_of: Callable[[str], str], *, source: bool = False) -> Preconditions:
    """The conditions that the parameters of a request state.

    Args:
        value_of: A query parameter by its name; empty when absent.
        source: Whether those of the source of a copy are meant.

    Raises:
        ApiError: 400 when one is no number.
    """
    prefix = "ifSource" if source else "if"

    def number(name: str) -> int | None:
        return read_number(f"{prefix}{name}", value_of(f"{prefix}{name}"))

    return Preconditions(
        generation_match=number("GenerationMatch"),
        generation_not_match=number("GenerationNotMatch"),
        metageneration_match=number("MetagenerationMatch"),
        metageneration_not_match=number("MetagenerationNotMatch"),
    )


def read_number(name: str, text: str) -> int | None:
    """A parameter that is a whole number; None when it is absent.

    Raises:
        ApiError: 400 when it is something else.
    """
    if not text:
        return None
    if not (text.isascii() and text.removeprefix("-").isdecimal()) or len(text) > 20:
        raise invalid(f"Invalid value for {name}: '{text[:40]}': it must be a whole number")
    return int(text)
