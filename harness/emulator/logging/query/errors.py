"""What is said of a filter that cannot be read, in Google's words and with its place."""

from harness.emulator.logging.query.tokens import Token

SHOWN_MAX = 100
"""Characters of a token that a message quotes."""


class FilterError(ValueError):
    """A filter that the service refuses: ``INVALID_ARGUMENT``."""


def syntax_error(token: Token) -> FilterError:
    """The message for a token that cannot stand where it stands.

    Source: messages quoted in public issues, for example "Unparseable filter: syntax error at line 1, column 58, token ':'".
    """
    return FilterError(f"Unparseable filter: syntax error at line {token.line}, column {token.column}, token '{token.text[:SHOWN_MAX]}'")


def refusal(problem: str, token: Token) -> FilterError:
    """The message for a token that means nothing there; its words are assumed, its form is that of a syntax error."""
    return FilterError(f"Unparseable filter: {problem} at line {token.line}, column {token.column}, token '{token.text[:SHOWN_MAX]}'")
