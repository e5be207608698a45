"""What the command line of pytest asks for of kill points: which, by options or by the ids of tests."""

from typing import TYPE_CHECKING

import pytest

from harness.pytest_plugin.asked import is_that_file, seed_asked_for

if TYPE_CHECKING:
    from harness.explore.frontier import SurfaceName
    from harness.explore.kill_points import Mode

DEFAULT_MODE = "sample"


def mode_asked_for(config: pytest.Config) -> "Mode":
    """Which kill points are tests."""
    from harness.explore.kill_points import MODES

    asked = config.getoption("--kill-points") or DEFAULT_MODE
    return next(mode for mode in MODES if mode == asked)


def choice_asked_for(config: pytest.Config) -> str:
    """Which kill points, in words."""
    if any("[" in argument for argument in config.args):
        return "those that were named"
    mode = config.getoption("--kill-points") or DEFAULT_MODE
    drawn = "" if mode == "each" else f" by seed {seed_asked_for(config)}"
    return f"{mode}{drawn}, storage {config.getoption('--storage')}, scope {config.getoption('--scope') or 'all'}"


def surfaces_asked_for(config: pytest.Config) -> "tuple[SurfaceName, ...]":
    """What is asked for, with what ids on the command line name."""
    from harness.cli.asked import models_asked_for, scopes_asked_for
    from harness.errors import UnknownNameError
    from harness.explore.frontier import surfaces_of

    try:
        models = models_asked_for([name for name in str(config.getoption("--storage")).split(",") if name != "all"])
        scopes = [name for name in str(config.getoption("--scope")).split(",") if name]
        wanted = surfaces_of(models, scopes_asked_for(scopes) if scopes else ())
    except UnknownNameError as error:
        raise pytest.UsageError(str(error)) from error
    ids = [argument.partition("[")[2].split(":")[1:3] for argument in config.args]
    named = [surface for surface in surfaces_of(models_asked_for(()), ()) if list(surface) in ids]
    if named and all(ids):
        return tuple(named)
    return (*wanted, *(surface for surface in named if surface not in wanted))


def names_asked_for(metafunc: pytest.Metafunc) -> list[str] | None:
    """The ids of a test function that the command line names; empty: it names all of them; None: it names others, or no function at all."""
    own = metafunc.definition.nodeid.split("::", 1)[-1]
    found: list[str] | None = None
    for argument in metafunc.config.args:
        name = argument.partition("::")[2]
        function, bracket, rest = name.partition("[")
        is_here = is_that_file(metafunc.config, argument, metafunc.definition.path)
        if name and is_here and f"{own}::".startswith(f"{function}::"):
            found = [*(found or []), *([rest.removesuffix("]")] if bracket else [])]
    return found


def asks_for_others_only(config: pytest.Config) -> bool:
    """Whether the command line names nothing but functions, so that what it does not name is collected in vain."""
    return all("::" in argument for argument in config.args)
