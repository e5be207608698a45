"""Templates: what is shown of a run was written by others, so all of it passes ``text.clean`` and is then escaped."""

import base64
import hashlib
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

from harness.report import text, wording

if TYPE_CHECKING:
    from jinja2 import Environment


def render(template: str, values: Mapping[str, object]) -> bytes:
    """Fill a template."""
    return _environment().get_template(template).render(values).encode("utf-8", "replace")


@cache
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("harness.report"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_finalize,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        {
            "codes": text.codes,
            "count": wording.count,
            "duration": wording.duration,
            "limit": wording.limit,
            "line": text.line,
            "links": text.links,
            "moment": wording.moment,
            "px": _pixels,
            "sentence": wording.sentence,
            "share": wording.share,
            "size": wording.size,
            "whole": text.Whole,
        }
    )
    environment.globals["policy"] = _policy(environment.get_template("script.js").render())
    return environment


def _finalize(value: object) -> object:
    """The one gate that everything shown goes through; what is markup already was made by a template."""
    return text.clean(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _pixels(value: float) -> str:
    """A length with no more digits than a screen shows."""
    return f"{value:.1f}".removesuffix(".0")


def _policy(script: str) -> str:
    """What a page may do: nothing but run the one script it was made with, so that a line of a log never can."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
