"""Finds scenarios for the command line: in a catalogue that is a Python module, in a TOML file, or in a JSON file."""

import importlib
import pkgutil
import re
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import harness.scenario
from harness.config import read_config
from harness.errors import InvalidDocumentError, UnknownNameError, UsageError
from harness.scenario import Scenario, read_scenario

DEFAULT_CATALOGUE = "scenarios:CATALOGUE"


ELSEWHERE = "run in a directory that has one, name it with --catalogue, or use --config"


class CatalogueMissingError(UsageError):
    """The module of a catalogue cannot be imported, or holds none."""

    def __init__(self, *, name: str, root: Path, reason: str, advice: str = ELSEWHERE) -> None:
        self.name, self.root, self.reason, self.advice = name, root, reason, advice
        super().__init__(f"catalogue {name!r} cannot be loaded from {root}: {reason}; {advice}")


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
        module = importlib.import_module(module_name)
    except ValueError as error:
        raise InvalidDocumentError(document=catalogue, field="", problem=str(error)) from error
    except (Exception, SystemExit) as error:  # not our code; if it exits with 0, nothing must look as if it had passed
        if isinstance(error, ModuleNotFoundError) and _is_part_of(error.name, module_name):
            raise CatalogueMissingError(name=catalogue, root=root, reason=f"no module named {error.name}") from error
        raise CatalogueMissingError(name=catalogue, root=root, reason=_told(error, root), advice=_advice(error)) from error
    found = getattr(module, attribute or "CATALOGUE", None)
    if not isinstance(found, Mapping) or not all(isinstance(scenario, Scenario) for scenario in found.values()):
        reason = "it is not a mapping of names to scenarios"
        if found is None:
            reason = f"module {module_name!r} has no attribute {attribute or 'CATALOGUE'!r}"
        raise CatalogueMissingError(name=catalogue, root=root, reason=reason)
    return found


def misplaced(scenarios: Iterable[Scenario], *, catalogue: str, root: Path) -> str:
    """What is said where workloads of a catalogue are not below the root and are where the catalogue lies: how to run them; else empty.

    An installed catalogue is found from everywhere, and its workloads' directories are relative to the root all the same.
    """
    module = sys.modules.get(catalogue.partition(":")[0])
    home = Path(getattr(module, "__file__", None) or root / "scenarios.py").resolve().parent
    if home == root:
        return ""
    for scenario in scenarios:
        workload = scenario.workload
        for part in workload.sources or (".",):
            path = Path(workload.directory) / part
            if not (root / path).exists() and (home / path).exists():
                return f"workload {workload.name!r} is not in {root}: there is no {path}; the catalogue lies in {home}: add --root {home}"
    return ""


def _is_part_of(missing: str | None, module_name: str) -> bool:
    """Whether it is the catalogue's own module that is not there, or a package around it; else it is one that the catalogue imports."""
    return missing is not None and f"{module_name}.".startswith(f"{missing}.")


def _told(error: BaseException, root: Path) -> str:
    """What a module raised while it was imported, in one line, and the last place of the user's own that led to it."""
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if Path(frame.filename).is_relative_to(root)]
    place = f" ({Path(places[-1].filename).relative_to(root)}, line {places[-1].lineno})" if places else ""
    return f"{type(error).__name__} while it was imported: {' '.join(str(error).split()) or 'no reason given'}{place}"


def _advice(error: BaseException) -> str:
    """What to do about it; a name that another of our modules has is named with that."""
    if isinstance(error, ModuleNotFoundError):
        return f"install {error.name}, or correct its name"
    name = re.match(r"cannot import name '(\w+)' from 'harness\b", str(error)) if isinstance(error, ImportError) else None
    home = _home_of(name[1]) if name else ""
    return f"import {name[1]} from {home}" if name and home else "correct that file"


def _home_of(name: str) -> str:
    """The module of scenarios that defines a name: ``harness.scenario.cluster_faults``; empty where none does."""
    for found in pkgutil.iter_modules(harness.scenario.__path__, "harness.scenario."):
        value = getattr(importlib.import_module(found.name), name, None)
        if getattr(value, "__module__", "") == found.name:
            return found.name
    return ""


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
    matching = matching_scenarios(known, tags=tags, belongs=belongs)
    if not matching:
        raise UsageError("nothing to run: no scenario that matches runs on this target; name one to read why, or choose another --target")
    chosen = [scenario for scenario in matching if slow or "slow" not in scenario.tags]
    if not chosen:
        raise UsageError("nothing to run: every scenario that matches is slow; add --slow")
    _refuse_namesakes(chosen)
    return chosen


def matching_scenarios(known: Mapping[str, Scenario], *, tags: Sequence[str], belongs: Callable[[Scenario], bool]) -> list[Scenario]:
    """Those with one of the tags, if any are given, that belong to the target.

    Raises:
        UnknownNameError: When no scenario has a tag.
    """
    every_tag = {tag for scenario in known.values() for tag in scenario.tags}
    for tag in tags:
        if tag not in every_tag:
            raise UnknownNameError(kind="tag", name=tag, known=sorted(every_tag))
    return [scenario for scenario in known.values() if (not tags or set(tags) & set(scenario.tags)) and belongs(scenario)]


def left_out(known: Mapping[str, Scenario], chosen: Sequence[Scenario], *, tags: Sequence[str], belongs: Callable[[Scenario], bool]) -> str:
    """What a choice by tag, or of all, has left out: how many, and why. Empty when nothing."""
    here = len(matching_scenarios(known, tags=tags, belongs=belongs))
    elsewhere = len(matching_scenarios(known, tags=tags, belongs=everywhere)) - here
    slow = here - len(chosen)
    told = [f"{elsewhere} that belong to another target"] if elsewhere else []
    return ", ".join([*told, f"{slow} slow (--slow)"] if slow else told)


def _refuse_namesakes(scenarios: Sequence[Scenario]) -> None:
    """Results go by the names of scenarios: of two with one name, one verdict would hide the other."""
    names = [scenario.name for scenario in scenarios]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two of the scenarios are named {name!r}; rename one where it is written")


def _one(known: Mapping[str, Scenario], name: str) -> Scenario:
    if name in known:
        return known[name]
    if name.endswith(".json"):
        return read_scenario(Path(name))
    raise UnknownNameError(kind="scenario", name=name, known=list(known))


def by_cost(scenarios: Iterable[Scenario]) -> list[Scenario]:
    """Longest first, by the deadline they set themselves: so the last worker does not finish alone."""
    return sorted(scenarios, key=lambda scenario: (-scenario.deadline_s, scenario.name))
