"""The functions of the language that are known here: ``log_id``, ``sample``, ``ip_in_net``.

``SEARCH``, ``source``, ``cast`` and ``regexp_extract`` are Google's too and are refused, not guessed.

Source: https://docs.cloud.google.com/logging/docs/view/logging-query-language#functions
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass

from harness.emulator.logging.query.errors import refusal
from harness.emulator.logging.query.fields import resolve
from harness.emulator.logging.query.syntax import Expression, IsInNetwork, LogIdIs, Sample
from harness.emulator.logging.query.tokens import Token
from harness.emulator.logging.query.values import parse_number

_COUNTS = {"log_id": 1, "sample": 2, "ip_in_net": 2}


@dataclass(frozen=True, slots=True)
class Argument:
    """A value or a path.

    Attributes:
        token: Its first token.
        path: Its parts.
    """

    token: Token
    path: tuple[str, ...]


def make(name: Token, opening: Token, arguments: Sequence[Argument]) -> Expression:
    """The tree of a call.

    Raises:
        FilterError: When the function is not known, or its arguments are not what it takes.
    """
    count = _COUNTS.get(name.text.lower())
    if count is None:
        raise refusal(f"unrecognized function '{name.text[:100]}'", name)
    if len(arguments) != count:
        raise refusal(f"function '{name.text}' takes {count} arguments, not {len(arguments)}", opening)
    first, last = arguments[0], arguments[-1]
    if name.text.lower() == "log_id":
        return LogIdIs(first.token.value)
    found = resolve(first.path)
    if found is None:
        raise refusal("field not found", first.token)
    if name.text.lower() == "ip_in_net":
        return IsInNetwork(found[0], _network(last.token))
    fraction = parse_number(last.token.value)
    if fraction is None or not 0 <= fraction <= 1:
        raise refusal("not a fraction from 0 to 1", last.token)
    return Sample(found[0], fraction)


def _network(token: Token) -> str:
    try:
        return str(ipaddress.ip_network(token.value, strict=False))
    except ValueError as error:
        raise refusal("not a network", token) from error
