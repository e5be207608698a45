"""A plain ``pytest`` kills nothing: which chaos tests stay among those that run."""

import pytest

from harness.pytest_plugin.asked import MARKER, is_asked_for, is_that_file


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave chaos tests out unless ``-m`` names them or their ids are given: a plain ``pytest`` must not kill anything."""
    if is_asked_for(config):
        return
    left_out = [item for item in items if item.get_closest_marker(MARKER) and not _is_named(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]


def _is_named(item: pytest.Item) -> bool:
    """Whether the command line gives the id of a test, of all that it was made of, or of its class."""
    own = item.nodeid.partition("::")[2]
    for argument in item.config.args:
        name = argument.partition("::")[2]
        is_own = own == name or own.startswith((f"{name}::", f"{name}["))
        if name and is_own and is_that_file(item.config, argument, item.path):
            return True
    return False
