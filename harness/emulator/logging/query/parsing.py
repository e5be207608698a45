"""From the text of a filter to its tree.

``OR`` binds tighter than ``AND``, and two comparisons side by side are an ``AND``.

Source: https://docs.cloud.google.com/logging/docs/view/logging-query-language#boolean-operators
"""

from harness.emulator.logging.query import functions
from harness.emulator.logging.query.errors import FilterError, syntax_error
from harness.emulator.logging.query.fields import FieldType, resolve
from harness.emulator.logging.query.literals import make_literal
from harness.emulator.logging.query.syntax import AllOf, AnyOf, Comparison, Expression, Not, TextSearch
from harness.emulator.logging.query.tokens import END, SIGN, STRING, WORD, Token, cut

__all__ = ["FILTER_LENGTH_MAX", "NESTING_MAX", "FilterError", "parse_filter"]

FILTER_LENGTH_MAX = 20_000
"""Characters. Source: the comment of ``ListLogEntriesRequest.filter`` in google.logging.v2."""
NESTING_MAX = 50
"""Parentheses within one another: more than a person writes, less than the stack of the parser holds. Google's own bound is not known."""
_OPERATORS = ("=", "!=", "<", "<=", ">", ">=", ":", "=~", "!~")
_KEYWORDS = ("AND", "OR", "NOT")


def parse_filter(text: str) -> Expression:
    """The tree of a filter; the empty filter matches everything.

    Raises:
        FilterError: When it is too long, nested too deep, not of the language, or names a field or function that there is not.
    """
    if len(text) > FILTER_LENGTH_MAX:
        raise FilterError(f"Filter is too long: {len(text)} characters, maximum {FILTER_LENGTH_MAX}")
    return _Parser(cut(text)).parse()


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._next = 0
        self._depth = 0

    def parse(self) -> Expression:
        if self._here.kind == END:
            return AllOf(())
        tree = self._all_of(None)
        if self._here.kind != END:
            raise syntax_error(self._here)
        return tree

    @property
    def _here(self) -> Token:
        return self._tokens[self._next]

    def _take(self) -> Token:
        token = self._here
        self._next += 1
        return token

    def _is_sign(self, *signs: str) -> bool:
        return self._here.kind == SIGN and self._here.text in signs

    def _is_keyword(self, *words: str) -> bool:
        return self._here.kind == WORD and self._here.text in words

    def _all_of(self, left: "_Left | None") -> Expression:
        parts = [self._any_of(left)]
        while self._here.kind != END and not self._is_sign(")"):
            if self._is_keyword("AND"):
                self._take()
            parts.append(self._any_of(left))
        return parts[0] if len(parts) == 1 else AllOf(tuple(parts))

    def _any_of(self, left: "_Left | None") -> Expression:
        parts = [self._term(left)]
        while self._is_keyword("OR"):
            self._take()
            parts.append(self._term(left))
        return parts[0] if len(parts) == 1 else AnyOf(tuple(parts))

    def _term(self, left: "_Left | None") -> Expression:
        if self._is_keyword("NOT") or (self._is_sign("-") and left is None):
            self._take()
            return Not(self._simple(left))
        return self._simple(left)

    def _simple(self, left: "_Left | None") -> Expression:
        if self._is_sign("("):
            return self._group(left)
        return self._restriction() if left is None else left.compare(self._value())

    def _group(self, left: "_Left | None") -> Expression:
        opening = self._take()
        self._depth += 1
        if self._depth > NESTING_MAX:
            raise FilterError(f"Unparseable filter: nested more than {NESTING_MAX} deep at line {opening.line}, column {opening.column}")
        tree = self._all_of(left)
        if not self._is_sign(")"):
            raise syntax_error(self._here)
        self._take()
        self._depth -= 1
        return tree

    def _restriction(self) -> Expression:
        first, second = self._here, self._tokens[min(self._next + 1, len(self._tokens) - 1)]
        if first.kind == WORD and first.text not in _KEYWORDS and second.text == "(" and second.start == first.end:
            return self._function()
        path = self._member()
        if not self._is_sign(*_OPERATORS):
            if self._tokens[self._next - 1] is not first:
                raise syntax_error(self._here)  # a path of several tokens says nothing alone
            return TextSearch(make_literal(first, ":", FieldType()))
        operator = self._take()
        found = resolve(path)
        if found is None:
            raise FilterError(f"Unparseable filter: field not found: '{'.'.join(path)}' at line {first.line}, column {first.column}")
        left = _Left(*found, operator.text)
        return self._group(left) if self._is_sign("(") else left.compare(self._value())

    def _member(self) -> tuple[str, ...]:
        """A path: words with dots, and quoted names that touch them."""
        names: list[str] = []
        token = self._take()
        if token.kind not in (WORD, STRING) or (token.kind == WORD and token.text in _KEYWORDS):
            raise syntax_error(token)
        if token.kind == STRING:
            names.append(token.value)
        else:
            names += token.text.split(".")
        while self._here.kind in (WORD, STRING) and self._here.start == token.end:
            is_joined = (names[-1] == "" and token.kind == WORD) if self._here.kind == STRING else self._here.text.startswith(".")
            if not is_joined:
                raise syntax_error(self._here)
            token = self._take()
            names = [*names[:-1], token.value] if token.kind == STRING else names + token.text[1:].split(".")
        return tuple(names)

    def _value(self) -> Token:
        token = self._take()
        if token.kind == SIGN and token.text == "-" and self._here.kind == WORD and self._here.start == token.end:
            word = self._take()
            return Token(WORD, f"-{word.text}", token.start, token.line, token.column)
        if token.kind not in (WORD, STRING) or (token.kind == WORD and token.text in _KEYWORDS):
            raise syntax_error(token)
        if self._here.kind in (WORD, STRING) and self._here.start == token.end:
            raise syntax_error(self._here)
        return token

    def _function(self) -> Expression:
        name = self._take()
        opening = self._take()
        arguments: list[functions.Argument] = []
        while not self._is_sign(")"):
            if arguments:
                if not self._is_sign(","):
                    raise syntax_error(self._here)
                self._take()
            token = self._here
            arguments.append(functions.Argument(token, self._member()))
        self._take()
        return functions.make(name, opening, arguments)


class _Left:
    """The field and the operator that stand before a value, or before a group of values."""

    def __init__(self, path: tuple[str, ...], kind: FieldType, operator: str) -> None:
        self._path, self._type, self._operator = path, kind, operator

    def compare(self, value: Token) -> Expression:
        return Comparison(self._path, self._type, self._operator, make_literal(value, self._operator, self._type))
