"""The right side of a comparison, read once for each type that the left side may have."""

import re

from harness.emulator.logging.query.errors import refusal
from harness.emulator.logging.query.fields import BOOLEAN, DURATION, MOMENT, NUMBER, SEVERITY, FieldType
from harness.emulator.logging.query.syntax import Literal
from harness.emulator.logging.query.tokens import WORD, Token
from harness.emulator.logging.query.values import parse_duration_s, parse_moment, parse_number, parse_severity

_NOT_IN_RE2 = re.compile(r"(?<!\\)(?:\\\\)*(?:\(\?(?:[=!]|<[=!]|P=|P>|\(|>|#)|\\[1-9])")
"""Lookaround, conditions, atomic groups and back-references: RE2 has none, Python has."""


def make_literal(token: Token, operator: str, kind: FieldType) -> Literal:
    """Read a literal.

    Raises:
        FilterError: When it cannot be of the field's type, or is no regular expression where one is wanted.
    """
    text = token.value
    literal = Literal(
        text=text,
        folded=text.casefold(),
        number=parse_number(text),
        moment_ns=parse_moment(text),
        duration_s=parse_duration_s(text),
        severity=parse_severity(text),
        is_any=operator == ":" and token.kind == WORD and text == "*",
        pattern=_compile(token) if operator in ("=~", "!~") else None,
    )
    if operator in ("=~", "!~") or literal.is_any:
        return literal
    is_wrong = {
        MOMENT: literal.moment_ns is None,
        SEVERITY: literal.severity is None,
        NUMBER: literal.number is None,
        DURATION: literal.duration_s is None,
        BOOLEAN: literal.folded not in ("true", "false"),
    }
    if is_wrong.get(kind.kind, False):
        raise refusal(f"invalid {_TOLD[kind.kind]} value", token)
    return literal


_TOLD = {MOMENT: "timestamp", SEVERITY: "severity", NUMBER: "numeric", DURATION: "duration", BOOLEAN: "boolean"}


def _compile(token: Token) -> re.Pattern[str]:
    """The regular expression; Google takes RE2, this takes what RE2 and Python share."""
    if _NOT_IN_RE2.search(token.value):
        raise refusal("invalid regular expression", token)
    try:
        return re.compile(token.value)
    except (re.error, OverflowError, RecursionError) as error:
        raise refusal(f"invalid regular expression ({error})", token) from error
