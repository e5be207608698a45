"""Templates: what is shown of a run was written by others, so everything is escaped unless it was made here."""

from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment


@cache
def environment() -> "Environment":
    """The templates of this package."""
    from jinja2 import Environment, PackageLoader, StrictUndefined  # a command that only lists does not wait for it

    return Environment(
        loader=PackageLoader("harness.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )


def render(template: str, values: Mapping[str, object]) -> bytes:
    """Fill a template."""
    return environment().get_template(template).render(values).encode("utf-8", "replace")
