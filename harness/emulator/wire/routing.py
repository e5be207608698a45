"""Finds the route of a path: Google's own templates, with one segment for a name and ``**`` for everything."""

import re
from collections.abc import Mapping, Sequence
from urllib.parse import unquote

from harness.emulator.service import Route

_PLACEHOLDER = re.compile(r"\{(\w+)(=\*\*)?\}")


class Routes:
    """The routes of all services, in the order in which they are tried."""

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = [(re.compile(expression_of(route.pattern)), route) for route in routes]

    def find(self, verb: str, path: str) -> tuple[Route, Mapping[str, str]] | None:
        """The first route that matches a quoted path, and what its placeholders stand for, unquoted."""
        for expression, route in self._routes:
            match = expression.fullmatch(path) if route.verb == verb else None
            if match:
                return route, {name: unquote(value) for name, value in match.groupdict().items()}
        return None


def expression_of(pattern: str) -> str:
    """A pattern as a regular expression over quoted paths."""
    parts, end = [], 0
    for match in _PLACEHOLDER.finditer(pattern):
        parts.append(re.escape(pattern[end : match.start()]))
        parts.append(f"(?P<{match.group(1)}>{'.+' if match.group(2) else '[^/]+'})")
        end = match.end()
    return "".join([*parts, re.escape(pattern[end:])])
