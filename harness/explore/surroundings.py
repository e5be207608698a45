"""The caller's variables, which a job inherits: what a replay finds otherwise than it was, it says.

Only digests are kept: variables hold passwords.
"""

import hashlib
import os
from collections.abc import Mapping

from harness.runner.binding import inherited
from harness.runner.golden import UNKEYED_PREFIX, UNKEYED_VARIABLES


def digests_of(environment: Mapping[str, str]) -> dict[str, str]:
    """The digests of what a job may depend on, by name."""
    variables = {
        name: value
        for name, value in inherited(environment).items()
        if name not in UNKEYED_VARIABLES and not name.startswith(UNKEYED_PREFIX)
    }
    return {_text(name): hashlib.sha256(os.fsencode(f"{name}={value}")).hexdigest()[:16] for name, value in sorted(variables.items())}


def _text(name: str) -> str:
    """A name that may hold bytes which are no UTF-8, as it can be written down."""
    return os.fsencode(name).decode(errors="backslashreplace")


def differing(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Names of the variables that are not as they were."""
    return tuple(sorted(name for name in before.keys() | now.keys() if before.get(name) != now.get(name)))
