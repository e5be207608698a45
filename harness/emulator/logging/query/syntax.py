"""A filter as a tree."""

import re
from dataclasses import dataclass
from typing import TypeAlias

from harness.emulator.logging.query.fields import FieldType


@dataclass(frozen=True, slots=True)
class AllOf:
    """Every part matches; none matches everything."""

    parts: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class AnyOf:
    """A part matches."""

    parts: tuple["Expression", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """The part does not match."""

    part: "Expression"


@dataclass(frozen=True, slots=True)
class Literal:
    """The right side of a comparison, with what it is as each type that the field may have; None where it is none of that type."""

    text: str
    folded: str
    number: float | None
    moment_ns: int | None
    duration_s: float | None
    severity: int | None
    is_any: bool = False
    pattern: re.Pattern[str] | None = None


@dataclass(frozen=True, slots=True)
class Comparison:
    """A field against a literal.

    Attributes:
        path: In the names of the JSON form.
        type: What the path leads to.
        operator: ``= != < <= > >= : =~ !~``.
        literal: The right side.
    """

    path: tuple[str, ...]
    type: FieldType
    operator: str
    literal: Literal


@dataclass(frozen=True, slots=True)
class TextSearch:
    """A value alone: any field has it."""

    literal: Literal


@dataclass(frozen=True, slots=True)
class LogIdIs:
    """``log_id("…")``: the name of the log, without its project and without escapes."""

    log_id: str


@dataclass(frozen=True, slots=True)
class Sample:
    """``sample(field, fraction)``: a stable share of the entries by the hash of a field."""

    path: tuple[str, ...]
    fraction: float


@dataclass(frozen=True, slots=True)
class IsInNetwork:
    """``ip_in_net(field, "network")``."""

    path: tuple[str, ...]
    network: str


Expression: TypeAlias = "AllOf | AnyOf | Not | Comparison | TextSearch | LogIdIs | Sample | IsInNetwork"
