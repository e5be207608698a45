"""Variables of this process that hold for a while, for all that it starts meanwhile."""

import contextlib
import os
from collections.abc import Iterator, Mapping


@contextlib.contextmanager
def changed_environment(variables: Mapping[str, str], *, hiding: str = "") -> Iterator[None]:
    """Have these variables, then what was there before.

    Args:
        variables: By name.
        hiding: The beginning of names that are not there meanwhile, unless they are among the variables; empty: none.
    """
    hidden = {name for name in os.environ if hiding and name.startswith(hiding)}
    before = {name: os.environ.get(name) for name in hidden | set(variables)}
    for name in hidden:
        del os.environ[name]
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
