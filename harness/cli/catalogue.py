"""Finds scenarios for the command line: in a catalogue that is a Python module, in a TOML file, or in a JSON file."""

import importlib
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from harness.config import read_config
from harness.errors import InvalidDocumentError, UnknownNameError, UsageError
from harness.scenario import Scenario, read_scenario

DEFAULT_CATALOGUE = "scenarios:CATALOGUE"


class CatalogueMissingError(UsageError):
    """The module of a catalogue cannot be imported, or holds none."""

    def __init__(self, *, name: str, root: Path, reason: str) -> None:
        self.name, self.root, self.reason = name, root, reason
        super().__init__(
            f"catalogue {name!r} cannot be loaded from {root}: {reason}; "
            "run in a directory that has one, name it with --catalogue, or use --config"
        )


def load(*, catalogue: str, config: Path | None, root: Path) -> Mapping[str, Scenario]:
    """Load scenarios by name.

    Raises:
        CatalogueMissingError: The module cannot be imported, or raises while it is.
        InvalidDocumentError: The TOML file does not validate.
    """
    if config is not None:
        return read_config(config)
    module_name, _, attribute = catalogue.partition(":")
    if str(root) not in sys.path:
        sys.path.insert(0, str(root))
    try:
        found = getattr(importlib.import_module(module_name), attribute or "CATALOGUE")
    except ModuleNotFoundError as error:
        raise CatalogueMissingError(name=catalogue, root=root, reason=f"no module named {error.name}") from error
    except AttributeError as error:
        raise CatalogueMissingError(name=catalogue, root=root, reason=str(error)) from error
    except ValueError as error:
        raise InvalidDocumentError(document=catalogue, field="", problem=str(error)) from error
    except (Exception, SystemExit) as error:  # not our code; if it exits with 0, nothing must look as if it had passed
        raise CatalogueMissingError(name=catalogue, root=root, reason=_told(error)) from error
    if not isinstance(found, Mapping) or not all(isinstance(scenario, Scenario) for scenario in found.values()):
        raise CatalogueMissingError(name=catalogue, root=root, reason="it is not a mapping of names to scenarios")
    return found


def _told(error: BaseException) -> str:
    """What a module raised while it was imported, in one line."""
    return f"{type(error).__name__} while it was imported: {' '.join(str(error).split()) or 'no reason given'}"


def everywhere(_scenario: Scenario) -> bool:
    """No scenario is left out."""
    return True


def choose(
    known: Mapping[str, Scenario],
    names: Sequence[str],
    *,
    everything: bool,
    slow: bool,
    tags: Sequence[str],
    belongs: Callable[[Scenario], bool] = everywhere,
) -> list[Scenario]:
    """The scenarios that were asked for: by name, by path of a JSON file, by tag, or all; slow ones only when asked for or named.

    What is not named must belong to the target.

    Raises:
        UsageError: Nothing was asked for, or nothing is left, or two have one name.
        UnknownNameError: A name or a tag is not known.
        InvalidDocumentError: A JSON file does not validate.
    """
    if names:
        named = [_one(known, name) for name in dict.fromkeys(names)]
        _refuse_namesakes(named)
        return named
    if not everything and not tags:
        raise UsageError("nothing to run: name scenarios (`harness list` shows them), or give --all, --tag or --config")
    every_tag = {tag for scenario in known.values() for tag in scenario.tags}
    for tag in tags:
        if tag not in every_tag:
            raise UnknownNameError(kind="tag", name=tag, known=sorted(every_tag))
    matching = [scenario for scenario in known.values() if (not tags or set(tags) & set(scenario.tags)) and belongs(scenario)]
    if not matching:
        raise UsageError("nothing to run: no scenario that matches runs on this target; name one to read why, or choose another --target")
    chosen = [scenario for scenario in matching if slow or "slow" not in scenario.tags]
    if not chosen:
        raise UsageError("nothing to run: every scenario that matches is slow; add --slow")
    return chosen


def left_out(known: Mapping[str, Scenario], chosen: Sequence[Scenario], *, tags: Sequence[str], belongs: Callable[[Scenario], bool]) -> str:
    """What a choice by tag, or of all, has left out: how many, and why. Empty when nothing."""
    wanted = [scenario for scenario in known.values() if not tags or set(tags) & set(scenario.tags)]
    elsewhere = sum(not belongs(scenario) for scenario in wanted)
    slow = len(wanted) - elsewhere - len(chosen)
    told = [f"{elsewhere} that belong to another target"] if elsewhere else []
    return ", ".join([*told, f"{slow} slow (--slow)"] if slow else told)


def _refuse_namesakes(scenarios: Sequence[Scenario]) -> None:
    """Results go by the names of scenarios: of two with one name, one verdict would hide the other."""
    names = [scenario.name for scenario in scenarios]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two of the scenarios are named {name!r}; rename one in its file, or run one after the other")


def _one(known: Mapping[str, Scenario], name: str) -> Scenario:
    if name in known:
        return known[name]
    if name.endswith(".json"):
        return read_scenario(Path(name))
    raise UnknownNameError(kind="scenario", name=name, known=list(known))


def by_cost(scenarios: Iterable[Scenario]) -> list[Scenario]:
    """Longest first, by the deadline they set themselves: so the last worker does not finish alone."""
    return sorted(scenarios, key=lambda scenario: (-scenario.deadline_s, scenario.name))
