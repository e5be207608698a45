"""A target that is not here: a skip, or an error where it is required."""

import pytest


def skip_or_fail_without_target(config: pytest.Config, name: str) -> None:
    """Leave a test that needs a target, unless it is here; ``--require`` makes an error of what would be a skip."""
    from harness.targets import availability

    found = availability(name)
    if found.is_available:
        return
    required = str(config.getoption("--require")).split(",")
    message = f"target {name!r} is not available: {found.reason}; {found.advice}"
    if name in required:
        pytest.fail(f"{message} (and --require names it)", pytrace=False)
    pytest.skip(message)
